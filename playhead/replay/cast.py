"""Who plays in a replay: each agent's header as the overrides leave it, and the live model that answers for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from playhead.errors import UnknownModelError, UsageError, nearest
from playhead.kernel.agent_tool import AgentTool
from playhead.kernel.models import resolve_model
from playhead.kernel.parameters import secrets_in
from playhead.kernel.prompts import DEFAULT, DEFAULT_WITHOUT_TOOLS
from playhead.replay.overrides import Overrides, changed_prompt
from playhead.trace.events import AgentStarted

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from playhead.agent import Agent
    from playhead.kernel.models.base import Model
    from playhead.kernel.tools import Tool
    from playhead.trace.recording import Recording
    from playhead.trace.types import AgentHeader, ToolSpec

NO_ADAPTER: Final = ("scripted",)
"""Providers of models that were objects in somebody's program: a name alone does not bring them back."""


@dataclass(frozen=True, slots=True)
class Address:
    """Where a provider is reached, when it is not the usual place."""

    api_base: str | None = None
    api_key: str | None = None


class Cast:
    """The agents of a replay. Nothing is sent before one of them asks."""

    def __init__(
        self, recording: Recording, inside: frozenset[str], overrides: Overrides, agent: Agent | None, address: Address
    ) -> None:
        """Find a model for every agent that was recorded.

        Raises:
            UsageError: a model cannot be had by its recorded name, or an override names an agent or a model that the
                recording does not have.
        """
        self._overrides = overrides
        self._address = address
        self._given = None if agent is None else agent.header.name
        self._code = {} if agent is None else {each.header.name: each for each in agents_below(agent.tools)}
        self.root_header = recording.header.agent if agent is None else agent.header
        self.below = _headers_below(recording, inside) | {name: each.header for name, each in self._code.items()}
        self._models: dict[str, Model] = {}
        self._require_known()
        self._substitutes = self._read_substitutes(recording.header.agent.model)
        self.root_model = self._model_of(self.root_header.model, None if agent is None else agent.model)
        self._of_agents = {name: self._model_below(name, header) for name, header in self.below.items()}

    def root(self, *, has_tools: bool) -> AgentHeader:
        """Return the root agent's header."""
        return changed_header(self.root_header, self._overrides, self.root_model, has_tools=has_tools)

    def agent(self, header: AgentHeader, *, has_tools: bool) -> tuple[AgentHeader, Model]:
        """Return header and model of an agent below the root."""
        model = self._of_agents.get(header.name) if header.name in self._overrides.of_agents else None
        model = model or self._model_of(header.model, self._code_model(header.name))
        changes = self._overrides.of_agents.get(header.name, Overrides())
        return changed_header(header, changes, model, has_tools=has_tools), model

    def secrets(self) -> Iterator[tuple[str, str]]:
        """Yield name and value of what nobody may record: the models' keys, and parameters that are secrets by name."""
        for model in [self.root_model, *self._of_agents.values(), *self._models.values()]:
            yield from model.secrets.items()
        changes = [self._overrides, *self._overrides.of_agents.values()]
        for parameters in [
            self.root_header.parameters,
            *(header.parameters for header in self.below.values()),
            *(each.merged_parameters for each in changes),
        ]:
            yield from secrets_in(parameters)

    def notes(self) -> Iterator[str]:
        """Yield what a careful reader has to know of who answers."""
        root, names = self.root_model.name, sorted({name for name, model in self._of_agents.items()})
        for name in names:
            model = self._of_agents[name].name
            if model != root:
                yield f"the agent {name} is answered by {model}, live, not by {root}"

    def _model_below(self, name: str, header: AgentHeader) -> Model:
        own = self._overrides.of_agents.get(name)
        if own is not None and own.model is not None:
            return self._made(own.model, self._address)
        return self._model_of(header.model, self._code_model(name))

    def _code_model(self, name: str) -> Model | None:
        return self._code[name].model if name in self._code else None

    def _model_of(self, name: str, given: Model | None) -> Model:
        """Return who answers for the model of this name: its substitute, the code's own object, or its adapter."""
        if name in self._substitutes:
            return self._substitutes[name]
        if given is not None:
            return given
        if name not in self._models:
            own = self._address if name == self.root_header.model else Address()
            self._models[name] = _reached(name, own)
        return self._models[name]

    def _read_substitutes(self, recorded: str) -> dict[str, Model]:
        change = self._overrides.model
        if change is None:
            return {}
        if not isinstance(change, dict):
            model = self._made(change, self._address)
            return {recorded: model, self.root_header.model: model}
        known = {recorded, self.root_header.model, *(header.model for header in self.below.values())}
        unknown = [name for name in change if name not in known]
        if unknown:
            raise UsageError(f"model: no recorded agent is on {unknown[0]!r}.{nearest(unknown[0], known)}")
        return {name: self._made(model, self._address) for name, model in change.items()}

    def _made(self, model: Any, address: Address) -> Model:  # noqa: ANN401 - checked by `Overrides`
        if not isinstance(model, str):
            return model  # type: ignore[no-any-return]
        return resolve_model(model, api_base=address.api_base, api_key=address.api_key)

    def _require_known(self) -> None:
        unknown = [name for name in self._overrides.of_agents if name not in self.below]
        if unknown:
            raise UsageError(f"agents: the recording has no agent {unknown[0]!r}.{nearest(unknown[0], self.below)}")


