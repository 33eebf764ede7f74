"""Of a thread that grows only what is new is read: the same comes out as of the whole request alone."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from playhead.importing.wire import Asked
from playhead.instrument.sent import Sent, read
from playhead.trace.redaction import Redactor
from tests.instrument.test_formats import REQUESTS, URLS

SECRET = "ghp_" + "Ab1" * 12


def asked(name: str, body: Any, separators: tuple[str, str] = (",", ":")) -> Asked:
    """Return a request as an SDK writes it."""
    return Asked("POST", URLS[name], {}, json.dumps(body, ensure_ascii=False, separators=separators).encode())


def said(sent: Sent, redactor: Redactor) -> Any:
    """Return all that is read of a request."""
    wire = sent.wire
    assert wire is not None
    return wire.model, wire.messages, wire.tools, wire.parameters, wire.body, sent.identity(redactor)


def known(name: str, *bodies: Any, **more: Any) -> int:
    """Send one request after the other; return how many messages of the last were known, which changes nothing of what is read."""
    redactor = Redactor()
    redactor.add_secret("sk-known-123456", "KEY")
    last: Sent | None = None
    for each in bodies:
        grown, alone = (read(asked(name, each, **more), before) for before in (last, None))
        assert said(grown, redactor) == said(alone, redactor)
        last = grown
    assert last is not None
    return last.known


@pytest.mark.parametrize("name", REQUESTS)
def test_a_request_after_another_reads_as_it_does_alone(name: str) -> None:
    """In each format, cut at each message; also with another order of fields, and in JSON with spaces, which is read anew."""
    body, _, _ = REQUESTS[name]
    wire = read(asked(name, body), None).wire
    assert wire is not None
    thread = wire.format.thread
    for whole in (body, {thread: body[thread], **body}):
        cut = [{**whole, thread: whole[thread][:number]} for number in range(1, len(whole[thread]))]
        assert sum(known(name, first, whole) for first in cut)
        assert not sum(known(name, first, whole, separators=(", ", ": ")) for first in cut)
        assert not sum(known(name, {**first, "model": "other"}, whole) for first in cut)
    twins = [{"metadata": {"copy": body[thread][:number]}, thread: body[thread][:1]} for number in (1, 2)]
    assert not known(name, *twins)


TEXTS = st.text() | st.sampled_from(
    ['"}],"messages":[{"role":"x"}', '},{"role":', "]", SECRET, "sk-known-123456", "\\"]
)
MESSAGES = st.lists(
    st.fixed_dictionaries({"role": st.sampled_from(["user", "assistant"]), "content": TEXTS}), max_size=4
)


@settings(deadline=None, max_examples=150)
@given(first=MESSAGES, more=MESSAGES, after=st.dictionaries(TEXTS, MESSAGES, max_size=2), other=st.booleans())
def test_any_thread_that_grows_reads_as_a_whole_one(first: Any, more: Any, after: Any, other: bool) -> None:
    """Whatever the texts hold: brackets, credentials, what looks like a message; and whatever stands beside the thread."""
    beside = {"model": "m", "metadata": after}
    begin = [{"role": "user", "content": "other"}, *first[1:]] if other else first
    threads = (begin, [*first, *more], [*first, *more, *more], [*first, *more, *more, *first])
    known("openai-chat", *({"messages": each, **beside} for each in threads))
