"""A live receiver of OTLP over HTTP: what programs export while they run becomes recordings.

collector  what was acknowledged, on disk until it is recorded; the spans of traces that are still coming, and their recordings
server     the socket, what a request is answered (on starlette), and uvicorn in a thread; needs the extra `collect`
"""
