"""Requests to a collector: what its answers mean, and what becomes of each span."""

from __future__ import annotations

import time
from email.utils import formatdate
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

import pytest

from playhead.spans import SpanBuilder, delivery
from playhead.spans.delivery import Answer, Delivered, Otlp, Pump, Sink, read_answer
from playhead.spans.destination import Destination, named
from playhead.spans.run_export import RunExport
from tests.proving import bound
from tests.spans.collector import OK, Collector, Received, Reply, at_most, rejecting
from tests.spans.spans import GOLDEN, span

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from opentelemetry.sdk.trace import ReadableSpan

SECRET = "hunter22-hunter22"


def spans(count: int, **attributes: Any) -> list[ReadableSpan]:
    """Return so many spans, numbered from 1."""
    return [span(number, **attributes) for number in range(1, count + 1)]


def ids(*numbers: int) -> list[str]:
    """Return the ids of spans by their numbers."""
    return [f"{number:016x}" for number in numbers]


def deliver(collector: Collector, count: int = 4, **attributes: Any) -> Delivered:
    """Deliver so many spans."""
    sink = Otlp(named(collector.address))
    try:
        return sink.deliver(spans(count, **attributes))
    finally:
        sink.close()


def test_a_request_is_as_the_protocol_wants_it(collector: Collector) -> None:
    """Protobuf, packed by gzip, to the path for traces, with the headers that were given, over one connection."""
    sink = Otlp(named(collector.address, {"Authorization": "Bearer x"}))
    for _ in range(2):
        assert sink.deliver(spans(2)) == Delivered(settled=2)
    sink.close()
    first, second = collector.requests
    assert (first.path, first.ids) == ("/v1/traces", ids(1, 2))
    assert first.headers["content-type"] == "application/x-protobuf"
    assert first.headers["content-encoding"] == "gzip"
    assert first.headers["authorization"] == "Bearer x"
    assert second.headers == first.headers
    Otlp(Destination(collector.address, compression="none")).deliver(spans(3))
    assert collector.requests[-1].ids == ids(1, 2, 3)
    assert "content-encoding" not in collector.requests[-1].headers


MEANINGS = {
    "accepted": (200, 202),
    "unusable": (307, 401, 403, 404, 415),
    "refused": (400, 422),
    "too-large": (413,),
    "unavailable": (408, 429, 502, 503),
    "failed": (500,),
}


@pytest.mark.parametrize(("status", "meaning"), [(each, meaning) for meaning in MEANINGS for each in MEANINGS[meaning]])
def test_an_answer_means_what_its_status_says(collector: Collector, status: int, meaning: str) -> None:
    """What is wrong for now, what is wrong with these spans, and what is wrong with the endpoint are told apart."""
    collector.usual = Reply(status, {"Location": "http://127.0.0.1:9/"})
    answer = Otlp(named(collector.address)).post(b"")
    assert answer.meaning == meaning
    assert len(collector.requests) == 1


RETRY_AFTER = {"7": 7.0, "0": 0.0, "100000": 300.0, formatdate(0): 0.0, "nonsense": None, "nan": None, None: None}


@pytest.mark.parametrize(("header", "seconds"), RETRY_AFTER.items())
def test_a_collector_says_when_it_wants_to_be_asked_again(
    collector: Collector, header: str | None, seconds: float | None
) -> None:
    """In seconds or as a date; more than five minutes is cut, and nonsense counts as nothing."""
    collector.usual = Reply(429, {} if header is None else {"Retry-After": header})
    assert Otlp(named(collector.address)).post(b"").retry_after_s == seconds


@pytest.mark.parametrize(
    ("address", "meaning", "reason"),
    [
        ("http://127.0.0.1:9", "unavailable", "connection refused"),
        ("http://127.0.0.1:4317", "unavailable", "connection refused; port 4317 is usually for gRPC"),
        ("http://no.such.host.invalid", "unavailable", "name"),
    ],
)
def test_that_there_is_no_connection_is_told_in_a_few_words(address: str, meaning: str, reason: str) -> None:
    """Not in those of the libraries, which repeat addresses and headers."""
    answer = Otlp(named(address)).post(b"")
    assert (answer.meaning, reason in answer.reason) == (meaning, True), answer


def test_tls_that_is_not_spoken_there_does_not_mend_itself(collector: Collector) -> None:
    """So it is not tried for ever."""
    answer = Otlp(named(collector.address.replace("http:", "https:"))).post(b"")
    assert answer == Answer("unusable", "the TLS certificate is not trusted, or TLS is not spoken there")


