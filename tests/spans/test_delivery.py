"""Requests to a collector: what its answers mean, and what becomes of each span."""

from __future__ import annotations

import time
from email.utils import formatdate
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

import pytest

from playhead.spans import delivery
from playhead.spans.delivery import Delivered, Otlp, Patience, Refusal
from playhead.spans.destination import Destination, named
from playhead.spans.wire import Answer, Rejected, Wire, read_answer
from tests.proving import bound
from tests.spans.collector import OK, Collector, Received, Reply, rejecting
from tests.spans.spans import span

if TYPE_CHECKING:
    from collections.abc import Callable

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


def test_a_request_is_as_the_protocol_wants_it(collect: Callable[..., Collector]) -> None:
    """Protobuf, packed by gzip, to the path for traces, with the headers that were given, over one connection."""
    collector = collect()
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


@pytest.mark.parametrize("compression", ["gzip", "deflate", "none"])
def test_a_request_is_packed_as_asked(collect: Callable[..., Collector], compression: Any) -> None:
    """The collector reads the same spans, however they were packed."""
    collector = collect()
    Otlp(Destination(collector.address, compression=compression)).deliver(spans(3))
    assert collector.requests[0].ids == ids(1, 2, 3)


@pytest.mark.parametrize(
    ("status", "meaning"),
    [
        (200, "accepted"),
        (202, "accepted"),
        (307, "unusable"),
        (400, "refused"),
        (401, "unusable"),
        (403, "unusable"),
        (404, "unusable"),
        (408, "unavailable"),
        (413, "too-large"),
        (415, "unusable"),
        (422, "refused"),
        (429, "unavailable"),
        (500, "failed"),
        (502, "unavailable"),
        (503, "unavailable"),
    ],
)
def test_an_answer_means_what_its_status_says(collect: Callable[..., Collector], status: int, meaning: str) -> None:
    """What is wrong for now, what is wrong with these spans, and what is wrong with the endpoint are told apart."""
    collector = collect(usual=Reply(status, {"Location": "http://127.0.0.1:9/"}))
    answer = Wire(named(collector.address)).post(b"")
    assert answer.meaning == meaning
    assert len(collector.requests) == 1


@pytest.mark.parametrize(
    ("header", "seconds"),
    [("7", 7.0), ("0", 0.0), ("100000", 300.0), ("nonsense", None), ("nan", None), (None, None)],
)
def test_a_collector_says_when_it_wants_to_be_asked_again(
    collect: Callable[..., Collector], header: str | None, seconds: float | None
) -> None:
    """In seconds; more than five minutes is cut, and nonsense is as good as nothing."""
    collector = collect(usual=Reply(429, {} if header is None else {"Retry-After": header}))
    assert Wire(named(collector.address)).post(b"").retry_after_s == seconds


def test_or_as_a_date(collect: Callable[..., Collector]) -> None:
    """The other form of `Retry-After`."""
    collector = collect(usual=Reply(503, {"Retry-After": formatdate(time.time() + 20)}))
    pause = Wire(named(collector.address)).post(b"").retry_after_s
    assert pause is not None
    assert 15 < pause <= 20


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
    answer = Wire(named(address)).post(b"")
    assert (answer.meaning, reason in answer.reason) == (meaning, True), answer


def test_tls_that_is_not_spoken_there_does_not_mend_itself(collect: Callable[..., Collector]) -> None:
    """So it is not tried for ever."""
    answer = Wire(named(collect().address.replace("http:", "https:"))).post(b"")
    assert answer == Answer("unusable", "the TLS certificate is not trusted, or TLS is not spoken there")


def test_what_a_collector_repeats_of_a_key_is_hidden(collect: Callable[..., Collector]) -> None:
    """And its words are one line, that steers no terminal."""
    collector = collect(usual=Reply(401, body=f"bad key {SECRET}\r\n\x1b[2J".encode()))
    answer = Wire(named(collector.address, {"Authorization": f"Bearer {SECRET}"})).post(b"")
    assert answer == Answer("unusable", "401 Unauthorized: bad key [hidden]")


def test_a_slow_collector_is_waited_for_no_longer_than_asked(collect: Callable[..., Collector]) -> None:
    """A request takes as long as it may, and not longer."""
    collector = collect(usual=Reply(delay_s=1.0))
    started = time.monotonic()
    assert Wire(named(collector.address)).post(b"", timeout_s=0.1) == Answer("unavailable", "it did not answer in time")
    assert time.monotonic() - started < bound(0.9)


@pytest.mark.parametrize("part", ["headers", "body"])
def test_a_collector_that_drips_is_cut_off(collect: Callable[..., Collector], part: str) -> None:
    """The limit is for the whole request, however regularly a byte comes; the next request has a new connection."""
    collector = collect(Reply(drip=part), usual=OK)
    wire = Wire(named(collector.address))
    started = time.monotonic()
    assert wire.post(b"", timeout_s=0.2) == Answer("unavailable", "it did not answer in time")
    assert 0.1 < time.monotonic() - started < bound(1.5)
    assert wire.post(b"").meaning == "accepted"


