from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from playhead import tool
from playhead.compose import Recover, Resume, Skip, Stop
from playhead.compose.redaction import redact_results
from playhead.testing import call, calls, error, text
from tests.compose.hooked import run_with
from tests.kernel.plan.steps import analysis, plan, tool_step, verdict
from tests.kernel.strategies.looking import program

if TYPE_CHECKING:
    from pathlib import Path

    from tests.kernel.runs import Ran

SECRET = "4111-1111-1111-1111"


@tool(read_only=True)
async def card(owner: str) -> dict[str, Any]:
    """Tell a card."""
    return {"owner": owner, "numbers": [f"<{SECRET}>"]}


@tool(read_only=True)
async def deny(owner: str) -> str:
    """Fail."""
    raise PermissionError(f"not for {SECRET}")


SENT_ON: list[str] = []


@tool
async def send(body: str) -> str:
    """Send something."""
    SENT_ON.append(body)
    return f"sent {body}"


def hide(words: str) -> str:
    """Hide the secret."""
    return words.replace(SECRET, "****")


TEXT_CALL = '{"name": "card", "arguments": {"owner": "x"}}'
ASK = call("card", owner="x")
SCRIPTS: dict[str, tuple[list[Any], dict[str, Any]]] = {
    "answered": ([ASK, text("done")], {}),
    "truncated": ([ASK, ASK], {"max_iterations": 1}),
    "failed": ([ASK, error("dead")], {}),
    "in text": ([text(TEXT_CALL), text("done")], {}),
    "parallel": ([calls(ASK, call("deny", owner="y"), ASK), text("done")], {}),
}


def told(run: Ran) -> str:
    """Return everything that the model and the caller were given."""
    requests = [[message.model_dump() for message in request.messages] for request in run.model.requests]
    return json.dumps([requests, run.result.model_dump(mode="json", exclude={"trace_path"})], default=str)


STEERING: dict[str, Any] = {
    "nothing": lambda _: None,
    "skip after act": lambda harness: harness.after("act", lambda context: Skip() if context.iteration == 0 else None),
    "stop before complete": lambda harness: harness.before("complete", lambda _: Stop("x")),
    "resume": lambda harness: harness.before("complete", lambda _: Resume("again")),
    "recover": lambda harness: harness.on_error("*", lambda _, context: Recover(context.state)),
}


@pytest.mark.parametrize("steering", STEERING)
@pytest.mark.parametrize("script", SCRIPTS)
async def test_the_secret_stays_hidden(tmp_path: Path, script: str, steering: str):
    """No way of ending, skipping or resuming shows it; with the function as `redact=`, too, the file does not hold it."""
    turns, options = SCRIPTS[script]
    run = await run_with(
        tmp_path,
        [*turns, *[text("more")] * 9],
        redact_results(hide),
        STEERING[steering],
        tools=[card, deny],
        redact=[hide] if steering == "nothing" else (),
        **options,
    )
    assert SECRET not in told(run)
    assert (SECRET in run.recording.path.read_text()) is (steering != "nothing")


def fail(words: str) -> str:
    """Raise for the secret."""
    if SECRET in words:
        raise ValueError("cannot")
    return words


@pytest.mark.parametrize("redactor", [fail, lambda _: None], ids=["raises", "none"])
@pytest.mark.parametrize("script", ["answered", "truncated", "in text"])
async def test_a_redactor_that_fails_lets_nothing_leave(tmp_path: Path, script: str, redactor: Any):
    """When it raises or returns no text, the run fails without an output, and the model gets no further request."""
    turns, options = SCRIPTS[script]
    run = await run_with(tmp_path, turns, redact_results(redactor), tools=[card, deny], **options)
    assert (run.result.status, run.result.terminated_by, run.result.output) == ("failed", "hook_failed", None)
    assert run.result.terminated_source == "hook:redact_results"
    assert SECRET not in told(run)
    assert len(run.model.requests) == 1


CARD = tool_step("card", args={"owner": "x"})
SENT = tool_step("send", args={"body": "{{from_step:s1}}"})
THINK = analysis("Think of {{from_step:s1}}")
BY_STRATEGY: dict[str, tuple[str, list[Any]]] = {
    "plan": ("plan", [plan(CARD, THINK), text("so"), verdict(), text("done")]),
    "plan, sent on": ("plan", [plan(CARD, SENT, THINK), text("so"), verdict(), text("done")]),
    "program": ("code-action", [program("print(card('x'))\nreturn card('x')"), text("done")]),
    "program, again": ("code-action", [program("card('x')\n1 / 0"), program("return card('x')"), text("done")]),
}


@pytest.mark.parametrize(
    "script", [pytest.param(name, marks=pytest.mark.slow if "program" in name else ()) for name in BY_STRATEGY]
)
async def test_the_secret_stays_hidden_in_every_strategy(tmp_path: Path, script: str):
    """Prompts of plans and of programs are made of what the hooks let the model see, and so are arguments of later calls."""
    strategy, turns = BY_STRATEGY[script]
    SENT_ON.clear()
    run = await run_with(tmp_path, turns, redact_results(hide), tools=[card, deny, send], strategy=strategy)
    assert SECRET not in told(run)
    assert "****" in told(run)
    assert (['{"owner": "x", "numbers": ["<****>"]}'] if script == "plan, sent on" else []) == SENT_ON
