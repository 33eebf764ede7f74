"""The version of Playhead, alone in a file so that every room may name it."""

VERSION = "0.1.0"
