"""Repair of broken tool calls by structure alone, and the calls that stand in a reply's text.

A call that fits its schema is never touched. Each step of a repair has exactly one reading, else the call is refused and
the model is told all that is wrong with it.
"""
