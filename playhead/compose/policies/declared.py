"""The settings of an agent's policies, as its header names them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from playhead.compose.policies.base import Policy


class Declared:
    """The settings of each policy, with the defaults of those that the agent does not have."""

    def __init__(self, policies: tuple[Policy, ...]) -> None:
        self._policies = policies
        self.required: dict[str, Any] = self._of("require_tools", tools=(), retries=2, max_failures=3, infer=False)
        self.budgets: Any = self._of("tool_budgets", budgets=None)["budgets"]
        self.validators = [one for each in policies if each.name == "validate" for one in each.settings["validators"]]
        self.output_retries: Any = self._of("output_retries", retries=2)["retries"]
        self.done_when: Any = self._of("done_when", function=None)["function"]
        self.verify: Any = self._of("verify", mode=None)["mode"]
        self.min_iterations: Any = self._of("min_iterations", turns=0)["turns"]
        self.detection: Any = self._of("detect_loops", detection=None)["detection"]
        self.switching: Any = self._of("switch_strategy", switching=None)["switching"]
        self.novelty: Any = self._of("novelty", least=None)["least"]

    def _of(self, name: str, **otherwise: Any) -> dict[str, Any]:  # noqa: ANN401 - settings
        return next((each.settings for each in self._policies if each.name == name), otherwise)
