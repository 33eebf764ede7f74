"""What an agent is given in another form than it takes: refused where it is made, never taken for nothing."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from unittest.mock import MagicMock, Mock, create_autospec

import pytest

from playhead import Agent, Approval, Context, UsageError, Verdict, tool
from playhead.compose import policies
from playhead.compose.killswitches import require_approval_for, tool_limit
from playhead.compose.redaction import redact_results
from playhead.replay import DID_NOT_HAPPEN, load_recording, resume_sync
from playhead.testing import call, text
from tests.findings.adapter import agent, replay, run

if TYPE_CHECKING:
    from pathlib import Path


POLICIES = [getattr(policies, name) for name in vars(policies)["__all__"] if name[0].islower()]


@pytest.mark.parametrize("block", [*POLICIES, redact_results], ids=lambda block: block.__name__)
def test_a_block_without_its_parentheses(block: Any):
    """It would register nothing and say nothing: it is refused, with what to write."""
    with pytest.raises(UsageError, match=rf"write {block.__name__}\(…\) in compose"):
        agent([], compose=[block])


def test_a_block_that_only_makes_another_one():
    """A killswitch that a block returns and does not use would never fire."""

    def stacked(_harness: Any) -> Any:
        return tool_limit("lookup", 0)

    with pytest.raises(UsageError, match=r"or harness.use\(…\) in a block of yours"):
        agent([], compose=[stacked])


def test_a_block_that_returns_what_undoes_it():
    """A block may return the undo of what it registered."""
    made = agent(
        [], compose=[lambda harness: harness.tap("**", print), lambda harness: harness.use(tool_limit("a", 1))]
    )
    assert [hook.name for hook in made.header.hooks] == ["print", "tool_limit"]


@pytest.mark.parametrize("given", [{"rationale": "yes"}, {"rationale": 0}, {"facts": [("a", 1)]}])
def test_a_context_of_another_form(given: dict[str, Any]):
    """A value of the wrong type is refused, not coerced."""
    with pytest.raises(UsageError, match=rf"^Context\({next(iter(given))}=…\)"):
        Context(**given)


# --- request parameters that nobody knows -----------------------------------------------------------------------------


SLIPS = {
    "temprature": "temperature", "Temperature": "temperature", "topP": "top_p", "max_token": "max_tokens", "sead": "seed",
    "resoning_effort": "reasoning_effort", "response_fromat": "response_format",
}  # fmt: skip
REAL = (
    "azure_ad_token", "vertex_credentials", "api_version", "user", "aws_secret_access_key", "metadata", "prompt_cache_key",
    "prediction", "extra_headers", "extra_body", "custom_llm_provider",
)  # fmt: skip


@pytest.mark.parametrize(("slip", "meant"), SLIPS.items())
def test_a_slip_is_refused_with_what_was_meant(slip: str, meant: str) -> None:
    """An agent with a misspelt parameter is not made; the message names the likely one and `extra_body`."""
    with pytest.raises(UsageError) as refused:
        agent([], parameters={slip: 0})
    assert f"{slip!r}. Did you mean {meant!r}?" in str(refused.value).replace("top_k", "top_p")
    assert "extra_body={" in str(refused.value)


def test_real_parameters_pass() -> None:
    """Parameters of litellm and of providers pass, known by value or not."""
    values: dict[str, Any] = dict.fromkeys(REAL, "x")
    made = Agent(
        "openai/m", parameters={**values, "extra_body": {"temprature": 1}, "my_gateway_route": "eu"}, trace=None
    )
    assert set(made.header.parameters) == {*REAL, "my_gateway_route"}


@pytest.mark.parametrize("name", ["temprature", "my_gateway_route", "extra_body", "n_ctx"])
def test_a_model_that_says_all_it_takes_refuses_all_else(name: str) -> None:
    """Ollama would ignore it, so the agent is not even made."""
    with pytest.raises(UsageError, match=rf"this model has no request parameter '{name}'\..* Known: "):
        Agent("ollama/m", parameters={name: 1}, trace=None)
    Agent(
        "ollama/m",
        parameters={"num_ctx": 8192, "max_tokens": 5, "response_format": {"type": "text"}, "timeout": 9},
        trace=None,
    )


def test_overrides_of_a_replay(tmp_path: Path) -> None:
    """The same for `parameters`, to set or to remove, and for those of an agent below."""
    path = run(agent(["done"], trace=tmp_path)).trace_path
    for overrides in ({"parameters": {"temprature": 1}}, {"parameters": {"temprature": None}}):
        with pytest.raises(UsageError, match="Did you mean 'temperature'"):
            replay(path, ["done"], overrides=overrides)
    with pytest.raises(UsageError, match="this model has no request parameter 'my_route'"):
        replay(path, overrides={"model": "ollama/m", "parameters": {"my_route": 1}})


# --- only a decision of the exact type counts -------------------------------------------------------------------------


class Claims:
    """Says of itself that it is of another type, and that it approves."""

    approved = valid = ok = True
    why = by = None
    feedback = ""

    def __init__(self, kind: type) -> None:
        self.kind = kind

    @property
    def __class__(self) -> Any:
        """Return what it is not."""
        return self.kind

    @__class__.setter
    def __class__(self, kind: Any) -> None:
        raise TypeError


class Later:
    """Is awaited, and then is another one."""

    def __init__(self, then: Any) -> None:
        self.then = then

    def __await__(self) -> Any:
        """Return what it stands for."""
        yield from ()
        return self.then


class Approved(Approval):
    """A subclass may say anything."""

    def __init__(self) -> None:
        super().__init__(approved=True)


class Valid(Verdict):
    """A subclass may say anything."""

    def __init__(self) -> None:
        super().__init__(valid=True)


def posing(kind: type, **fields: Any) -> list[Any]:
    """Return objects that pass for one of this type where `isinstance` or an attribute is asked."""
    return [
        Mock(), MagicMock(), Mock(spec=kind), Mock(spec=kind, **fields), MagicMock(spec=kind, **fields),
        create_autospec(kind, instance=True, **fields), Mock(spec=bool), MagicMock(spec=bool), Claims(kind), Claims(bool),
        SimpleNamespace(**fields), dict(fields), 1, 1.0, "yes", "True", [True], kind,
    ]  # fmt: skip


NO_APPROVAL = [
    *posing(Approval, approved=True, why=None, by=None), Approved(), Approval(1), Approval("yes"), Approval(Mock()),  # type: ignore[arg-type]
    Approval(Mock(spec=bool)), Approval(Claims(bool)),  # type: ignore[arg-type]
]  # fmt: skip
NO_VERDICT = [
    *posing(Verdict, valid=True, feedback=""), Valid(), None, Verdict(1), Verdict("yes"), Verdict(Mock()),  # type: ignore[arg-type]
    Verdict(MagicMock(spec=bool)), Verdict(True, Mock()), Verdict(True, Mock(spec=str)),
]  # fmt: skip


@pytest.mark.parametrize("where", ["approver", "switch"])
@pytest.mark.parametrize("how", [lambda answer: answer, Later])
def test_only_an_approval_is_an_approval(where, how):
    """A tool runs only after `True` or an exact `Approval(True)`; anything else denies the call."""
    ran: list[str] = []

    @tool(requires_approval=where == "approver")
    def pay(to: str) -> str:
        """Pay."""
        ran.append(to)
        return "paid"

    for answer in [*NO_APPROVAL, True, Approval(approved=True)]:
        options: dict[str, Any] = {"approver": lambda _, answer=answer: how(answer)}
        if where == "switch":
            options = {"compose": [require_approval_for("pay", options["approver"])]}
        made = agent([call("pay", to=f"{type(answer)}"), text("done")], [pay], **options)
        assert run(made).output == "done"
    assert ran == ["<class 'bool'>", "<class 'playhead.kernel.approval.Approval'>"]


@pytest.mark.parametrize("option", ["validators", "done_when"])
@pytest.mark.parametrize("how", [lambda said: said, Later])
def test_only_a_verdict_is_a_verdict(option, how):
    """An answer is accepted only by `True` or an exact `Verdict(True)`; otherwise the error says what was returned."""

    def judged_as(said: Any) -> Any:
        judge = lambda _: how(said)  # noqa: E731
        options: dict[str, Any] = {option: [judge] if option == "validators" else judge}
        return run(agent([text("4180")], **options))

    for said in NO_VERDICT:
        assert "return True, False or a Verdict" in judged_as(said).error
        assert judged_as(said).terminated_by == "output_rejected"
    for said in (True, Verdict(valid=True)):
        assert judged_as(said).output == "4180"


def test_only_the_word_itself_lets_a_call_run_again(tmp_path):
    """A resumed run repeats a side effect only for `DID_NOT_HAPPEN`, not for an object that claims to be it."""
    ran: list[int] = []

    @tool
    def pay() -> str:
        """Pay."""
        ran.append(1)
        return "paid"

    turns = [call("pay"), text("done")]
    path = run(agent(turns, [pay], trace=tmp_path), run_id="a").trace_path
    assert path is not None
    lines = path.read_bytes().splitlines(keepends=True)
    cut = next(number for number, line in enumerate(lines) if b'"kind":"tool-call-completed"' in line)
    path.write_bytes(b"".join(lines[:cut]))
    answer: Any
    for answer in (Mock(spec=type(DID_NOT_HAPPEN)), Claims(type(DID_NOT_HAPPEN)), type(DID_NOT_HAPPEN)):
        with pytest.raises(UsageError, match="DID_NOT_HAPPEN"):
            resume_sync(agent(turns, [pay], trace=tmp_path), load_recording(path), unresolved={"call_0_0": answer})
    assert ran == [1]
