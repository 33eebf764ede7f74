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
from functools import partial
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from playhead.cli.view import choose
from playhead.diagnose.viewing import application
from playhead.trace.store import TraceStore
from tests.cli.command_line import playhead
from tests.cli.finding import QUESTIONS, write_run, write_runs
from tests.cli.other_processes import begin, end
from tests.cli.recorded import record_hostile_run, record_run

PAGES = ("/", "/runs/good", "/diff?a=good&b=good", "/runs/none", "/?since=x")
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


def client(folder: Path) -> TestClient:
    """Return what asks the server of a folder."""
    app = application(TraceStore(folder), partial(choose, folder))
    return TestClient(app, "http://127.0.0.1:7529", raise_server_exceptions=False)


def data(page: str) -> Any:
    """Return what a page shows."""
    (found,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    return json.loads(found)


def test_the_filters_are_those_of_list(folder: Path):
    """A query string chooses the runs that `list` lists with these options, in the same order, and fills the form."""
    write_runs(folder)
    for question, ids in QUESTIONS.items():
        words = iter(shlex.split(question))
        given: Any = [(word[2:], "on" if word == "--failed" else next(words)) for word in words]
        page = data(client(folder).get("/", params=given).text)
        assert " ".join(run["run_id"] for run in page["runs"]) == ids
        assert sorted((each["name"], each["value"]) for each in page["fields"] if each["value"]) == sorted(given)


def test_a_list_that_is_cut_says_so(folder: Path):
    """Beyond `limit`, the page says how many runs there are, with conditions and without; a new run changes its tag."""
    write_runs(folder)
    asks = client(folder)
    for query, shown, total in (("", 7, 7), ("limit=2", 2, 7), ("limit=2&ended=answered", 2, 4), ("last=3", 3, 3)):
        page = data(asks.get(f"/?{query}").text)
        assert (len(page["runs"]), page["total"]) == (shown, total)
    assert "<title>2 of 7 runs" in asks.get("/?limit=2").text
    tag = asks.get("/?limit=2").headers["etag"]
    write_run(folder, "oldest", minute=-9)
    assert asks.get("/?limit=2", headers={"If-None-Match": tag}).status_code == 200


def test_other_words_of_a_query_are_refused(folder: Path):
    """A wrong value is said as the command line says it; no other option of a command is one of a query string."""
    queries = {
        "since=soon": "write a time ago",
        "min-cost=x": "not a valid float",
        "trace-dir=/": "No such",
        "help=on": "No such",
    }
    for query, why in queries.items():
        answer = client(folder).get(f"/?{query}")
        assert (answer.status_code, why in answer.text) == (400, True)


def test_only_pages_of_this_machine_get_an_answer(store: Path):
    """A `Host` of another name (DNS rebinding) gets nothing; no page of another origin can read, frame or keep an answer."""
    asks = client(store)
    others = ["evil.example", "evil.example:7529", "127.0.0.1.evil.example", "localhost.evil.example", "[::1]"]
    for path in (*PAGES, "/nothing"):
        assert [asks.get(path, headers={"Host": name}).text for name in others] == ["Invalid host header"] * 5
    assert [asks.get("/", headers={"Host": name}).status_code for name in ("127.0.0.1:9", "LocalHost")] == [200, 200]
    for path in PAGES:
        headers = asks.get(path, headers={"Origin": "https://evil.example"}).headers
        assert not [name for name in headers if name.startswith("access-control")]
        names = ("cache-control", "content-security-policy", "cross-origin-resource-policy", "x-content-type-options")
        assert [headers[name] for name in names] == ["no-store", "frame-ancestors 'none'", "same-origin", "nosniff"]


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
    for path in (*PAGES[:3], "/?tool=lookup&text=Zed", "/?replays=on", "/runs/latest"):
        assert asks.get(path).status_code == 200
    assert {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in before} == before
    assert {path.name for path in store.iterdir() if path not in before} <= {".index.sqlite"}


def test_a_run_that_goes_on(folder: Path):
    """Its page and the list ask again, and get 304 until something is new; at the end its page asks no more."""
    recorder, asks = begin(folder / "going.jsonl"), client(folder)
    pages = ("/", "/runs/going", "/diff?a=going&b=going")
    first = [asks.get(page) for page in pages]
    tags = [answer.headers["etag"] for answer in first]
    again = [asks.get(page, headers={"If-None-Match": tag}) for page, tag in zip(pages, tags, strict=True)]
    assert [(answer.status_code, answer.content, answer.headers["etag"]) for answer in again] == [
        (304, b"", tag) for tag in tags
    ]
    assert [" data-live>" in answer.text for answer in first] == [True, True, False]
    assert "connect-src 'self'" in unescape(first[1].text)
    end(recorder, "enough")
    then = [asks.get(page, headers={"If-None-Match": tag}) for page, tag in zip(pages, tags, strict=True)]
    assert [" data-live>" in answer.text for answer in then] == [True, False, False]
    assert data(then[1].text)["events"][-1]["kind"] == "run-completed"
    (folder / "going.jsonl").unlink()
    assert asks.get(pages[1], headers={"If-None-Match": then[1].headers["etag"]}).status_code == 404


def test_hostile_text_is_text(folder: Path):
    """Nothing of a trace is markup on a page or in an error, no list shows where the folder is, and no text makes it long."""
    record_hostile_run(folder)
    evil = "</script><script>alert(1)</script>"
    write_run(folder, "evil", agent=evil, model=evil, task=evil * 50_000, ended=evil)
    asks = client(folder)
    for path in (
        "/",
        "/runs/evil",
        "/runs/hostile",
        "/diff?a=evil&b=hostile",
        "/runs/<script>alert(1)",
        f"/?tag={evil}",
    ):
        page = asks.get(path).text
        assert ("<script>alert" in page, len(page) < 2_000_000) == (False, True)
    runs = asks.get("/").text
    assert (str(folder) in runs, "\x1b" in runs, "\u202e" in runs) == (False, False, False)


def test_odd_folders_and_ports(folder: Path):
    """A folder without runs, files that are no traces, a folder that is missing and a port that is taken are each said."""
    assert data(client(folder).get("/").text)["runs"] == []
    (folder / "odd.jsonl").write_text("{}\n")
    Path(os.fsdecode(os.fsencode(folder) + b"/\xff.jsonl")).write_text("{}\n")
    assert [run["ending"] for run in data(client(folder).get("/").text)["runs"]] == ["unreadable"] * 2
    assert (
        client(folder).get("/runs/odd").status_code,
        playhead("view", "--trace-dir", folder / "none").exit_code,
    ) == (400, 3)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        result = playhead("view", "--port", str(port), "--trace-dir", folder)
    said = f"playhead: cannot listen at '127.0.0.1', port {port}: Address already in use. --port 0 takes a free port\n"
    assert (result.exit_code, result.stderr) == (2, said)


def test_a_report_of_nothing_and_to_nowhere(store: Path, home: Path):
    """Without a run, `report` says what `report latest` says; a folder that is not there is a wrong command line."""
    none = [playhead("report", *run, "--trace-dir", home / "none") for run in ([], ["latest"])]
    said = f"playhead: the trace folder {home / 'none'} holds no runs yet\n"
    assert [(each.exit_code, each.stderr) for each in none] == [(3, said)] * 2
    nowhere = playhead("report", "-o", home / "nodir/q.html", "--trace-dir", store)
    assert (nowhere.exit_code, f"there is no folder {home / 'nodir'}" in nowhere.stderr) == (2, True)
    assert playhead("report", "-o", home / "q.html", "--trace-dir", store).exit_code == 0
    (store / "zzz.jsonl").touch()
    empty = playhead("report", "-o", home / "q.html", "--trace-dir", store)
    assert (empty.exit_code, "zzz.jsonl is empty" in empty.stderr, "latest~1" in empty.stderr) == (3, True, True)


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
        with urllib.request.urlopen(said["url"]) as answer:
            assert b"Mount Zed" in answer.read()
        with socket.create_connection(("127.0.0.1", int(said["url"].rpartition(":")[2]))) as page:
            page.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert page.recv(9) == b"HTTP/1.1 "
            process.send_signal(number)
            assert (process.wait(20), process.stdout.read()) == (0, b"")
    assert browser.with_suffix(".opened").read_text().strip() == said["url"]
