"""A long result in short, read on with `recall`; old turns put together; a search that has used up its calls."""

from __future__ import annotations

import tempfile

from playhead import Agent, Context, context_profile, load_recording, tool
from playhead.compose.policies import tool_budgets
from playhead.testing import ScriptedModel, call, text


@tool(read_only=True)
def prices(city: str) -> list[dict[str, object]]:
    """Return the prices of a city's houses."""
    return [{"city": city, "house": number, "price": 100 + number} for number in range(50)]


SCRIPT = [
    call("prices", city="Oslo"),
    call("recall", key="_tool_result_1", offset=2000),
    call("prices", city="Bergen"),
    call("prices", city="Bodo"),
    text("House 49 is the dearest in Oslo."),
]


def main() -> None:
    """Print what the model was sent in place of what there was."""
    model = ScriptedModel(SCRIPT)
    profile = context_profile("local", compact_after_steps=2, full_detail_steps=2, prior_work_chars=500)
    with tempfile.TemporaryDirectory() as folder:
        agent = Agent(
            model,
            tools=[prices],
            context=Context(profile=profile, rationale=False),
            compose=[tool_budgets({"prices": 2})],
            trace=folder,
        )
        for kind in ("curator-decision", "context-synthesized", "nudge-issued"):
            agent.subscribe(kind, lambda record: print(record.kind))
        result = agent.run_sync("Which house is the dearest in Oslo?")
        print(model.requests[1].messages[-1].content)
        print(next(each.content for each in model.requests[-1].messages if "[Prior work" in str(each.content)))
        print(result.output)
        print("identical:", load_recording(result.trace_path or "").reproduce_sync().identical)


if __name__ == "__main__":
    main()