@pytest.mark.parametrize(
    ("content_type", "body", "expected"),
    [
        ("application/x-protobuf", b"", Rejected()),
        ("", b"", Rejected()),
        ("text/plain", b"\n", Rejected()),
        ("application/x-protobuf", rejecting(3, "too old").body, Rejected(3, "too old")),
        ("", rejecting(3, "too old").body, Rejected(3, "too old")),
        ("application/json", b"{}", Rejected()),
        (
            "application/json; charset=utf-8",
            b'{"partialSuccess": {"rejectedSpans": "2", "errorMessage": "x"}}',
            Rejected(2, "x"),
        ),
        ("text/plain", b'{"partial_success": {"rejected_spans": 2}}', Rejected(2)),
        ("application/json", b'{"partialSuccess": {"rejectedSpans": "many"}}', None),
        ("application/json", b"<html>", None),
        ("text/html", b"<html>Log in</html>", None),
        ("", b"<!DOCTYPE html>", None),
        ("application/x-protobuf", b"\xff<html>", None),
        ("text/plain", b"Welcome", None),
    ],
)
def test_an_answer_is_one_only_when_it_is_otlps(content_type: str, body: bytes, expected: Rejected | None) -> None:
    """Nothing, its message as protobuf, or JSON; anything else does not come from a collector."""
    assert read_answer(body, content_type) == expected


def test_a_page_is_no_collector(collect: Callable[..., Collector]) -> None:
    """What was sent to it is not delivered, nothing is given up, and what to mend is said."""
    page = Reply(headers={"Content-Type": "text/html; charset=utf-8"}, body=b"<html>Log in</html>")
    stopped = Answer(
        "unusable",
        "200, but with text/html instead of OTLP's answer; "
        "the address is that of a page, a proxy or a login: name the collector's own, and its key",
    )
    assert deliver(collect(usual=page)) == Delivered(stopped=stopped)


def test_a_collector_that_hangs_up_is_asked_again_later(collect: Callable[..., Collector]) -> None:
    """The connection is lost, not the span; the next request has a new one."""
    collector = collect(Reply(hang_up=True))
    wire = Wire(named(collector.address))
    assert [wire.post(b"").meaning, wire.post(b"").meaning] == ["unavailable", "accepted"]


