"""Readers of formats, a file each: what they hold becomes `ForeignSpan`s, and what of it could not be read is counted."""
