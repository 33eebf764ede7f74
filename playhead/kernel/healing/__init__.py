"""Healing: a malformed tool call is put right before it runs, when it can be read in one way only.

A call that fits is not touched. Of a broken one each stage mends one thing (name, shape, parameters, types, path); the call
counts as healed when it fits the tool's schema afterwards and no stage had a choice. Else it stays as it was.
"""
