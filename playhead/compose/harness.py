"""The harness: where functions are registered that change, see, stop or resume an agent's runs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Literal

from playhead.compose.registration import Registration
from playhead.compose.runtime import ComposedHooks
from playhead.compose.tags import check_tag
from playhead.compose.typed import Options, Registrar, Undo, checked_options
from playhead.errors import UsageError, nearest
from playhead.kernel.chokepoints import ANYTHING, CONTENT, JSON, TEXT, chokepoint
from playhead.kernel.guards import GuardMaker
from playhead.kernel.hooks import LOOP_PHASES, PHASES, PhaseAnswer, PhaseName, Recover
from playhead.trace.types import HookInfo, Message, SourceInfo

if TYPE_CHECKING:
    from typing import Unpack

    from playhead.compose.contexts import PhaseContext
    from playhead.compose.policies.base import Policy

AnyPhase = PhaseName | Literal["*"]
PhaseHook = Callable[["PhaseContext"], PhaseAnswer | Awaitable[PhaseAnswer | None] | None]
"""Returns nothing, or `Stop`, `Terminate`, `Skip`, and before complete `Resume`; sync or async."""
ErrorHook = Callable[[Exception, "PhaseContext"], Recover | Awaitable[Recover | None] | None]
"""Returns nothing, or `Recover(state)` to go on; sync or async."""


class Harness(Registrar):
    """What an agent is composed with. A block is a function that takes one and registers things."""

    def __init__(self) -> None:
        self._registrations: tuple[Registration, ...] = ()
        self._seeds: tuple[tuple[str, Any], ...] = ()
        self._guards: tuple[GuardMaker, ...] = ()
        self._hooks: ComposedHooks | None = None
        self.policies: tuple[Policy, ...] = ()
        """What is declared beside hooks and guards, for the agent to read when it is made."""
        self._collecting: list[list[Undo]] = []

    def before(self, phase: AnyPhase, function: PhaseHook, **options: Unpack[Options]) -> Undo:
        """Ask a function before a phase, or before every phase for `*`.

        Several are asked in order of registration; the first that returns something has said it.

        Raises:
            UsageError: there is no such phase, or an option is not valid.
        """
        return self._at_phase("before", phase, function, options)

    def after(self, phase: AnyPhase, function: PhaseHook, **options: Unpack[Options]) -> Undo:
        """Ask a function after a phase; else as `before`."""
        return self._at_phase("after", phase, function, options)

    def on_error(self, phase: AnyPhase, function: ErrorHook, **options: Unpack[Options]) -> Undo:
        """Ask a function after an error in `think`, `act` or `observe`, or in all of them for `*`; else as `before`.

        Raises:
            UsageError: there is no such phase, it is none in which an error can be survived, or an option is not valid.
        """
        if phase != "*" and phase in PHASES and phase not in LOOP_PHASES:
            raise UsageError(
                f"no hook is asked after an error in {phase}, only in {', '.join(LOOP_PHASES)}, or in all: *"
            )
        return self._at_phase("on-error", phase, function, options)

    def emit(self, tag: str, payload: Any) -> Undo:  # noqa: ANN401 - by tag
        """Emit a payload whenever the agent starts: transforms and taps get it.

        A `message.user` or a `nudge.*` that they leave joins the thread after the task; anything else is only told.

        Raises:
            UsageError: there is no such tag, or the payload is none for it.
        """
        seed = (check_tag(tag), _checked_seed(tag, payload))
        self._seeds = (*self._seeds, seed)
        self._hooks = None

        def undo() -> None:
            self._seeds = tuple(each for each in self._seeds if each is not seed)
            self._hooks = None

        return self._collected(undo)

    def switch(
        self, phase: PhaseName, function: PhaseHook, name: str, settings: dict[str, Any], *, required: bool = False
    ) -> Undo:
        """Ask a killswitch of Playhead's own before a phase of this agent; the header says what it was given."""
        common = checked_options(function, {"name": name, "inherit": False, "required": required})
        return self.add([Registration(role="before", phase=phase, settings=settings, **common)])

    def guard(self, maker: GuardMaker) -> Undo:
        """Add a killswitch at the ports, for this agent and all below it, in the runs that begin from now on."""
        if not isinstance(maker, GuardMaker):
            raise UsageError(
                f"guard takes a GuardMaker, as the blocks of playhead.compose.killswitches make; {maker!r} is none"
            )
        self._guards = (*self._guards, maker)

        def undo() -> None:
            self._guards = tuple(each for each in self._guards if each is not maker)

        return self._collected(undo)

    def declare(self, policy: Policy) -> Undo:
        """Add a policy, which an agent reads when it is made.

        Raises:
            UsageError: the agent already has a policy of this name, and such policies do not stack.
        """
        if not policy.stacks and any(each.name == policy.name for each in self.policies):
            raise UsageError(f"the policy {policy.name} is there twice: an agent has one of it")
        self.policies = (*self.policies, policy)

        def undo() -> None:
            self.policies = tuple(each for each in self.policies if each is not policy)

        return self._collected(undo)

    def use(self, block: Block) -> Undo:
        """Let a block register what it has; what is returned undoes all of that.

        Raises:
            UsageError: it is no function of a harness.
        """
        if not callable(block):
            raise UsageError(f"a block is a function that takes the harness; {block!r} is none")
        undos: list[Undo] = []
        self._collecting.append(undos)

        def undo() -> None:
            for each in reversed(undos):
                each()

        try:
            _require_used(block, block(self), undos)
        except BaseException:  # half a block is none
            undo()
            raise
        finally:
            self._collecting.pop()
        return self._collected(undo)

    def add(self, registrations: list[Registration]) -> Undo:
        """Add registrations, and return what undoes that: at once, also in a run that goes on."""
        self._registrations = (*self._registrations, *registrations)
        self._hooks = None

        def undo() -> None:
            for each in registrations:
                each.end()
            self._registrations = tuple(each for each in self._registrations if each not in registrations)
            self._hooks = None

        return self._collected(undo)

    def hooks(self) -> ComposedHooks | None:
        """Return what a run is to ask, as it is registered now; None when nothing is."""
        if self._hooks is None and (self._registrations or self._seeds):
            self._hooks = ComposedHooks(self._registrations, self._seeds)
        return self._hooks

    def guards(self) -> tuple[GuardMaker, ...]:
        """Return the killswitches at the ports, as they are registered now."""
        return self._guards

    def approves(self, tool: str) -> bool:
        """Return whether a killswitch asks an approver of its own before this tool runs."""
        return any(tool in each.approves or "*" in each.approves for each in self._guards)

    def info(self) -> tuple[HookInfo, ...]:
        """Return what is registered, as the header of a trace says it."""
        hooks = self.hooks()
        return (*(() if hooks is None else hooks.info()), *(each.info() for each in self._guards))

    def sources(self) -> tuple[SourceInfo, ...]:
        """Return the fingerprints of what is registered."""
        hooks = self.hooks()
        return (*(() if hooks is None else hooks.sources()), *(each.source() for each in self._guards))

    def _at_phase(self, role: str, phase: str, function: object, options: Options) -> Undo:
        if phase != "*" and phase not in PHASES:
            raise UsageError(f"there is no phase {phase!r}.{nearest(str(phase), PHASES)}")
        name: Any = None if phase == "*" else phase
        return self.add([Registration(role=role, phase=name, **checked_options(function, options))])

    def _collected(self, undo: Undo) -> Undo:
        if self._collecting:
            self._collecting[-1].append(undo)
        return undo


