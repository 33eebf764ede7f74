"""A loopback server that answers as told, and cassettes recorded against real local models.

To record again: start the servers named in the tests (`real-models/serve.sh`, `ollama-proxy`), delete the cassettes, run
these tests with PLAYHEAD_RECORD=once, and look through what was written before it is committed.
"""

import json
import os
import socket
import struct
import threading
import time
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

CASSETTES = Path(__file__).parent / "cassettes"


class StubServer:
    """Answers every POST with `status` and `body`, and keeps what it was sent."""

    def __init__(self):
        self.status = 200
        self.body = {}
        self.delay_s = 0.0
        self.resets = False
        """Reset the connection instead of answering."""
        self.requests = []
        """Path and parsed body of each request, in order."""
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()

    def answers(self, body, status=200):
        """Answer so from now on: a text as it is, anything else as JSON."""
        self.status, self.body = status, body

    def close(self):
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def _handler(self):
        stub = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            wbufsize = -1  # one packet for headers and body, else each answer waits 40 ms for an acknowledgement
            disable_nagle_algorithm = True

            def do_POST(self):
                sent = self.rfile.read(int(self.headers["content-length"]))
                stub.requests.append((self.path, json.loads(sent)))
                if stub.resets:
                    self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                    os.close(self.connection.detach())  # the files over it would keep it open
                    self.close_connection = True
                    return
                text = stub.body if isinstance(stub.body, str) else json.dumps(stub.body)
                time.sleep(stub.delay_s)
                self.send_response(stub.status)
                self.send_header("content-type", "text/html" if isinstance(stub.body, str) else "application/json")
                self.send_header("content-length", str(len(text.encode())))
                self.end_headers()
                with suppress(ConnectionError):  # who asked may have given up
                    self.wfile.write(text.encode())

            def log_message(self, *_):
                """Be silent."""

        return Handler


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
