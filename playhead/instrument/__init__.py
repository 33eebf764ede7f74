"""The same recorder around loops that are not Playhead's: recorded programs, wrapped clients, tools of frameworks."""
