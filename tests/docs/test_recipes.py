"""The recipes for hooks do what they say."""

from __future__ import annotations

import os
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

from examples.recipes.ab_variant import STYLES, ab_variant
from examples.recipes.bare_llm import bare_llm
from examples.recipes.cost_aware import cost_ceiling
from examples.recipes.custom_termination import names_a_source, until
from examples.recipes.pii_redaction import audit, contact, redact_addresses
from examples.recipes.tenant_header import TENANT, tenant_header
from playhead import Agent, load_recording
from playhead.replay import reproduce
from playhead.testing import ScriptedModel, call, text
from tests.docs.pages import printed

ROOT = Path(__file__).parents[2]
GUIDE = (ROOT / "docs" / "guides" / "hooks.md").read_text(encoding="utf-8")
RECIPES = sorted(path.stem for path in (ROOT / "examples" / "recipes").glob("[!_]*.py"))
NO_TENANT = "LookupError: this run has no tenant; set TENANT in the task that runs the agent"
EXPECTED = printed(Path(__file__).with_name("recipes.txt"))
LOGGED = {
    "tenant_header": [f"hook tenant-header failed at prompt.system of run nobody: {NO_TENANT} (reported once)"],
}


class TestTheRecipes:
    def test_every_recipe_is_here_and_linked(self) -> None:
        """No recipe is left out, here or in the guide."""
        linked = re.findall(r"\]\(\.\./\.\./examples/recipes/(\w+)\.py\)", GUIDE)
        assert (sorted(EXPECTED), sorted(linked)) == (RECIPES, RECIPES)

    @pytest.mark.parametrize("name", RECIPES)
    def test_it_runs(
        self,
        name: str,
        monkeypatch: pytest.MonkeyPatch,
        caplog: pytest.LogCaptureFixture,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        """A recipe works as it stands, as a script, and prints what it is there to show."""
        module = f"examples.recipes.{name}"
        monkeypatch.delitem(sys.modules, module, raising=False)  # `-m` begins with a module that nobody has imported
        runpy.run_module(module, run_name="__main__")
        assert (capsys.readouterr().out.splitlines(), caplog.messages) == (EXPECTED[name], LOGGED.get(name, []))

    @pytest.mark.slow
    def test_the_command_of_the_guide_works(self, tmp_path: Path) -> None:
        """What the guide says to type works in a new process with an empty home, and leaves nothing there but a key."""
        command = re.search(r"`python (-m examples\.recipes\.(\w+))`", GUIDE)
        assert command is not None
        done = subprocess.run(
            [sys.executable, "-W", "error", *command[1].split()],
            cwd=ROOT,
            env={**os.environ, "HOME": str(tmp_path)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.returncode, done.stdout.splitlines(), done.stderr) == (0, EXPECTED[command[2]], "")
        assert {each.name for each in tmp_path.rglob("*")} <= {".playhead", "fingerprint.key"}


class TestReproducing:
    async def test_what_the_recipes_did_is_repeated_without_them(self, tmp_path: Path) -> None:
        """The file alone gives the same run again: variant, redaction, suppressed nudge and the answer sent back."""
        script = [text(""), call("contact", name="Ada"), text("Ada."), text("Ada. Source: the directory")]
        blocks = [ab_variant(STYLES), redact_addresses, until(names_a_source), cost_ceiling(1)]
        for name, turns, more in (("nudged", script, []), ("bare", script[1:], [bare_llm])):
            agent = Agent(ScriptedModel(turns), tools=[contact], compose=[*blocks, *more], trace=tmp_path)
            result = await agent.run("How do I reach Ada?", run_id=name)
            assert result.trace_path is not None
            outcome = await reproduce(load_recording(result.trace_path))
            assert (result.terminated_by, outcome.divergences, outcome.identical) == ("end_turn", (), True)


class TestRedaction:
    async def test_the_audit_names_the_agent_below(self) -> None:
        """Every line says which agent of the run it was."""
        lines: list[str] = []
        below = Agent(ScriptedModel([text("Ada.")]), name="clerk", description="Knows people.")
        model = ScriptedModel([call("clerk", task="Who?"), text("Ada.")])
        await Agent(model, tools=[below], compose=[audit(lines.append)], trace=None).run("Who?", run_id="run-1")
        assert [line for line in lines if line.startswith("answer.final")] == [
            "answer.final run-1 root/clerk@0.0",
            "answer.final run-1 root",
        ]


class TestTenantHeader:
    async def test_agents_below_get_it(self) -> None:
        """The tenant is that of the run, for every agent in it."""
        below = ScriptedModel([text("Ada.")])
        clerk = Agent(below, name="clerk", description="Knows people.", system_prompt="You are a clerk.")
        agent = Agent(
            ScriptedModel([call("clerk", task="Who?"), text("Ada.")]),
            tools=[clerk],
            compose=[tenant_header],
            trace=None,
        )
        token = TENANT.set("Acme")
        try:
            await agent.run("Who?")
        finally:
            TENANT.reset(token)
        assert below.requests[0].messages[0].content == "Tenant: Acme\n\nYou are a clerk."
