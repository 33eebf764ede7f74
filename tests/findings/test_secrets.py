"""No credential that a request carries leaves the process but to the provider: not in the trace, spans, errors or logs."""

from __future__ import annotations

import base64
import gzip
import json
import logging
import re
import traceback
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest

from playhead import Agent
from playhead.errors import ModelRequestError, NotReplayableError, RunError, UsageError
from playhead.kernel.models import resolve_model
from playhead.spans import live, live_export
from playhead.testing import ScriptedModel, call, text
from tests.answering import answering
from tests.findings.adapter import agent, cli, replay, reproduce, run
from tests.options import grouped
from tests.proving import sample

if TYPE_CHECKING:
    from collections.abc import Iterator
    from email.message import Message
    from pathlib import Path

    from playhead.trace.types import Completion, Request

PEM = "-----BEGIN PRIVATE KEY-----\nMIIEvSECRETpem1234567890abcdefghij\nQ0SECRETpem2234567890\n-----END PRIVATE KEY-----\n"
SERVICE_ACCOUNT = {
    "type": "service_account",
    "project_id": "shop",
    "private_key_id": "SECRETkeyid1234567890",
    "private_key": PEM,
    "client_email": "SECRETrobot1@shop.iam.gserviceaccount.com",
}
JWT = "eyJhbGciOiJSUzI1NiJ9.SECRETjwt1234567890.c2ln-SECRETjwt_sig12345"
BASIC = base64.b64encode(b"SECRETuser1:SECRETbasic1234567").decode()
SIGNED = "https://shop.blob.core.windows.net/c/f.json?sv=2024-05-04&se=2027-01-01&sig=SECRETsas%2B1234567890%3D"

SHAPES: dict[str, dict[str, Any]] = {
    "azure_ad_token": {"azure_ad_token": JWT},
    "azure_client_secret": {"tenant_id": "SECRETtenant12345", "client_id": "c", "client_secret": "SECRETclient~12345_x.y"},
    "aws_secret_access_key": {"aws_secret_access_key": "wJalrSECRET1/K7MDENG/bPxRfiCY+XAMPLE=KEY"},
    "aws_bedrock_client": {"aws_bedrock_client": {"auth": ["SECRETbedrock1234567890"]}},
    "vertex_credentials": {"vertex_credentials": SERVICE_ACCOUNT},
    "oci_key": {"oci_key": PEM, "oci_fingerprint": "12:SECRETaa12345:ff", "oci_user": "ocid1.user..SECRETuser123"},
    "user": {"user": "SECRETuser-4711@mail.example"},
    "Authorization": {"extra_headers": {"Authorization": f"Bearer {JWT}"}},
    "Authorization Basic": {"extra_headers": {"Authorization": f"Basic {BASIC}"}},
    "Cookie": {"extra_headers": {"Cookie": "sid=SECRETcookie1/234+567==; theme=dark; id=SECRETid12345"}},
    "Proxy-Authorization": {"headers": {"Proxy-Authorization": f"Basic {BASIC}"}},
    "body auth_token": {"extra_body": {"auth_token": "SECRETbody1234567890", "passphrase": "SECRETpassphrase1234", "min_p": 0.1}},
    "body data_sources": {
        "extra_body": {"data_sources": [{"type": "azure_search", "parameters": {"authentication": {"key": "SECRETsearch1234567890"}}}]}
    },
    "tool_choice with headers": {"tool_choice": {"type": "mcp", "headers": {"Authorization": "Bearer SECRETchoice1234567890"}}},
    "query key": {"extra_query": {"key": "SECRETquerykey1234567890", "api-version": "2024-06-01"}},
    "signed url": {"input_url": SIGNED},
    "url with a password": {"proxy": "http://SECRETproxyuser1:SECRETproxypw%21234@proxy.example:3128"},
}  # fmt: skip


def needles(parameters: Any) -> set[str]:
    """Return every secret in a value as text, and as addresses and base64 may hold it."""
    whole = json.dumps(parameters) + json.dumps(parameters, ensure_ascii=False) + repr(parameters)
    found = {
        "SECRET",
        *(each[:-4] for each in (BASIC, base64.b64encode(b"SECRETbasic1234567").decode()) if each in whole),
    }
    return found | {base64.b64encode(f"{' ' * shift}SECRET".encode())[4:-4].decode() for shift in (1, 2)} - {""}