def changed_header(header: AgentHeader, changes: Overrides, model: Model, *, has_tools: bool) -> AgentHeader:
    """Return the header as the overrides leave it, on this model."""
    changed = changes.merged_parameters
    merged = {**header.parameters, **changed}
    parameters = {name: value for name, value in merged.items() if value is not None or name not in changed}
    update: dict[str, Any] = {"model": model.name, "parameters": parameters}
    if changes.max_iterations is not None:
        update["max_iterations"] = changes.max_iterations
    if changes.system_prompt is not None:
        default = DEFAULT if has_tools else DEFAULT_WITHOUT_TOOLS
        prompt = default if header.system_prompt is None else header.system_prompt
        update["system_prompt"] = changed_prompt(changes.system_prompt, prompt)
    return header.model_copy(update=update)


def agents_below(tools: Mapping[str, Tool]) -> Iterator[AgentTool]:
    """Yield the agents that code gives as tools, at any depth."""
    for each in tools.values():
        if isinstance(each, AgentTool):
            yield each
            yield from agents_below(each.tools)


def live_texts(name: str, header: AgentHeader, specs: Mapping[str, ToolSpec]) -> dict[str, Any]:
    """Return what a live model is sent of an agent, by the name of its field."""
    fields: dict[str, Any] = {"system_prompt": header.system_prompt, "parameters": header.parameters}
    fields |= {f"examples[{place}]": each.model_dump(mode="json") for place, each in enumerate(header.examples)}
    fields |= {f"tool {spec.name}": [spec.description, spec.parameters] for spec in specs.values()}
    return {f"{name}{field}": value for field, value in fields.items()}


def _headers_below(recording: Recording, inside: frozenset[str]) -> dict[str, AgentHeader]:
    """Return the recorded agents below the root by name, each as it was first entered."""
    found: dict[str, AgentHeader] = {}
    for name, owner in recording.owners.items():
        if isinstance(owner.started, AgentStarted) and name not in inside:
            found.setdefault(owner.started.agent.name, owner.started.agent)
    return found


def _reached(name: str, address: Address) -> Model:
    fix = "pass model=, the model that is to answer instead"
    if name.partition("/")[0] in NO_ADAPTER:
        raise UsageError(f"the recording was made with {name!r}, an object of somebody's program; {fix}")
    try:
        return resolve_model(name, api_base=address.api_base, api_key=address.api_key)
    except UnknownModelError as error:
        raise UsageError(f"the recorded model {name!r} cannot be reached: {error}; {fix}") from None
