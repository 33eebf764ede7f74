"""The state of the world as far as a run knows it: the earlier calls with side effects, by resource.

An answer is valid in the state in which it was given. Recording and replay are followed in the same way, so equal keys mean
that equal calls were made, in equal states, to every resource that a call touches; and equal courses, that a run has done
exactly what the other one did.
"""

from __future__ import annotations

import hashlib
from itertools import count
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from playhead.trace.types import ToolSpec

Resources: TypeAlias = "frozenset[str] | None"
"""Names of resources; None: everything."""
NOTHING: Final[frozenset[str]] = frozenset()


class Touched(NamedTuple):
    """The resources that calls of a tool read and write."""

    depends: Resources
    """What their answers depend on."""
    writes: Resources
    """What they may change."""


def touched(spec: ToolSpec | None) -> Touched:
    """Return the resources that a tool declares; without a declaration, everything."""
    reads = None if spec is None or spec.reads is None else frozenset(spec.reads)
    if spec is not None and spec.read_only:
        return Touched(reads, NOTHING)
    writes = None if spec is None or spec.writes is None else frozenset(spec.writes)
    return Touched(None if writes is None else writes | (reads or NOTHING), writes)


def union(one: Resources, other: Resources) -> Resources:
    """Return the resources of both."""
    return None if one is None or other is None else one | other


def meet(one: Resources, other: Resources) -> bool:
    """Return whether both have something in common."""
    if one is None or other is None:
        return NOTHING not in (one, other)
    return not one.isdisjoint(other)


class State:
    """Follows the calls of one run, in their order.

    Each resource has a version: a digest of the last call that changed it, and of the state that this call was made in.
    """

    def __init__(self, side: str) -> None:
        """Begin; `side` makes what is not known of this run differ from what is not known of another one."""
        self._side = side
        self._rest = ""
        self._versions: dict[str, str] = {}
        self._adrift: Resources = NOTHING
        self._unknown = count()
        self.course = ""
        """A digest of all that the run has done so far."""
        self.log: list[tuple[Resources, str]] = []
        """The resources written, each with its call, for messages."""

    def begin(self, place: str, identity: str | None) -> str:
        """Take in that a call was made, whether or not it ran; return the course of the run up to it.

        Args:
            place: where it stands: the course of a run is the same only if all its calls stand where they stood.
            identity: what tells its arguments from others; None when that is not known.
        """
        self.course = digest(self.course, place, self._new() if identity is None else identity)
        return self.course

    def refuse(self) -> None:
        """Take in that a call was made, and that its body did not run."""
        self.course = digest(self.course, "refused")

    def key(self, resources: Resources) -> str | None:
        """Return the state that the resources are in; None when they may change at any time."""
        if meet(resources, self._adrift):
            return None
        if resources is None:
            return digest(("", self._rest), *sorted(self._versions.items()))
        return digest(*((name, self._versions.get(name, self._rest)) for name in sorted(resources)))

    def follow(self, call: str, touches: Touched, what: str, *, adrift: bool = False) -> None:
        """Take in a call that ran.

        Args:
            call: agent, tool and arguments.
            touches: the resources that it reads and writes.
            what: the call as messages name it.
            adrift: whether the moment of its effect is unknown: from now on these resources may change at any time.
        """
        before = self.key(touches.depends)
        if adrift or before is None:
            self._adrift = union(self._adrift, touches.writes)
        if touches.writes != NOTHING:
            self.course = digest(self.course, call)
        self._write(touches.writes, digest(call, before), what)

    def lose(self, writes: Resources, why: str) -> None:
        """Note that the state of these resources is now unknown."""
        self.course = self._new()
        self._write(writes, self._new(), why)

    def last(self, resources: Resources, until: int | None = None) -> str:
        """Return the last call that may have changed one of these resources, as the log has it."""
        return next((what for writes, what in reversed(self.log[:until]) if meet(writes, resources)), "none")

    def _new(self) -> str:
        return digest(self._side, next(self._unknown))

    def _write(self, writes: Resources, version: str, what: str) -> None:
        if writes == NOTHING:
            return
        self.log.append((writes, what))
        if writes is None:
            self._rest = version
            self._versions.clear()
        else:
            self._versions.update(dict.fromkeys(writes, version))


def digest(*parts: object) -> str:
    """Return a name for these parts."""
    return hashlib.sha256(repr(parts).encode()).hexdigest()