def leaks(parameters: Any, *said: str | bytes) -> list[str]:
    """Return the secrets of a value that stand in what was said or written."""
    texts = [each.decode(errors="replace") if isinstance(each, bytes) else each for each in said]
    found = [(needle, each.find(needle), each) for needle in needles(parameters) for each in texts if needle in each]
    return [f"{needle}: {each[max(0, place - 60) : place + 60]}" for needle, place, each in found]


def everything_of(error: BaseException) -> list[str]:
    """Return all that an exception says: itself, what led to it, its traceback, and what the run had reached."""
    said, seen = [*traceback.format_exception(error)], []
    left: list[BaseException | None] = [error]
    while left:
        each = left.pop()
        if each is not None and each not in seen:
            seen.append(each)
            said += [str(each), repr(each), repr(each.args), repr(getattr(each, "__notes__", ()))]
            result = getattr(each, "result", None)
            said += [repr(result), repr(getattr(result, "steps", ())), str(getattr(result, "debrief", ""))]
            left += [each.__cause__, each.__context__]
    return said


def bytes_below(folder: Path) -> bytes:
    """Return every byte of every file of a folder, and the names."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return b"\n".join([*(path.name.encode() for path in files), *(path.read_bytes() for path in files)])


class Reflecting(ScriptedModel):
    """A model that repeats what it was sent: in its answer, and then in an error that another error led to."""

    def __init__(self) -> None:
        super().__init__([call("look"), text("never")])

    async def complete(self, request: Request) -> Completion:
        """Answer the first request, and fail at the second."""
        sent = json.dumps(request.parameters)
        if request.number == 0:
            completion = await super().complete(request)
            return type(completion)(f"You sent {sent}", tool_calls=completion.tool_calls)
        words = f"{sent} {request.parameters!r} {quote(sent)} {base64.b64encode(sent.encode()).decode()}"
        cause = ValueError(f"401 for {words}")
        cause.add_note(words)
        raise ModelRequestError(f"denied: {words}") from cause


@pytest.fixture
def server() -> Iterator[Provider]:
    """Serve a provider, and whatever else is asked of it, on this machine."""
    served = Provider()
    with answering(served.answer) as served.address:
        yield served


class Provider:
    """Refuses every request with all that it was sent, and keeps the bodies."""

    def __init__(self) -> None:
        self.address = ""
        self.bodies: list[bytes] = []
        self.requests: list[str] = []

    def answer(self, path: str, headers: Message, body: bytes) -> tuple[int, dict[str, str], list[bytes]]:
        """Answer a request."""
        self.bodies.append(gzip.decompress(body) if headers.get("Content-Encoding") == "gzip" else body)
        if path.endswith("/v1/traces"):
            return 200, {}, []
        sent = f"{dict(headers)} {path} {body.decode()}"
        self.requests.append(sent)
        return 401, {}, [json.dumps({"error": {"message": f"denied {sent}", "headers": dict(headers)}}).encode()]


@pytest.mark.parametrize("shape", sample([*SHAPES], [*SHAPES][::4]))
def test_a_parameter_that_is_a_credential_stays_in_the_process(
    shape: str,
    tmp_path: Path,
    server: Provider,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """Neither the trace nor its spans on the wire nor the exception nor a log line holds it, though it is sent."""
    parameters = SHAPES[shape]
    caplog.set_level(logging.DEBUG, "playhead")
    monkeypatch.setattr(live._Current, "export", None)
    exported = live_export(server.address)
    model = Reflecting()

    def look() -> str:
        """Look."""
        raise ValueError(f"401 for {json.dumps(parameters)}")

    def tell(record: Any) -> None:
        if record.kind == "llm-failed":
            raise ValueError(f"about {json.dumps(parameters)}")

    made = agent([], [look], parameters=parameters, trace=tmp_path)
    made.model = model
    made.subscribe(None, tell)
    with pytest.raises(RunError) as raised:
        made.run_sync("go")
    exported.shutdown(5)
    assert model.requests[0].parameters == parameters
    outside: list[Any] = [
        bytes_below(tmp_path),
        *server.bodies,
        *everything_of(raised.value),
        caplog.text,
        *capfd.readouterr(),
    ]
    assert len(server.bodies) > 0
    assert leaks(parameters, *outside) == []


REAL: dict[str, Any] = {
    "extra_headers": {
        "Authorization": "Bearer SECRETbearer1234567890",
        "Cookie": "sid=SECRETcookie1234567890; b=SECRETb",
        "X-Proxy": f"Basic {BASIC}",
    },
    "extra_body": {"auth": {"token": "SECRETbody1234567890"}, "pw": "SECRETpw"},
    "extra_query": {"sig": "SECRETquery/1234567890=", "t": "SECRETt"},
}
AZURE = {"azure_ad_token": JWT, "api_version": "2024-06-01", "extra_headers": {"X-Gate": "SECRETgate12345"}}
KEYS = {
    "OPENAI_API_KEY": "sk-SECRETkey1234567890",
    "ANTHROPIC_API_KEY": "sk-ant-SECRETkey1234567890",
}


def attempted(model: str, folder: Path, monkeypatch: pytest.MonkeyPatch, *, api_base: str, **options: Any) -> list[str]:
    """Run an agent on a real adapter, which fails; return all that the failure says and the trace holds."""
    for name, key in KEYS.items():
        monkeypatch.setenv(name, key)
    with pytest.raises((RunError, UsageError)) as raised:
        Agent(resolve_model(model, api_base=api_base), **grouped(trace=folder, retries=0, **options)).run_sync("go")
    return [bytes_below(folder).decode(errors="replace"), *everything_of(raised.value)]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "parameters"),
    [
        ("openai/x", REAL),
        ("azure/x", AZURE),
        ("anthropic/x", {"extra_headers": {"x-goog-token": "SECRETgoog12345"}}),
        ("ollama/x", {}),
    ],
)
def test_a_provider_that_repeats_the_request_in_its_error(
    model: str, parameters: dict[str, Any], tmp_path: Path, server: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Headers, body, address and key reach the provider only: not the error, nor its causes, nor the trace."""
    address = f"{server.address}/v1?sig=SECRETsig1234567890&t=SECRETq"
    said = attempted(model, tmp_path, monkeypatch, api_base=address, parameters=parameters)
    assert len(server.requests) == 1
    assert all(each in server.requests[0] for each in re.findall(r"SECRET\w+", json.dumps(parameters)))
    assert leaks(parameters, *said) == []


