"""Loops that are not Playhead's own, each with the client of another SDK."""