def test_what_a_collector_repeats_of_a_key_is_hidden(collector: Collector) -> None:
    """And its words are one line, that steers no terminal."""
    collector.usual = Reply(401, body=f"bad key {SECRET}\r\n\x1b[2J".encode())
    answer = Otlp(named(collector.address, {"Authorization": f"Bearer {SECRET}"})).post(b"")
    assert answer == Answer("unusable", "401 Unauthorized: bad key [hidden]   [2J")


def test_a_slow_collector_is_waited_for_no_longer_than_asked(collector: Collector) -> None:
    """A request takes as long as it may, and not longer."""
    collector.usual = Reply(delay_s=1.0)
    started = time.monotonic()
    assert Otlp(named(collector.address)).post(b"", timeout_s=0.1) == Answer("unavailable", "it did not answer in time")
    assert time.monotonic() - started < bound(0.9)


def test_a_page_is_no_collector(collector: Collector) -> None:
    """What was sent to it is not delivered, nothing is given up, and what to mend is said."""
    collector.usual = Reply(headers={"Content-Type": "text/html; charset=utf-8"}, body=b"<html>Log in</html>")
    stopped = Answer(
        "unusable",
        "200, but with text/html instead of OTLP's answer; "
        "the address is that of a page, a proxy or a login: name the collector's own, and its key",
    )
    assert deliver(collector) == Delivered(stopped=stopped)


def test_a_collector_that_hangs_up_is_asked_again_later(collector: Collector) -> None:
    """The connection is lost, not the span; the next request has a new one."""
    collector.replies = [Reply(hang_up=True)]
    wire = Otlp(named(collector.address))
    assert [wire.post(b"").meaning, wire.post(b"").meaning] == ["unavailable", "accepted"]