Block = Callable[[Harness], object]


def _require_used(block: Block, returned: object, undos: list[Undo]) -> None:
    """Refuse what a block returns that is itself a block: it was never used, so it would do nothing and say nothing.

    Raises:
        UsageError: a policy without its parentheses, or a block that makes another one instead of using it.
    """
    if callable(returned) and not any(returned is each for each in undos):
        name = getattr(block, "__name__", "the block")
        raise UsageError(
            f"{name} registered nothing and returned another block: write {name}(…) in compose=[…], or harness.use(…) in a "
            "block of yours"
        )


def _checked_seed(tag: str, payload: object) -> Any:  # noqa: ANN401 - by tag
    if tag == "message.user":
        payload = payload.content if isinstance(payload, Message) else payload
        return _accepted("prompt.task", payload, tag)
    if chokepoint(tag) not in (TEXT, CONTENT, JSON, ANYTHING):
        raise UsageError(f"emit({tag!r}, …): only texts and events can be emitted, not what the kernel itself makes")
    return _accepted(tag, payload, tag)


def _accepted(point: str, payload: object, tag: str) -> Any:  # noqa: ANN401 - by tag
    try:
        return chokepoint(point).accept(payload, payload)
    except (ValueError, AttributeError) as error:
        raise UsageError(f"emit({tag!r}, …): {type(payload).__name__} is no payload of this tag ({error})") from None