def test_a_netrc_does_not_replace_the_headers(
    collect: Callable[..., Collector], monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    """As it would by default."""
    (tmp_path / "netrc").write_text("machine 127.0.0.1 login other password other")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    collector = collect()
    Wire(named(collector.address, {"Authorization": "mine"})).post(b"")
    assert collector.requests[0].headers["authorization"] == "mine"


def test_a_request_that_is_too_large_is_split(collect: Callable[..., Collector]) -> None:
    """Until its parts are taken, in order, each span once."""
    collector = collect(most_bytes=900)
    assert deliver(collector, 8, text="x" * 200) == Delivered(settled=8)
    accepted = [each.ids for each in collector.requests if each.reply == OK]
    assert [number for part in accepted for number in part] == ids(*range(1, 9))
    assert {len(part) for part in accepted} == {2}


def test_spans_are_parted_by_size_before_anybody_complains(
    collect: Callable[..., Collector], monkeypatch: pytest.MonkeyPatch
) -> None:
    """No request is larger than what collectors take, except for a span that is so by itself."""
    monkeypatch.setattr(delivery, "MAX_BYTES", 600)
    collector = collect()
    assert deliver(collector, 5, text="x" * 200) == Delivered(settled=5)
    assert [each.ids for each in collector.requests] == [ids(1, 2), ids(3), ids(4, 5)]


def test_a_span_that_is_too_large_by_itself_goes_without_its_content(collect: Callable[..., Collector]) -> None:
    """It is said which one, and the others keep theirs."""
    collector = collect(most_bytes=900)
    sink = Otlp(named(collector.address))
    delivered = sink.deliver([span(1), span(2, text="x" * 5000), span(3, text="x" * 300)])
    assert delivered == Delivered(settled=3, without_content=[1])
    kept = {each.name: {item.key for item in each.attributes} for each in collector.taken}
    assert kept == {"span 1": set(), "span 2": {"playhead.content_left_out"}, "span 3": {"text"}}


def test_a_span_that_never_fits_is_refused(collect: Callable[..., Collector]) -> None:
    """It is counted, and the others go on."""
    refusal = Refusal(1, 1, 1, f"413 {HTTPStatus(413).phrase}")
    collector = collect(most_bytes=130)
    sink = Otlp(named(collector.address))
    huge = span(2, **{f"attribute.{number}": "x" * 50 for number in range(10)})
    assert sink.deliver([span(1), huge, span(3)]) == Delivered(settled=3, refusals=[refusal])


def refusing(*numbers: int) -> Callable[[Received], Reply]:
    """Return a rule by which a request with one of these spans is refused."""
    bad = set(ids(*numbers))
    return lambda received: Reply(422, body=b"bad span") if bad & set(received.ids) else OK


@pytest.mark.parametrize("bad", [(1,), (77,), (128,), (5, 6, 90), (1, 2, 3, 4)], ids=str)
def test_only_the_spans_that_are_refused_are_lost(collect: Callable[..., Collector], bad: tuple[int, ...]) -> None:
    """Of a request that is refused, each span is found that the collector does not take, by few more requests."""
    collector = collect(rule=refusing(*bad))
    refusals = [Refusal(number - 1, number - 1, 1, f"422 {HTTPStatus(422).phrase}: bad span") for number in bad]
    assert deliver(collector, 128) == Delivered(settled=128, refusals=refusals)
    assert collector.counts.keys() == set(ids(*range(1, 129))) - set(ids(*bad))
    assert set(collector.counts.values()) == {1}
    assert len(collector.requests) <= 1 + 14 * len(bad)


def test_a_collector_that_refuses_everything_is_not_asked_for_each_span(collect: Callable[..., Collector]) -> None:
    """After some requests it is known that it is not the spans: the others are refused together, and that is said."""
    collector = collect(usual=Reply(400, body=b"no tenant"))
    sink = Otlp(named(collector.address))
    delivered = sink.deliver(spans(512))
    assert (delivered.settled, delivered.refused) == (512, 512)
    assert {refusal.reason for refusal in delivered.refusals if refusal.first != refusal.last} == {
        "400 Bad Request: no tenant; it has taken nothing at all, so these were not tried one by one"
    }
    assert len(collector.requests) < 2 * delivery.MAX_REFUSALS
    before = len(collector.requests)
    assert sink.deliver(spans(512)).refused == 512
    assert len(collector.requests) == before + 1


def test_one_delivery_is_so_many_requests_at_most(
    collect: Callable[..., Collector], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is left then has not been given up: it is handed over again, and each span is still sent once."""
    monkeypatch.setattr(delivery, "MAX_REQUESTS", 10)
    bad = range(2, 33, 2)
    collector = collect(rule=refusing(*bad))
    sink, left, refused = Otlp(named(collector.address)), spans(32), 0
    while left:
        delivered = sink.deliver(left)
        assert delivered.stopped is None
        left, refused = left[delivered.settled :], refused + delivered.refused
    assert (refused, set(collector.counts)) == (16, set(ids(*range(1, 33, 2))))
    assert set(collector.counts.values()) == {1}


def test_a_span_at_which_a_collector_breaks_does_not_block_the_others(collect: Callable[..., Collector]) -> None:
    """After three attempts it is found and refused, for the collector takes the others."""
    bad = set(ids(3))
    collector = collect(rule=lambda received: Reply(500) if bad & set(received.ids) else OK)
    sink = Otlp(named(collector.address))
    broken = Delivered(stopped=Answer("failed", "500 Internal Server Error"))
    assert [sink.deliver(spans(8)) for _ in range(delivery.BREAKS)] == [broken] * delivery.BREAKS
    assert sink.deliver(spans(8)) == Delivered(8, [Refusal(2, 2, 1, "500 Internal Server Error")])
    assert collector.counts.keys() == set(ids(*range(1, 9))) - bad


def test_a_collector_that_breaks_at_everything_is_broken_itself(collect: Callable[..., Collector]) -> None:
    """No span is refused for that, however often it is tried."""
    sink = Otlp(named(collect(usual=Reply(500)).address))
    broken = Delivered(stopped=Answer("failed", "500 Internal Server Error"))
    assert [sink.deliver(spans(8)) for _ in range(9)] == [broken] * 9


def test_a_partial_success_is_counted(collect: Callable[..., Collector]) -> None:
    """The request was taken, and some of it was not: as many as the collector says, in its words."""
    collector = collect(rejecting(3, "too old\n"))
    delivered = deliver(collector)
    assert (delivered.settled, delivered.refused) == (4, 3)
    assert delivered.refusals == [Refusal(0, 3, 3, "too old ")]
    assert len(collector.requests) == 1  # it has the others: sent again, some would be there twice


def test_what_stops_is_said_and_what_was_settled_stays(
    collect: Callable[..., Collector], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of several requests the second is not taken: the first is settled, the others wait."""
    monkeypatch.setattr(delivery, "MAX_BYTES", 600)
    collector = collect(OK, Reply(503, {"Retry-After": "9"}))
    delivered = deliver(collector, 6, text="x" * 200)
    stopped = Answer("unavailable", "503 Service Unavailable", retry_after_s=9.0)
    assert delivered == Delivered(settled=1, stopped=stopped)


def test_patience_grows_and_heeds_what_it_is_told() -> None:
    """Each failure doubles the pause, up to a limit; a collector's own word stands before that; a success ends it."""
    patience = Patience(1.0, 4.0)
    pauses = []
    for _ in range(4):
        patience.failed(Answer("unavailable"))
        pauses.append(patience.again_at - time.monotonic())
    assert [round(pause / wanted) for pause, wanted in zip(pauses, (1, 2, 4, 4), strict=True)] == [1, 1, 1, 1]
    patience.failed(Answer("unavailable", retry_after_s=30))
    assert 29 < patience.again_at - time.monotonic() <= 30
    patience.succeeded()
    assert (patience.again_at, patience.failing_since) == (0.0, None)
