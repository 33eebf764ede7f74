"""The agent that a recording describes, for resuming a run without the program that made it.

Only its tools, killswitches and approver have to be given. What else an agent may have from code is refused by name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from playhead.agent.agent import Agent
from playhead.agent.options import Context, Execution
from playhead.compose.again import WITH_CODE, block_again
from playhead.errors import UsageError
from playhead.kernel.models import resolve_model
from playhead.kernel.models.adapter import provider_of
from playhead.kernel.strategies.base import strategy_of
from playhead.replay.cast import NO_ADAPTER, live_texts
from playhead.replay.prefix_world import different_fields
from playhead.replay.redacted import Rebinding, require_parameters, require_whole

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from playhead.diagnose.recording import Recording
    from playhead.kernel.approval import Approver
    from playhead.kernel.session import Tool
    from playhead.trace.types import AgentHeader


def described_agent(  # noqa: PLR0913 - what a recording leaves open
    recording: Recording,
    tools: Sequence[Tool | Agent],
    approver: Approver,
    *,
    rebind: Mapping[str, str],
    model: str | None,
    api_base: str | None,
    parameters: Mapping[str, Any],
    max_iterations: int | None,
    switches: Sequence[Any],
    no_switches: bool,
) -> Agent:
    """Return the agent of a recorded run, with these tools and killswitches.

    Raises:
        UsageError: the recording does not describe all of the agent, or the killswitches or the model's address are missing.
        NotReplayableError: a text or parameter that the model needs is redacted and not in `rebind`.
    """
    header = Rebinding.of(rebind).restored_model(recording.header.agent)
    require_whole(live_texts("", header, ()))
    _require_described(header, model or header.model, api_base)
    if not switches and not no_switches:
        _require_no_switches(header)
    sent = {**header.parameters, **parameters}
    require_parameters(sent)
    agent = Agent(
        resolve_model(model or header.model, api_base=api_base, tool_format=header.tool_format),
        name=header.name,
        tools=tools,
        strategy=strategy_of(header),
        system_prompt=header.system_prompt,
        examples=header.examples,
        parameters=sent,
        max_iterations=header.max_iterations if max_iterations is None else max_iterations,
        context=Context(rationale=header.rationale, meta_tools=header.meta_tools),
        execution=Execution(
            retries=header.max_retries,
            retry_delay_s=header.retry_delay_s,
            max_parallel=header.max_parallel,
            record_parameters=header.record_parameters,
        ),
        approver=approver,
        compose=[
            *(each.block for each in switches),
            *(block_again(hook) for hook in header.hooks if hook.role == "policy"),
        ],
    )
    unlike = [each for each in different_fields(header, agent.header) if each != "model"]
    if unlike:
        raise _made_by_a_program(f"settings that the command line does not have ({', '.join(unlike)})")
    return agent


def _require_described(header: AgentHeader, model: str, api_base: str | None) -> None:
    if provider_of(model) in NO_ADAPTER:
        raise _made_by_a_program(f"{model!r}, an object of that program")
    if any(hook.name in WITH_CODE for hook in header.hooks if hook.role == "policy"):
        raise _made_by_a_program("checks of its answer")
    if header.fallbacks:
        raise _made_by_a_program("models that take over")
    if header.address is not None and api_base is None:
        raise UsageError(
            f"{header.model} was reached at {header.address}; pass that address, or another one, with --api-base, or the "
            f"prompts would go to {provider_of(header.model)}'s own"
        )


def _require_no_switches(header: AgentHeader) -> None:
    had = [
        f"{hook.name}({hook.at})" if hook.role == "guard" else hook.name
        for hook in header.hooks
        if hook.role != "policy"
    ]
    if had:
        raise UsageError(f"the run was under {', '.join(had)}: give that again with --switch, or pass --no-switches")


def _made_by_a_program(what: str) -> UsageError:
    return UsageError(
        f"the run was made by a program, with {what}: resume it there, with load_recording(…).resume(agent)"
    )
