from __future__ import annotations

from typing import TYPE_CHECKING

from playhead import Agent, Context, tool
from playhead.replay import reproduce
from playhead.testing import ScriptedModel, call, calls, text

if TYPE_CHECKING:
    from pathlib import Path

KEY = "sk-very-secret-1234"
OTHER_KEY = "sk-of-the-other-one"


class Keyed(ScriptedModel):
    """A model with a key."""

    key = KEY

    @property
    def secrets(self) -> dict[str, str]:
        return {"OPENAI_API_KEY": self.key}


class OtherKeyed(Keyed):
    key = OTHER_KEY


async def test_no_key_is_in_an_event(tmp_path: Path):
    """Keys of the models of an agent and its sub-agents are in no event; the run itself has them."""

    @tool
    def leak(words: str) -> dict[str, str]:
        """Leak."""
        return {KEY: f"{words} {OTHER_KEY}"}

    child = Agent(OtherKeyed([text(f"I use {OTHER_KEY}")]), name="child", context=Context(rationale=False))
    turn = calls(call("leak", words=KEY), call("child", task=f"Say {KEY}."), text=f"{KEY} {OTHER_KEY}")
    model = Keyed([turn, text(f"done with {KEY}")])
    seen: list[str] = []
    agent = Agent(model, tools=[leak, child], trace=tmp_path, system_prompt=f"Key: {KEY}", parameters={"user": KEY})
    agent.subscribe(None, lambda record: seen.append(repr(record)))
    result = await agent.run(f"My key is {KEY}.", run_id="run")
    written = (tmp_path / "run.jsonl").read_text()
    assert not any(secret in place for secret in (KEY, OTHER_KEY) for place in (written, *seen))
    assert written.count("[redacted:OPENAI_API_KEY]") > 8
    assert result.output == f"done with {KEY}"
    assert model.requests[1].messages[-2].content == f'{{"{KEY}": "{KEY} {OTHER_KEY}"}}'
    assert (await reproduce(tmp_path / "run.jsonl")).identical
