"""`Agent`, the result of a run, and the means to stream, steer and chat."""
