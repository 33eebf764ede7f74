"""The harness registers the functions that change, observe, stop or resume an agent's runs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast

from playhead.compose.patterns import read_pattern
from playhead.compose.registration import Policy, Registration, nothing
from playhead.compose.tags import check_tag
from playhead.compose.typed import Options, Registrar, Undo, checked_options
from playhead.errors import UsageError, nearest
from playhead.kernel.guards import GuardMaker
from playhead.kernel.hooks import LOOP_PHASES, PHASES, PhaseAnswer, PhaseName, Recover
from playhead.trace.types import Message
from playhead.trace.values import to_json

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Unpack

    from playhead.compose.contexts import HookContext, PhaseContext
    from playhead.compose.runtime import ComposedHooks
    from playhead.kernel.hooks import Unmet
    from playhead.trace.header import AgentHeader, HookInfo, SourceInfo
    from playhead.trace.types import ToolSpec

T = TypeVar("T")
AnyPhase = PhaseName | Literal["*"]
PhaseHook = Callable[["PhaseContext"], PhaseAnswer | Awaitable[PhaseAnswer | None] | None]
"""Returns None, `Stop`, `Terminate` or `Skip`; before think also `Nudge` or `SwitchTo`, and before complete `Nudge`, `Answer`
or `Resume`. Sync or async."""
ErrorHook = Callable[[Exception, "PhaseContext"], Recover | Awaitable[Recover | None] | None]
"""Returns None, or `Recover(state)` to continue. Sync or async."""


class Harness(Registrar):
    """The registrations of an agent. A block is a function that takes a harness and registers hooks on it."""

    def __init__(self) -> None:
        self._registrations: tuple[Registration, ...] = ()
        self._guards: tuple[GuardMaker, ...] = ()
        self._hooks: ComposedHooks | None = None
        self._blocks: list[_Block] = []
        """The blocks that are registering now, the outermost first."""

    def before(self, phase: AnyPhase, function: PhaseHook, **options: Unpack[Options]) -> Undo:
        """Call a function before a phase; `*` means every phase.

        Hooks run in order of registration, built-in policies last. The first one that ends, skips, switches or sends back
        decides, and later ones do not run. After a `Nudge` before think, and after an `Answer`, the next hook still runs.

        Raises:
            UsageError: there is no such phase, or an option is not valid.
        """
        return self._at_phase("before", phase, function, options)

    def after(self, phase: AnyPhase, function: PhaseHook, **options: Unpack[Options]) -> Undo:
        """Call a function after a phase; otherwise like `before`."""
        return self._at_phase("after", phase, function, options)

    def on_error(self, phase: AnyPhase, function: ErrorHook, **options: Unpack[Options]) -> Undo:
        """Call a function after an error in `think`, `act` or `observe`; `*` means all three. Otherwise like `before`.

        Raises:
            UsageError: there is no such phase, errors in it cannot be recovered, or an option is not valid.
        """
        if phase != "*" and phase in PHASES and phase not in LOOP_PHASES:
            raise UsageError(f"there are no error hooks for {phase}, only for {', '.join(LOOP_PHASES)}, or in all: *")
        return self._at_phase("on-error", phase, function, options)

    def emit(self, tag: str, payload: Any) -> Undo:  # noqa: ANN401 - by tag
        """Emit a payload to transforms and taps whenever the agent starts.

        A `message.user` or `nudge.*` joins the thread after the task, unless a hook removes it; other payloads only reach hooks.

        Raises:
            UsageError: there is no such tag, or the payload does not fit it.
        """
        (matcher,) = read_pattern(check_tag(tag))
        payload = _checked_seed(tag, payload)
        return self.add([Registration(nothing, "emit", "emit", matcher, inherit=False, payload=payload)])

    def switch(
        self, phase: PhaseName, function: PhaseHook, name: str, settings: dict[str, Any], *, required: bool = False
    ) -> Undo:
        """Call a built-in killswitch before a phase of this agent; the header records its settings."""
        common = checked_options(function, {"name": name, "inherit": False, "required": required})
        return self.add([Registration(role="before", phase=phase, settings=settings, **common)])

    def guard(self, maker: GuardMaker) -> Undo:
        """Add a killswitch at the ports of this agent and its sub-agents, for runs that begin from now on."""
        if not isinstance(maker, GuardMaker):
            raise UsageError(
                f"guard takes a GuardMaker, as the blocks of playhead.compose.killswitches make; it is {maker!r}"
            )
        self._guards = (*self._guards, maker)

        def undo() -> None:
            self._guards = tuple(each for each in self._guards if each is not maker)

        return self._collected(undo)

    def unmet(self, function: Callable[[HookContext], Iterable[Unmet]], **options: Unpack[Options]) -> Undo:
        """Let strategies read what is still required before an answer is accepted; the function must not be async."""
        return self.add([Registration(role="unmet", **checked_options(function, options))])

    def per_run(self, factory: Callable[[], T]) -> Callable[[HookContext], T]:
        """Return a function that gives each agent in each run its own value, made by `factory`."""
        key = object()

        def of(context: HookContext) -> T:
            if key not in context.notes:
                context.notes[key] = factory()
            return cast("T", context.notes[key])

        return of

    def declare(self, name: str, settings: Mapping[str, Any] | None = None) -> None:
        """Declare a block's name and settings, inside the block; the header of the trace records them.

        Args:
            name: the block's name.
            settings: its arguments; a value without a JSON form is recorded as its `repr`.

        Raises:
            UsageError: this is not inside a block, or it is called twice in one.
        """
        self._declare(Policy(name, to_json(dict(settings or {})), stacks=True))

    def _declare(self, block: Policy) -> None:
        if not self._blocks or self._blocks[-1].declared is not None:
            raise UsageError(
                "harness.declare is called once, and inside a block: def block(harness): harness.declare(…)"
            )
        if not block.stacks and any(each.name == block.name for each in self._declared()):
            raise UsageError(f"{block.name} is there twice; an agent takes it once")
        self._blocks[-1].declared = block

    def use(self, block: Block) -> Undo:
        """Let a block register its hooks; the returned function undoes all of them.

        Raises:
            UsageError: the block is not a function that takes a harness.
        """
        if not callable(block):
            raise UsageError(f"a block is a function that takes the harness; it is {block!r}")
        entered = _Block()
        self._blocks.append(entered)

        def undo() -> None:
            for each in reversed(entered.undos):
                each()

        try:
            if isinstance(block, Policy) and block.register is not None:
                self._declare(block)
                block.register(self)
            else:
                _require_made(block)
                _require_used(block, block(self), entered.undos)
        except BaseException:  # a block registers all or nothing
            undo()
            raise
        finally:
            self._blocks.pop()
        return self._collected(undo)

    def check(self, header: AgentHeader, tools: Mapping[str, ToolSpec]) -> None:
        """Let blocks check an agent and its tools.

        Raises:
            UsageError: a block cannot work with this agent.
        """
        for each in self._declared():
            if each.check is not None:
                each.check(header, tools)

    def _declared(self) -> list[Policy]:
        return list(dict.fromkeys(each.block for each in self._registrations if each.block is not None))

    def add(self, registrations: list[Registration]) -> Undo:
        """Add registrations, and return a function that undoes them, also in runs in progress.

        A policy stays in the runs that began with it, because their headers name it and a replay rebuilds it.
        """
        declared = next((each.declared for each in reversed(self._blocks) if each.declared is not None), None)
        if declared is not None:
            for each in registrations:
                each.belongs_to(declared)
        self._registrations = (*self._registrations, *registrations)
        self._hooks = None

        def undo() -> None:
            for each in registrations:
                if each.policy is None:
                    each.end()
            self._registrations = tuple(each for each in self._registrations if each not in registrations)
            self._hooks = None

        return self._collected(undo)

    def hooks(self) -> ComposedHooks | None:
        """Return the hooks of a run, as registered now; None if there are none."""
        if self._hooks is None and self._registrations:
            ordered = sorted(self._registrations, key=lambda each: each.policy is not None)
            from playhead.compose.runtime import ComposedHooks  # noqa: PLC0415 - only for composed agents

            self._hooks = ComposedHooks(tuple(ordered))
        return self._hooks

    def guards(self) -> tuple[GuardMaker, ...]:
        """Return the killswitches at the ports, as registered now."""
        return self._guards

    def approves(self, tool: str) -> bool:
        """Return whether a killswitch has its own approver for this tool."""
        return any(each.approver is not None and not {tool, "*"}.isdisjoint(each.tools) for each in self._guards)

    def info(self) -> tuple[HookInfo, ...]:
        """Return the registrations as the header of a trace records them."""
        hooks = self.hooks()
        return (*(() if hooks is None else hooks.info()), *(each.info() for each in self._guards))

    def sources(self) -> tuple[SourceInfo, ...]:
        """Return the fingerprints of the registrations."""
        hooks = self.hooks()
        return (*(() if hooks is None else hooks.sources()), *(each.source() for each in self._guards))

    def _at_phase(self, role: str, phase: str, function: object, options: Options) -> Undo:
        if phase != "*" and phase not in PHASES:
            raise UsageError(f"there is no phase {phase!r}.{nearest(str(phase), PHASES)}")
        name: Any = None if phase == "*" else phase
        return self.add([Registration(role=role, phase=name, **checked_options(function, options))])

    def _collected(self, undo: Undo) -> Undo:
        if self._blocks:
            self._blocks[-1].undos.append(undo)
        return undo


Block = Callable[[Harness], object]


@dataclass(slots=True)
class _Block:
    """A block that is registering."""

    declared: Policy | None = None
    undos: list[Undo] = field(default_factory=list)


def _require_made(block: Block) -> None:
    """Refuse a policy or killswitch that was passed without its parentheses, so that it is not yet a block.

    Raises:
        UsageError: it was passed without parentheses.
    """
    name = getattr(block, "__qualname__", ".")
    if "." not in name and str(getattr(block, "__module__", "")).startswith("playhead.compose."):
        raise UsageError(f"{name} makes a block: write {name}(…) in compose=[…]")


def _require_used(block: Block, returned: object, undos: list[Undo]) -> None:
    """Refuse a block that returns another block, which would silently do nothing because it was never used.

    Raises:
        UsageError: the block returned another block instead of using it.
    """
    if callable(returned) and not any(returned is each for each in undos):
        name = getattr(block, "__name__", "the block")
        raise UsageError(
            f"{name} registered nothing and returned another block: write {name}(…) in compose=[…], or harness.use(…) in a "
            "block of yours"
        )


def _checked_seed(tag: str, payload: object) -> Any:  # noqa: ANN401 - by tag
    from playhead.kernel.chokepoints import ANYTHING, CONTENT, TEXT, chokepoint  # noqa: PLC0415 - few emit

    point = chokepoint("prompt.task" if tag == "message.user" else tag)
    if point not in (TEXT, CONTENT, ANYTHING):
        raise UsageError(f"emit({tag!r}, …): only texts and events can be emitted, not what the kernel itself makes")
    payload = payload.content if isinstance(payload, Message) else payload
    try:
        return point.accept(payload, payload)
    except (ValueError, AttributeError) as error:
        raise UsageError(f"emit({tag!r}, …): {type(payload).__name__} is not a payload of this tag ({error})") from None