def test_a_netrc_does_not_replace_the_headers(
    collector: Collector, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    """As it would by default."""
    (tmp_path / "netrc").write_text("machine 127.0.0.1 login other password other")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    Otlp(named(collector.address, {"Authorization": "mine"})).post(b"")
    assert collector.requests[0].headers["authorization"] == "mine"


def test_a_request_that_is_too_large_is_split(collector: Collector) -> None:
    """Until its parts are taken, in order, each span once."""
    collector.rule = at_most(900)
    assert deliver(collector, 8, text="x" * 200) == Delivered(settled=8)
    accepted = [each.ids for each in collector.requests if each.reply == OK]
    assert [number for part in accepted for number in part] == ids(*range(1, 9))
    assert {len(part) for part in accepted} == {2}


def test_spans_are_parted_by_size_before_anybody_complains(
    collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No request is larger than what collectors take, except for a span that is so by itself."""
    monkeypatch.setattr(delivery, "MAX_BYTES", 600)
    assert deliver(collector, 5, text="x" * 200) == Delivered(settled=5)
    assert [each.ids for each in collector.requests] == [ids(1, 2), ids(3), ids(4, 5)]


def refusing(reply: Reply, *numbers: int) -> Callable[[Received], Reply]:
    """Return a rule by which a request with one of these spans gets this answer."""
    bad = set(ids(*numbers))
    return lambda received: reply if bad & set(received.ids) else OK


@pytest.mark.parametrize("bad", [(1,), (77, 128), (5, 6, 90)], ids=str)
@pytest.mark.parametrize("reply", [Reply(422, body=b"bad span"), rejecting(1, "bad span")], ids=["422", "partial"])
def test_each_span_that_is_refused_is_found(collector: Collector, bad: tuple[int, ...], reply: Reply) -> None:
    """A request that is refused, or rejected in part, is halved until the spans are known; the others arrive."""
    collector.rule = refusing(reply, *bad)
    why = f"422 {HTTPStatus(422).phrase}: bad span" if reply.status != 200 else "bad span"
    sink, delivered = Otlp(named(collector.address)), Delivered()
    left, settled = spans(128), 0
    while left:
        part = sink.deliver(left)
        delivered.refused |= {settled + place: reason for place, reason in part.refused.items()}
        left, settled = left[part.settled :], settled + part.settled
    assert delivered.refused == {number - 1: why for number in bad}
    accepted = [span for each in collector.requests if each.reply == OK for span in each.ids]
    assert accepted == ids(*(number for number in range(1, 129) if number not in bad))


def test_a_span_that_never_fits_is_refused(collector: Collector) -> None:
    """It is named with the collector's answer, and the others arrive."""
    collector.rule = at_most(900)
    sink = Otlp(named(collector.address))
    too_large = f"413 {HTTPStatus(413).phrase}"
    assert sink.deliver([span(1), span(2, text="x" * 5000), span(3)]) == Delivered(3, {1: too_large})
    assert sink.deliver([span(4, text="x" * 5000)]) == Delivered(1, {0: too_large})


@pytest.mark.slow
@pytest.mark.parametrize(
    ("usual", "stopped"),
    [
        (Reply(400, body=b"no tenant"), Answer("unusable", "400 Bad Request: no tenant")),
        (rejecting(1, "no tenant"), Answer("unusable", "no tenant")),
        (Reply(500), Answer("failed", "500 Internal Server Error")),
    ],
    ids=["refuses", "rejects", "breaks"],
)
def test_a_collector_that_takes_no_span_is_wrong_itself(collector: Collector, usual: Reply, stopped: Answer) -> None:
    """No span is given up for that, and a delivery is 32 requests at most."""
    collector.usual = usual
    sink = Otlp(named(collector.address))
    for number in range(1, 4):
        assert sink.deliver(spans(512)) == Delivered(stopped=stopped)
        assert len(collector.requests) <= number * delivery.MAX_REQUESTS


def test_a_span_at_which_a_collector_breaks_does_not_block_the_others(collector: Collector) -> None:
    """When it breaks a second time, the span is found and refused, for the collector takes the others."""
    collector.rule = refusing(Reply(500), 3)
    sink = Otlp(named(collector.address))
    assert sink.deliver(spans(8)) == Delivered(stopped=Answer("failed", "500 Internal Server Error"))
    assert sink.deliver(spans(8)) == Delivered(8, {2: "500 Internal Server Error"})
    assert collector.counts.keys() == set(ids(1, 2, 4, 5, 6, 7, 8))


def test_a_pause_grows_unless_the_collector_says_how_long_it_is() -> None:
    """Each failure doubles it, up to a limit; a success ends it."""
    answers: list[Answer | None] = [Answer("unavailable")] * 8
    answers += [Answer("unavailable", retry_after_s=30), Answer("unusable"), None]

    class Backend(Sink):
        def deliver(self, spans: Sequence[ReadableSpan], *, timeout_s: float | None = None) -> Delivered:
            answer = answers.pop(0)
            return Delivered(0 if answer else len(spans), stopped=answer)

    pump, pauses = Pump(Backend()), []
    path = GOLDEN / "reactive-tools.jsonl"
    pump.runs.append(RunExport(path, SpanBuilder))
    while answers:
        pump.again_at = 0.0
        pump.step()
        pauses.append(max(pump.again_at - time.monotonic(), 0.0))
    wanted = [1, 2, 4, 8, 16, 32, 60, 60, 30, 60, 0]
    assert all(0.75 * least <= pause <= 1.25 * least for pause, least in zip(pauses, wanted, strict=True))


@pytest.mark.parametrize(
    ("content_type", "body", "meaning"),
    [
        ("application/x-protobuf", b"", "accepted"),
        ("text/plain", b"\n", "accepted"),
        ("", rejecting(3, "too old").body, "refused"),
        ("application/json", b"{}", "accepted"),
        ("application/json; charset=utf-8", b'{"partialSuccess": {"rejectedSpans": "2"}}', "refused"),
        ("text/plain", b'{"partial_success": {"rejected_spans": 2}}', "refused"),
        ("application/json", b'{"partialSuccess": {"rejectedSpans": "many"}}', None),
        ("application/json", b"<html>", None),
        ("", b"<!DOCTYPE html>", None),
        ("application/x-protobuf", b"\xff<html>", None),
        ("text/plain", b"Welcome", None),
    ],
)
def test_an_answer_is_one_only_when_it_is_otlps(content_type: str, body: bytes, meaning: str | None) -> None:
    """Nothing, its message as protobuf, or JSON; anything else does not come from a collector."""
    answer = read_answer(body, content_type)
    assert (answer and answer.meaning) == meaning


def test_the_certificate_of_the_collector_overrides_the_one_for_every_program(monkeypatch: pytest.MonkeyPatch) -> None:
    """`REQUESTS_CA_BUNDLE` does not replace the file that OTLP's variable names, nor hides that it does not exist."""
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", "/theirs.pem")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_CERTIFICATE", "/ours.pem")
    answer = Otlp(named("https://127.0.0.1:9")).post(b"")
    assert (answer.meaning, "/ours.pem" in answer.reason) == ("unusable", True)


def test_what_stops_is_said_and_what_was_settled_stays(collector: Collector, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of several requests the second is not taken: the first is settled, the others wait."""
    monkeypatch.setattr(delivery, "MAX_BYTES", 600)
    collector.replies = [OK, Reply(503, {"Retry-After": "9"})]
    delivered = deliver(collector, 6, text="x" * 200)
    stopped = Answer("unavailable", "503 Service Unavailable", retry_after_s=9.0)
    assert delivered == Delivered(settled=1, stopped=stopped)
