"""`playhead view`: the runs of a folder in the browser, read only, for this machine alone."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import urllib.request
from html import unescape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from starlette.testclient import TestClient

from playhead.cli.view import choosing
from playhead.cli.viewing import application
from playhead.trace.store import TraceStore
from tests.cli.command_line import playhead
from tests.cli.finding import QUESTIONS, write_run, write_runs
from tests.cli.other_processes import begin, end
from tests.cli.recorded import record_hostile_run, record_run

if TYPE_CHECKING:
    from httpx2 import Response

ADDRESS = "http://127.0.0.1:7529"


def client(folder: Path) -> TestClient:
    """Return what asks the server of a folder."""
    return TestClient(application(TraceStore(folder), choosing(folder)), ADDRESS, raise_server_exceptions=False)


def data(answer: Response) -> Any:
    """Return what a page shows."""
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', answer.text, re.DOTALL)
    assert answer.status_code == 200
    assert found is not None
    return json.loads(found[1])


@pytest.mark.parametrize("question", QUESTIONS)
def test_the_filters_are_those_of_list(folder: Path, question: str):
    """A query string chooses the runs that `list` lists with these options, in the same order."""
    write_runs(folder)
    words = iter(shlex.split(question))
    given: Any = [(word[2:], "on" if word == "--failed" else next(words)) for word in words]
    page = data(client(folder).get("/", params=given))
    assert " ".join(run["run_id"] for run in page["runs"]) == QUESTIONS[question]
    assert [(each["name"], each["value"]) for each in page["fields"] if each["value"]] == sorted(
        given, key=lambda pair: [each["name"] for each in page["fields"]].index(pair[0])
    )


@pytest.mark.parametrize(
    ("query", "why"),
    [
        ("since=soon", "write a time ago, such as 30m"),
        ("min-cost=much", "is not a valid float"),
        ("nothing=1", "No such option"),
        ("trace-dir=/", "No such option"),
        ("help=on", "No such option"),
    ],
)
def test_other_words_of_a_query_are_refused(folder: Path, query: str, why: str):
    """A wrong value is said as the command line says it; no other option of a command is one of a query string."""
    answer = client(folder).get(f"/?{query}")
    assert (answer.status_code, why in answer.text) == (400, True)


def test_only_this_machines_names_reach_it(store: Path):
    """A `Host` of another name gets nothing: a web page whose name leads here (DNS rebinding) would send it."""
    asks = client(store)
    refused = ["evil.example", "evil.example:7529", "127.0.0.1.evil.example", "localhost.evil.example", "[::1]"]
    for path in ("/", "/runs/good", "/diff?a=good&b=good", "/nothing"):
        assert [asks.get(path, headers={"Host": name}).text for name in refused] == ["Invalid host header"] * 5
    assert [asks.get("/", headers={"Host": name}).status_code for name in ("127.0.0.1:9", "LocalHost")] == [200, 200]


def test_no_answer_is_for_another_page_or_kept(store: Path):
    """No header lets a page of another origin read or frame an answer, whatever it asks with; no browser stores it."""
    for path in ("/", "/runs/good", "/diff?a=good&b=good", "/runs/none", "/?since=x"):
        headers = client(store).get(path, headers={"Origin": "https://evil.example"}).headers
        assert not [name for name in headers if name.startswith("access-control")]
        assert headers["cache-control"] == "no-store"
        assert headers["content-security-policy"] == "frame-ancestors 'none'"
        assert headers["cross-origin-resource-policy"] == "same-origin"
        assert headers["x-content-type-options"] == "nosniff"


REFERENCES = [
    *(
        "..%2f..%2fsecret",
        "%2e%2e%2fsecret",
        "..%5csecret",
        "..%2fsecret.jsonl",
        "%2fsecret.jsonl",
        "secret.jsonl",
        "*",
    ),
    *("~%2fsecret.jsonl", "link", "link.jsonl", "good.jsonl", "%00", "%ff", "latest~9", "latest~x", "a" * 5000),
    *("good.blobs%2fx", "%3Cscript%3E", "good%0d%0aX-Evil:1"),
]


@pytest.mark.parametrize("reference", REFERENCES)
def test_a_reference_stays_in_the_folder(home: Path, store: Path, reference: str):
    """What is outside of the folder is not shown: not by a path, not by a link, not by any way to write `..`."""
    record_run(home, "secret", "the secret answer")
    (store / "link.jsonl").symlink_to(home / "secret.jsonl")
    for path in (f"/runs/{reference}", f"/diff?a={reference}&b=good", f"/diff?a=good&b={reference}"):
        answer = client(store).get(path)
        assert (answer.status_code in {400, 404}, "secret answer" in answer.text) == (True, False)
        assert "x-evil" not in answer.headers


def test_nothing_can_be_written(store: Path):
    """Every method but GET is refused, and no request changes a file; the index of `list` is the only new one."""
    asks, before = client(store), {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in store.iterdir()}
    for path in ("/", "/runs/good", "/diff"):
        assert {asks.request(method, path).status_code for method in ("POST", "PUT", "PATCH", "DELETE")} == {405}
    for path in ("/", "/?tool=lookup&text=Zed", "/?replays=on", "/runs/good", "/runs/latest", "/diff?a=good&b=good"):
        assert asks.get(path).status_code == 200
    assert {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in before} == before
    assert {path.name for path in store.iterdir() if path not in before} <= {".index.sqlite"}


def test_an_unchanged_page_is_not_sent_again(folder: Path):
    """With its ETag it is 304 and empty, until the run goes on or another one begins."""
    recorder = begin(folder / "going.jsonl")
    asks = client(folder)

    def ask(path: str, tag: str) -> tuple[int, str]:
        answer = asks.get(path, headers={"If-None-Match": tag})
        assert (answer.status_code == 200) == bool(answer.content)
        return answer.status_code, answer.headers["etag"]

    tags = {path: ask(path, "")[1] for path in ("/", "/runs/going", "/diff?a=going&b=going")}
    assert {ask(path, tag) for path, tag in tags.items()} == {(304, tag) for tag in tags.values()}
    end(recorder, "enough")
    assert [ask(path, tag)[0] for path, tag in tags.items()] == [200, 200, 200]
    tag = ask("/", "")[1]
    write_run(folder, "another")
    assert ask("/", tag)[0] == 200


def test_a_run_that_goes_on_is_asked_for_again(folder: Path):
    """Its page and the list ask the server, which their policy allows; the page of a run that has ended does not."""
    recorder = begin(folder / "going.jsonl")
    asks = client(folder)
    live = re.compile("<body [^>]*data-live")
    first = asks.get("/runs/going").text
    assert live.search(first)
    assert "connect-src 'self'" in unescape(first)
    end(recorder, "enough")
    second = asks.get("/runs/going")
    assert not live.search(second.text)
    assert data(second)["events"][-1]["kind"] == "run-completed"
    assert live.search(asks.get("/").text)


def test_hostile_text_is_text(folder: Path):
    """Nothing of a trace is markup on a page or in an error, and no list shows where the folder is."""
    record_hostile_run(folder)
    evil = "</script><script>alert(1)</script>"
    write_run(folder, "evil", agent=evil, model=evil, task=evil * 50_000, ended=evil)
    asks = client(folder)
    for path in (
        "/",
        "/runs/evil",
        "/runs/hostile",
        "/diff?a=evil&b=hostile",
        f"/runs/{evil.replace('/', '')}",
        f"/?tag={evil}",
    ):
        answer = asks.get(path)
        assert "<script>alert" not in answer.text
        assert len(answer.text) < 2_000_000
    runs = asks.get("/").text
    assert (str(folder) in runs, "\x1b" in runs, "\u202e" in runs) == (False, False, False)


def test_a_folder_without_runs(folder: Path):
    """The list says so; a file that is no trace is a row of it, and its own page says what is wrong."""
    assert data(client(folder).get("/"))["runs"] == []
    (folder / "odd.jsonl").write_text("{}\n")
    Path(os.fsdecode(os.fsencode(folder) + b"/\xff.jsonl")).write_text("{}\n")
    assert [run["ending"] for run in data(client(folder).get("/"))["runs"]] == ["unreadable"] * 2
    answer = client(folder).get("/runs/odd")
    assert (answer.status_code, "odd.jsonl" in answer.text) == (400, True)


def test_a_port_that_is_taken_and_a_folder_that_is_missing(folder: Path):
    """Each is one sentence."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        result = playhead("view", "--port", str(port), "--trace-dir", folder)
    assert (result.exit_code, result.stderr) == (
        2,
        f"playhead: cannot listen at '127.0.0.1', port {port}: Address already in use. --port 0 takes a free port\n",
    )
    assert playhead("view", "--trace-dir", folder / "none").exit_code == 3


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_ends_while_a_page_is_open(store: Path, number: signal.Signals):
    """The command prints its address, opens the browser and serves until a signal; an open connection does not keep it."""
    browser = store.parent / "browser"
    browser.write_text('#!/bin/sh\necho "$1" >"$0".opened\n')
    browser.chmod(0o700)
    command = [sys.executable, "-m", "playhead", "view", "--port", "0", "--open", "--json", "--trace-dir", str(store)]
    environment = {**os.environ, "BROWSER": str(browser)}
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
        assert process.stdout is not None
        said = json.loads(process.stdout.readline())
        assert said["trace_dir"] == str(store)
        with urllib.request.urlopen(said["url"]) as answer:
            assert b"Mount Zed" in answer.read()
        host, port = said["url"].removeprefix("http://").split(":")
        with socket.create_connection((host, int(port))) as page:
            page.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert page.recv(9) == b"HTTP/1.1 "
            process.send_signal(number)
            assert (process.wait(20), process.stdout.read()) == (0, b"")
    assert browser.with_suffix(".opened").read_text().strip() == said["url"]