@pytest.mark.slow
@pytest.mark.parametrize("model", ["openai/x", "ollama/x"])
@pytest.mark.parametrize("user", ["SECRETuser12345:SECRETpass%2B1234", "SECRETtoken12345"])
def test_a_password_in_an_address_is_shown_nowhere(
    model: str, user: str, tmp_path: Path, server: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    """User and password of an address are neither in the trace nor in any error."""
    address = server.address.replace("//", f"//{user}@")
    assert leaks(user, *attempted(model, tmp_path, monkeypatch, api_base=address)) == []


def test_the_command_line_says_no_secret(tmp_path: Path, server: Provider) -> None:
    """Given on the command line or from the environment, a secret is in no output, also with a traceback."""
    environment = {"HEADERS": json.dumps(REAL["extra_headers"]), "PLAYHEAD_DEBUG": "1", **KEYS}
    options = ["--set", "extra_headers=env:HEADERS", "--set", f"extra_body={json.dumps(REAL['extra_body'])}"]
    where = ["--api-base", f"{server.address}/v1", "--trace-dir", str(tmp_path)]
    done = cli("run", "go", "--model", "openai/x", *where, *options, env=environment)
    assert (done.returncode, "Traceback" in done.stderr, len(server.requests)) == (2, True, 1)
    assert leaks(REAL, done.stdout, done.stderr, bytes_below(tmp_path)) == []


def test_only_known_parameters_are_recorded_by_value(tmp_path: Path) -> None:
    """The trace names every parameter sent; `record_parameters` adds values, whole or by path."""
    parameters = {"temperature": 0, "metadata": {"team": "x"}, "extra_headers": {"X-Title": "Shop", "X-Key": "SECRET1"}}
    result = run(agent([text("x")], parameters=parameters, trace=tmp_path / "a"))
    assert shape_of(result.trace_path) == {
        "temperature": 0,
        "metadata": "unrecorded",
        "extra_headers": {"X-Title": "unrecorded", "X-Key": "unrecorded"},
    }
    also = ["metadata", "extra_headers.X-Title"]
    result = run(agent([text("x")], parameters=parameters, record_parameters=also, trace=tmp_path / "b"))
    assert shape_of(result.trace_path) == {
        "temperature": 0,
        "metadata": {"team": "x"},
        "extra_headers": {"X-Title": "Shop", "X-Key": "unrecorded"},
    }
    assert reproduce(result.trace_path).identical


def shape_of(path: Path | None) -> Any:
    """Return the parameters of a run's first request, with one word for each that is not recorded."""
    [asked, *_] = [each for each in lines_of(path) if each["kind"] == "llm-requested"]
    return shown(asked["data"]["parameters"])


def lines_of(path: Path | None) -> list[dict[str, Any]]:
    """Return the events of a trace."""
    assert path is not None
    return [json.loads(line) for line in path.read_text().splitlines()]


def shown(value: Any) -> Any:
    """Return a recorded value with one word for each part that is not recorded."""
    if not isinstance(value, dict):
        return value
    return value["$type"] if "$type" in value else {name: shown(each) for name, each in value.items()}


TOKEN = {"temperature": 0, "extra_headers": {"X-Token": "SECRETtoken12345", "anthropic-beta": "b"}, "user": "SECRETu1"}
HOLES = "extra_headers.X-Token, user"


def recorded(folder: Path, **options: Any) -> Path:
    """Record a run with parameters that are not recorded."""
    path = run(agent([text("x")], parameters=TOKEN, trace=folder, **options)).trace_path
    assert path is not None
    return path


def test_a_replay_names_the_parameters_that_it_lacks(tmp_path: Path) -> None:
    """A replay without them sends nothing; given, they are sent and not recorded; a note says which were left out."""
    path, model = recorded(tmp_path), ScriptedModel([text("y")])
    with pytest.raises(NotReplayableError) as refused:
        replay(path, overrides={"model": model})
    assert str(refused.value) == (
        f"the recording does not hold the values of these request parameters: {HOLES}. Give them with "
        "parameters={NAME: …} (--set NAME=env:VARIABLE); None leaves one out"
    )
    assert model.requests == []
    given = {name: TOKEN[name] for name in ("extra_headers", "user")}
    same = replay(path, overrides={"model": model, "parameters": given}, trace=tmp_path / "again")
    assert (model.requests[0].parameters, same.notes) == (TOKEN, ())
    assert leaks(TOKEN, bytes_below(tmp_path / "again")) == []
    model = ScriptedModel([text("y")])
    other = replay(path, overrides={"model": model, "parameters": {"extra_headers": {"X-Token": "new"}, "user": None}})
    assert model.requests[0].parameters == {"temperature": 0, "extra_headers": {"X-Token": "new"}}
    assert [change.name for change in other.diff.inputs] == ["parameters.extra_headers", "parameters.user"]


def test_reproduce_is_exact_and_notices_another_value(tmp_path: Path) -> None:
    """Without code the fingerprints are served; with it, an equal value is the same and another one a divergence."""
    path = recorded(tmp_path)
    other = {**TOKEN, "extra_headers": {"X-Token": "SECRETother12345", "anthropic-beta": "b"}}
    outcomes = [
        reproduce(path),
        reproduce(path, agent=agent([], parameters=TOKEN)),
        reproduce(path, agent=agent([], parameters=other)),
    ]
    assert [(each.identical, each.not_compared) for each in outcomes] == [(True, ()), (True, ()), (False, ())]
    assert "extra_headers.X-Token" in outcomes[2].divergences[0].what
