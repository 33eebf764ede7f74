"""The agents of a replay, each with its header after overrides and its live model."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from playhead.agent.toolset import address_of, agents_below
from playhead.errors import UnknownModelError, UsageError
from playhead.kernel.checks import checked_parameters
from playhead.kernel.models import resolve_model
from playhead.kernel.models.adapter import provider_of
from playhead.kernel.models.base import Checked, Model
from playhead.kernel.prompts import default_prompt
from playhead.replay.calls import inside_bodies
from playhead.replay.loading import require_known
from playhead.replay.overrides import AgentOverrides, Overrides, changed_prompt, with_strategy
from playhead.trace.events import AgentStarted

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from playhead.agent.agent import Agent
    from playhead.diagnose.recording import Recording
    from playhead.trace.header import AgentHeader
    from playhead.trace.redaction import Redactor
    from playhead.trace.types import ToolSpec


async def check_models(models: Iterable[Model]) -> None:
    """Let the adapters check their models before anything is sent. Model objects of a program are not checked.

    Raises:
        MissingApiKeyError, UnknownModelError, MissingDependencyError: a model cannot be used at all.
    """
    for model in models:
        if isinstance(model, Checked):
            await model.check()


@dataclass(frozen=True, slots=True)
class Below:
    """A sub-agent."""

    header: AgentHeader
    model: Model | None = None
    """The code's own, when code was given."""


class Cast:
    """The agents of a replay. Nothing is sent before one of them makes a request."""

    def __init__(self, recording: Recording, overrides: Overrides, agent: Agent | None, api_base: str | None) -> None:
        """Find a model for every agent that was recorded.

        Raises:
            UsageError: a model is not available under its recorded name, or an override names an agent or a model that
                is not in the recording.
        """
        self._overrides = overrides
        self.simulators: Sequence[Model] = ()
        """Models that stand in for tools."""
        self.root_header = recording.header.agent if agent is None else agent.header
        inside = inside_bodies(recording)
        entered = (owner.started for name, owner in recording.owners.items() if name not in inside)
        recorded = (Below(each.agent) for each in entered if isinstance(each, AgentStarted))
        in_code = () if agent is None else (Below(each.header, each.model) for each in agents_below(agent.tools))
        self.below = _distinct(recorded if agent is None else in_code)
        """The agents below the root: those of the code when it was given, else the recorded ones; each once."""
        self._require_known("the recording" if agent is None else "agent=")
        given = [overrides.model, *(each.model for each in overrides.agents.values())]
        providers = {provider_of(name) for name in given if isinstance(name, str)}
        if len(providers) > 1 and api_base is not None:
            named = ", ".join(sorted(providers))
            raise UsageError(f"api_base= is for one provider, and the overrides name models of {named}. Give objects")
        self._api_base = api_base
        self._own_base = api_base if providers <= {provider_of(self.root_header.model)} else None
        """The address of the root's recorded model."""
        self._of_root = {recording.header.agent.model, self.root_header.model}
        self._resolved = cache(resolve_model)
        self.root_model = self._model_of(Below(self.root_header, None if agent is None else agent.model), overrides)
        self._of_agents = tuple((each.header.name, self._model_of(each, self._changes(each))) for each in self.below)

    def root(self, *, has_tools: bool) -> AgentHeader:
        """Return the root agent's header."""
        return changed_header(self.root_header, self._overrides, self.root_model, has_tools=has_tools)

    def agent(self, each: Below, *, has_tools: bool) -> tuple[AgentHeader, Model]:
        """Return the header and the model of a sub-agent."""
        changes = self._changes(each)
        model = self._model_of(each, changes)
        return changed_header(each.header, changes, model, has_tools=has_tools), model

    def header_of(self, name: str | None) -> AgentHeader:
        """Return the header of a sub-agent before the overrides; of the root for None."""
        return next((each.header for each in self.below if each.header.name == name), self.root_header)

    def teach(self, redactor: Redactor) -> None:
        """Add secrets to a redactor: the models' keys, and parameters that are not recorded by value."""
        for model in self.models():
            for name, value in model.secrets.items():
                redactor.add_secret(value, name)
        for header in (self.root_header, *(each.header for each in self.below)):
            redactor.add_parameters(header.request_parameters, header.record_parameters)
        for changes in (self._overrides, *self._overrides.agents.values()):
            redactor.add_parameters(changes.merged_parameters)

    def models(self) -> list[Model]:
        """Return every model that may receive a request."""
        answering = (self.root_model, *(model for _, model in self._of_agents), *self.simulators)
        return list({id(model): model for model in answering}.values())

    def notes(self) -> Iterator[str]:
        """Yield a note for each agent whose model differs from the root's."""
        others = {(name, model.name) for name, model in self._of_agents if model.name != self.root_model.name}
        for name, model in sorted(others):
            yield f"the agent {name} is answered by {model}, live, not by {self.root_model.name}"

    def _changes(self, each: Below) -> AgentOverrides:
        return self._overrides.agents.get(each.header.name, AgentOverrides())

    def _model_of(self, agent: Below, changes: AgentOverrides) -> Model:
        """Return the live model of an agent: its override, the code's own object, or an adapter.

        Prompts for a model that was served elsewhere are never sent to the provider's usual address.
        """
        name, address = agent.header.model, agent.header.address
        from_root = self._overrides.model if name in self._of_root else None
        chosen = next((each for each in (changes.model, from_root, agent.model) if each is not None), None)
        if chosen is not None:
            return self._resolved(chosen, api_base=self._api_base) if isinstance(chosen, str) else chosen
        model = self._recreated(name)
        if address is not None and address_of(model) is None:
            why = f"no address was given: its prompts would go to {provider_of(name)}'s own"
            raise UsageError(f"{name} was reached at {address}, and {why}. Pass api_base=, or another model=")
        return model

    def _recreated(self, name: str) -> Model:
        if provider_of(name) != "scripted":  # an object of a program
            with suppress(UnknownModelError):
                return self._resolved(name, api_base=self._own_base if name == self.root_header.model else None)
        why = "it was an object of a program, or the import of its run does not say more"
        raise UsageError(f"the recorded model {name!r} is no provider/model: {why}. Pass model= (--model)")

    def _require_known(self, where: str) -> None:
        names = [each.header.name for each in self.below]
        require_known(self._overrides.agents, set(names), f"agents: {where} has no agent")
        for name in self._overrides.agents:
            if names.count(name) > 1:
                raise UsageError(f"agents: {names.count(name)} agents are called {name!r}; give agent= so changed")


