"""A loopback server that answers as told, and cassettes recorded against real local models.

To record again: start the servers named in the tests (`real-models/serve.sh`, `ollama-proxy`), delete the cassettes, run
these tests with PLAYHEAD_RECORD=once, and look through what was written before it is committed.
"""

import json
import os
import socket
import struct
import threading
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

CASSETTES = Path(__file__).parent / "cassettes"


class StubHandler(BaseHTTPRequestHandler):
    """Answers for a stub."""

    stub: Any = None
    """The stub, in the class of each server."""
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # one packet for headers and body, else each answer waits 40 ms for an acknowledgement
    disable_nagle_algorithm = True

    def setup(self):
        super().setup()
        self.stub.connections.add(self)

    def finish(self):
        super().finish()
        self.stub.connections.discard(self)

    def do_POST(self):
        sent = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.stub.requests.append((self.path, sent))
        self.stub.keys.append(self.headers["authorization"])
        with suppress(OSError):  # the client may have given up
            if self.stub.resets:
                self.reset()
            elif sent.get("stream") and self.stub.status == 200:
                self.stream()
            else:
                self.answer(*self.stub.answer_to(self.path))

    def reset(self):
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        os.close(self.connection.detach())  # the files over it would keep it open
        self.close_connection = True

    def answer(self, status, body):
        text = body if isinstance(body, str) else json.dumps(body)
        self.send_response(status)
        self.send_header("content-type", "text/html" if isinstance(body, str) else "application/json")
        self.send_header("content-length", str(len(text.encode())))
        self.end_headers()
        self.wfile.write(text.encode())

    def stream(self):
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        for part in self.stub.parts:
            self.wfile.write(f"{len(part.encode()):x}\r\n{part}\r\n".encode())
            self.wfile.flush()
        if self.stub.end == "end":
            self.wfile.write(b"0\r\n\r\n")
            return
        self.close_connection = True
        if self.stub.end == "wait":
            self.connection.settimeout(5)
            self.connection.recv(1)  # returns when the other side has closed
            self.stub.gone.set()
        self.connection.close()

    def log_message(self, *_):
        """Be silent."""


class StubServer:
    """Answers every POST: with `status` and `body`, by `paths`, or in `parts` to a request for a stream."""

    def __init__(self):
        self.status = 200
        self.body = {}
        """The answer: a text as it is, anything else as JSON."""
        self.paths = None
        """Answers by path, in place of `body`: a number is a status, a missing path 404, an event is waited for."""
        self.parts = []
        """A streamed answer, in chunks."""
        self.end = "end"
        """What follows the last part: `end`, `break` or `wait`."""
        self.resets = False
        """Whether to reset the connection instead of answering."""
        self.requests = []
        """Path and parsed body of each request, in order."""
        self.keys = []
        """The `Authorization` header of each request."""
        self.connections = set()
        """The open connections."""
        self.gone = threading.Event()
        """Set when the reader of a stream that waits has closed the connection."""
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (StubHandler,), {"stub": self}))
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()

    def answers(self, body, status=200):
        """Answer with this from now on."""
        self.status, self.body = status, body

    def answer_to(self, path):
        """Return status and body of the answer to a request."""
        body = self.body if self.paths is None else self.paths.get(path, 404)
        if isinstance(body, threading.Event):
            body.wait(5)
            return 504, ""
        return (body, "") if isinstance(body, int) else (self.status, body)

    def close(self):
        """Stop serving."""
        self.gone.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


@pytest.fixture
def stub():
    """Return a running server that answers as it is told."""
    server = StubServer()
    yield server
    server.close()


@pytest.fixture(autouse=True)
def _no_keys(monkeypatch):
    """What the developer's environment knows of providers must not decide a test."""
    for name in os.environ:
        if name.upper().startswith(("ANTHROPIC", "AWS", "AZURE", "GEMINI", "GOOGLE", "OLLAMA", "OPENAI")):
            monkeypatch.delenv(name)


@pytest.fixture
def cassette():
    """Return a context manager that plays a cassette and insists that all of it was asked for."""
    import vcr

    recorder = vcr.VCR(
        cassette_library_dir=str(CASSETTES),
        record_mode=os.environ.get("PLAYHEAD_RECORD", "none"),
        # vcrpy's default leaves the body out: a changed prompt would get the old answer.
        match_on=["method", "scheme", "host", "port", "path", "body"],
        filter_headers=["authorization", "x-api-key"],
        before_record_request=_bare,
        before_record_response=_bare_response,
        decode_compressed_response=True,
    )

    @contextmanager
    def play(name):
        with recorder.use_cassette(name) as tape:
            yield
        assert tape.all_played or tape.record_mode != "none"

    return play


def _bare(request):
    """Keep only the headers that say something: the others name the machine, versions and times."""
    request.headers = {name: value for name, value in request.headers.items() if name.lower() == "content-type"}
    return request


def _bare_response(response):
    headers = response["headers"]
    return {**response, "headers": {name: headers[name] for name in headers if name.lower() == "content-type"}}
