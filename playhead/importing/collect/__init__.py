"""A live receiver of OTLP over HTTP: it records the spans that programs export while they run.

collector  stores each body on disk, gathers the spans of each trace, and records traces that have ended
server     answers HTTP requests (starlette), in a thread of its own (listening); needs the extra `collect`
"""
