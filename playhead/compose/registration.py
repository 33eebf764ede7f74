"""Registered functions and their options."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Final

from playhead.compose.patterns import Breadth
from playhead.compose.tags import known_tags
from playhead.errors import UsageError
from playhead.kernel.guards import hook_info
from playhead.trace.header import HookInfo, SourceInfo
from playhead.trace.parameters import fingerprint
from playhead.trace.types import ToolSpec
from playhead.trace.values import to_json

if TYPE_CHECKING:
    from playhead.compose.patterns import Matcher, Predicate
    from playhead.kernel.hooks import PhaseName
    from playhead.kernel.session import Tool
    from playhead.trace.header import AgentHeader

DEFAULT_TIMEOUT_S: Final = 5.0
"""The default timeout of an asynchronous hook, in seconds."""


NO_LIMIT_S: Final = 1e9
"""The timeout of built-in hooks, which ask models."""
Check = Callable[["AgentHeader", Mapping[str, ToolSpec]], object]
"""Checks an agent and its tools by name; raises `UsageError` if a block cannot work with them."""


@dataclass(frozen=True, slots=True, eq=False)
class Policy:
    """A block with a declared name and settings; the header records them, and a replay rebuilds built-in blocks from them."""

    name: str
    """Its name in the trace and in errors."""
    settings: dict[str, Any]
    """Its arguments, as JSON."""
    register: Callable[[Any], object] | None = None
    """Registers the hooks of a built-in block; None for a user's block."""
    stacks: bool = False
    """Whether an agent may have several of this name."""
    check: Check | None = None
    functions: tuple[tuple[Any, ...], ...] = ()
    """The caller's code in the block: its purpose, its name, and the code."""
    tools: dict[str, Tool] = field(default_factory=dict)
    """Tools of strategies that may take over."""

    def __call__(self, harness: Any) -> None:  # noqa: ANN401 - a `Harness`, which knows this class
        """Register the policy, as `harness.use` does."""
        harness.use(self)

    @property
    def role(self) -> str:
        """Its name in the header."""
        return "block" if self.register is None else "policy"

    def info(self) -> HookInfo:
        """Return what the header of a trace says about it."""
        return hook_info(self.role, self.name, self.settings)


@dataclass(slots=True, eq=False)
class Registration:
    """One function, registered in one place."""

    function: Callable[..., Any]
    role: str
    """`on`, `tap`, `before`, `after`, `on-error`, `unmet`, `emit`."""
    name: str
    """Its name in the trace."""
    matcher: Matcher | None = None
    """Its tags, for `on`, `tap` and `emit`."""
    phase: PhaseName | None = None
    """Its phase; None for every phase."""
    required: bool = False
    """Whether the run ends when the hook fails."""
    timeout_s: float = DEFAULT_TIMEOUT_S
    """Its timeout in seconds, if it is asynchronous."""
    inherit: bool = True
    """Whether sub-agents inherit it."""
    settings: dict[str, Any] | None = None
    """The settings of a built-in killswitch."""
    payload: Any = None
    """The payload that an `emit` emits when the agent starts."""
    block: Policy | None = None
    """The block that it belongs to, if that block is declared."""

    @property
    def policy(self) -> str | None:
        """The built-in policy that it belongs to."""
        return None if self.block is None or self.block.register is None else self.block.name

    def belongs_to(self, block: Policy) -> None:
        """Set the block. A policy's hook has the policy's name and timeout, ends the run if it fails, and is not inherited."""
        self.block = block
        if block.register is not None:
            self.name, self.timeout_s, self.inherit = block.name, NO_LIMIT_S, False
            self.required = self.role != "tap"

    def end(self) -> None:
        """Make sure that the function is no longer called, in any run."""
        self.function = nothing

    def info(self) -> HookInfo:
        """Return what the header of a trace says about it."""
        return HookInfo(
            role=self.role,
            at=self._at(),
            name=self.name,
            required=self.required,
            tags=() if self._predicate is None else tuple(filter(self._predicate, known_tags())),
            settings=self.settings,
            timeout_s=None if self.timeout_s == DEFAULT_TIMEOUT_S else self.timeout_s,
            inherit=None if self.inherit else False,
        )

    def source(self) -> SourceInfo:
        """Return the fingerprint of its function and of the function that selects its tags; for an `emit`, of its payload."""
        from playhead.kernel.sources import source_info  # noqa: PLC0415 - only for agents

        if self.role == "emit":
            values = fingerprint(to_json(self.payload))
            return SourceInfo(kind="emission", name=self._at(), fingerprint="", values=values)
        predicate = () if self._predicate is None else (self._predicate,)
        return source_info("hook", f"{self.name} ({self.role} {self._at()})", self.function, *predicate)

    def _at(self) -> str:
        return self.matcher.shown if self.matcher else self.phase or "*"

    @property
    def _predicate(self) -> Predicate | None:
        """The function that selects the hook's tags."""
        is_predicate = self.matcher is not None and self.matcher.breadth is Breadth.PREDICATE
        return self.matcher.matches if self.matcher is not None and is_predicate else None


def nothing(*_: object) -> None:
    """Replacement for a hook that was undone."""


def checked_function(function: object) -> tuple[Callable[..., Any], str]:
    """Return a hook's function and its own name.

    Raises:
        UsageError: it cannot be called.
    """
    if not callable(function):
        raise UsageError(f"a hook is a function; it is {function!r}")
    own = getattr(function, "__qualname__", type(function).__qualname__)
    return function, _where(function) if "<lambda>" in own else own.replace("<locals>.", "")


def _where(function: object) -> str:
    """Return the location of a function without a name, without the line, which changes with every edit above it."""
    code = getattr(function, "__code__", None)
    return "lambda" if code is None else f"lambda in {PurePath(code.co_filename).name}"
