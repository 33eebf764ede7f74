"""The formats that spans come in, a file each. They are told apart by what they hold, never by a file's name."""