def changed_header(header: AgentHeader, changes: AgentOverrides, model: Model, *, has_tools: bool) -> AgentHeader:
    """Return the header after the overrides, with this model."""
    if changes.strategy is not None:
        header = with_strategy(header, changes.strategy)
    checked_parameters(changes.applied_to({}), getattr(model, "known_parameters", None))
    update: dict[str, Any] = {"model": model.name, "address": address_of(model)}
    update["max_iterations"] = changes.max_iterations or header.max_iterations
    if isinstance(changes, Overrides) and changes.hooks is not None:
        update["hooks"] = changes.hooks.info()
    if changes.system_prompt is not None:
        own = header.system_prompt
        prompt = default_prompt(header, has_tools=has_tools) if own is None else own
        update["system_prompt"] = changed_prompt(changes.system_prompt, prompt)
    return header.model_copy(update=update).with_parameters(changes.applied_to(header.request_parameters))


def live_texts(name: str, header: AgentHeader, specs: Iterable[ToolSpec]) -> dict[str, Any]:
    """Return the texts of an agent that a live model receives, by field name."""
    fields: dict[str, Any] = {"system_prompt": header.system_prompt, "parameters": header.parameters}
    fields |= {f"examples[{place}]": each.model_dump(mode="json") for place, each in enumerate(header.examples)}
    fields |= {f"tool {spec.name}": [spec.description, spec.parameters] for spec in specs}
    return {f"{name}{field}": value for field, value in fields.items()}


def _distinct(agents: Iterable[Below]) -> tuple[Below, ...]:
    """Return each agent once. Agents that differ only in prices, code and inherited hooks are the same."""
    apart = {"prices", "hooks", "sources"}
    return tuple({(each.header.model_dump_json(exclude=apart), id(each.model)): each for each in agents}.values())
