"""The command line: reads arguments, calls the rooms below, writes text or JSON Lines."""
