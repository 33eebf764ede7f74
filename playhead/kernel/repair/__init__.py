"""Repairs broken tool calls by their structure alone, and finds tool calls in the text of a reply.

A call that fits its schema is never changed. Each step of a repair must have exactly one reading; otherwise the call is
refused, and the model gets a list of all faults.
"""
