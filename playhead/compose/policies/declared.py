"""What an agent's policies say, in the words of its header."""

from __future__ import annotations

from typing import Any

from playhead.compose.policies.base import Policy, settings_of


class Declared:
    """The policies of an agent by what they are about, with what holds where there is none."""

    def __init__(self, policies: tuple[Policy, ...]) -> None:
        self._policies = policies
        self.required: dict[str, Any] = self._of("require_tools", tools=(), retries=2, max_failures=3, infer=False)
        self.budgets: Any = self._of("tool_budgets", budgets=None)["budgets"]
        self.validators: list[Any] = [
            each for given in settings_of(policies, "validate") for each in given["validators"]
        ]
        self.output_retries: Any = self._of("output_retries", retries=2)["retries"]
        self.done_when: Any = self._of("done_when", function=None)["function"]
        self.verify: Any = self._of("verify", mode=None)["mode"]
        self.min_iterations: Any = self._of("min_iterations", turns=0)["turns"]
        self.detection: Any = self._of("detect_loops", detection=None)["detection"]
        self.switching: Any = self._of("switch_strategy", switching=None)["switching"]
        self.novelty: Any = self._of("novelty", least=None)["least"]

    def _of(self, name: str, **otherwise: Any) -> dict[str, Any]:  # noqa: ANN401 - settings
        return next(iter(settings_of(self._policies, name)), otherwise)
