"""Context management: shortens long results, keeps them for recall, and compacts old turns.

Off by default. It depends only on answers, results and recorded settings, so a replay arrives at the same thread, and the
cost of a step does not grow with their number.
"""
