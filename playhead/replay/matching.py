"""Which recorded call is the one that a replay makes now. Nothing runs here, and nothing is ever chosen by guess.

In order: the call of the same owner, decision, place, tool and arguments (`exact`); one of the same owner, tool and
arguments (`reordered`); one of the same owner and tool that the tool's declared `key` says is the same (`normalised`).
Each only when it was answered in the state that the replay is in now. If there is none, but one of another state, that one
is `stale`. Each recorded call is served once.
"""

from __future__ import annotations

from collections import defaultdict, deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from playhead.errors import AmbiguousResultError
from playhead.trace.values import JsonValue, json_hash

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from playhead.replay.history import Past, PastCall
    from playhead.trace.events.tools import Rung


@dataclass(frozen=True, slots=True)
class Asked:
    """A call that the replay makes, as far as matching is concerned."""

    sources: tuple[str, ...]
    """The recorded owners whose results it may get."""
    is_owner: bool
    """Whether the source is the caller's own recording, or only those of agents of the same name."""
    caller: str
    """Owner and id of the call in the replay."""
    tool: str
    request: int | None
    """The request whose answer asked for it, when that is known."""
    iteration: int | None
    position: int
    args: JsonValue
    """Arguments as they are recorded, that is, redacted."""
    args_hash: str
    key: tuple[str, ...] | None = None
    """The arguments that the tool declares to identify a call."""

    @property
    def place(self) -> tuple[str, int | None, int]:
        """Where in the agent's course the call stands."""
        return _place(self.request, self.iteration, self.position)


class Match(NamedTuple):
    """A recorded call for a call of the replay."""

    call: PastCall
    rung: Rung
    in_place: bool = False
    """Whether it is the call of exactly this place, in whatever state it was answered."""


class Matcher:
    """Gives every call of a replay its recorded one, each once."""

    def __init__(self, past: Past) -> None:
        self._past = past
        self._at: dict[tuple[str, tuple[str, int | None, int]], PastCall] = {}
        self._same: _Shelf = _Shelf(self)
        self._keyed: dict[tuple[str, tuple[str, ...]], _Shelf] = {}
        self._equal: dict[tuple[str, str, str], list[PastCall]] = defaultdict(list)
        self._taken: set[int] = set()
        self._reserved: dict[int, str] = {}
        self._kept: dict[str, PastCall] = {}
        for call in past.calls:
            for request in (call.started.request, None):  # a strategy need not say which request a call comes from
                place = _place(request, call.iteration, call.started.position)
                self._at.setdefault((call.owner, place), call)
            self._same.put(call, call.started.args_hash)
            self._equal[call.owner, call.started.tool, call.started.args_hash].append(call)

    def reserve(self, asked: Asked) -> None:
        """Keep the recorded call of exactly this place for the one that asks for it."""
        self._keep(self._exact(asked), asked.caller)

    def reserve_any(self, asked: Asked) -> None:
        """Keep the recorded call of this place, or else the first one of the same arguments."""
        self._keep(self._exact(asked) or next(iter(self._same.all(asked, asked.args_hash)), None), asked.caller)

    def release(self, asked: Asked) -> None:
        """Give back what was kept for a call that a hook has made into another one since."""
        call = self._kept.get(asked.caller)
        if call is not None and (call.started.tool, call.started.args_hash) != (asked.tool, asked.args_hash):
            del self._kept[asked.caller], self._reserved[call.seq]

    def take(self, asked: Asked, now: int | None) -> Match | None:
        """Return the recorded call in the state of `now` side effects (None: no recorded state), and never again.

        Raises:
            AmbiguousResultError: agents of the same name were given different answers, and nothing says whose is right.
        """
        found = self._fresh(asked, now) or self._stale(asked)
        if found is not None:
            self._taken.add(found.call.seq)
        return found

    def enter(self, asked: Asked) -> list[PastCall]:
        """Return the recorded call of an agent: of this place, or else the first of the same owner, agent and task.

        When the caller has no recording of its own, it is the first of each of its sources; one alone is taken.
        """
        call = self._exact(asked)
        found = [call] if call is not None else list(self._same.all(asked, asked.args_hash))
        if len(found) == 1:
            self._taken.add(found[0].seq)
        return found

    def same(self, asked: Asked) -> list[PastCall]:
        """Return every recorded call of the same owner, tool and arguments, served or not; for messages."""
        return [call for source in asked.sources for call in self._equal[source, asked.tool, asked.args_hash]]

    def unanswered(self, asked: Asked) -> PastCall | None:
        """Return the recorded call of exactly this place when it has no answer."""
        call = self._exact(asked)
        return None if call is None or call.answered else call

    def is_taken(self, call: PastCall) -> bool:
        """Return whether the recorded call has been served."""
        return call.seq in self._taken

    def free(self, call: PastCall, caller: str) -> bool:
        """Return whether the recorded call may be served to this caller."""
        return call.seq not in self._taken and self._reserved.get(call.seq, caller) == caller

    def _keep(self, call: PastCall | None, caller: str) -> None:
        if call is not None and self._reserved.setdefault(call.seq, caller) == caller:
            self._kept[caller] = call

    def _fresh(self, asked: Asked, now: int | None) -> Match | None:
        call = self._exact(asked)
        if call is not None and call.answered and is_fresh(call, now):
            return Match(call, "exact", in_place=True)
        call = self._only(asked, self._same.fresh(asked, asked.args_hash, now))
        if call is not None:
            return Match(call, "reordered")
        if asked.key is not None:
            call = self._only(asked, self._of_key(asked, _key_hash(asked.args, asked.key), now))
        return None if call is None else Match(call, "normalised")

    def _of_key(self, asked: Asked, identity: str, now: int | None) -> list[PastCall]:
        """Return the calls that the key says are the same; they have to have been answered the same.

        Raises:
            AmbiguousResultError: they were not, so the key does not say what the answer is.
        """
        found = list(self._shelf(asked).fresh(asked, identity, now))
        different = self._shelf(asked).different(asked, identity) if found else None
        if different is not None:
            one, other = different
            raise AmbiguousResultError(
                f"{asked.tool}: by its key ({', '.join(asked.key or ())}) the call is the same as events {one.seq} and "
                f"{other.seq} of the recording, which were answered differently; nothing says which is right"
            )
        return found

    def _stale(self, asked: Asked) -> Match | None:
        call = self._exact(asked)
        if call is not None and call.answered:
            return Match(call, "stale", in_place=True)
        call = self._only(asked, self._same.answered(asked, asked.args_hash))
        if call is None and asked.key is not None:
            call = self._only(asked, self._shelf(asked).answered(asked, _key_hash(asked.args, asked.key)))
        return None if call is None else Match(call, "stale")

    def _exact(self, asked: Asked) -> PastCall | None:
        call = self._at.get((asked.sources[0], asked.place)) if asked.is_owner and asked.sources else None
        if call is None or (call.started.tool, call.started.args_hash) != (asked.tool, asked.args_hash):
            return None
        return call if self.free(call, asked.caller) else None

    def _only(self, asked: Asked, found: Iterable[PastCall]) -> PastCall | None:
        """Return the first of the calls; of several owners' all have to have been answered the same."""
        calls = list(found)
        different = next((call for call in calls[1:] if not _same_answer(calls[0], call)), None)
        if different is not None:
            raise AmbiguousResultError(
                f"{asked.caller} calls {asked.tool}, and no recorded agent had its task; "
                f"{calls[0].owner} (event {calls[0].seq}) and {different.owner} (event {different.seq}) made the same "
                "call and were answered differently, so nothing says which answer is right. Give it with tool_results="
            )
        return calls[0] if calls else None

    def _shelf(self, asked: Asked) -> _Shelf:
        """Return the calls of a tool by its key; made when the first is asked for, for the key may come from code."""
        key = asked.key or ()
        shelf = self._keyed.get((asked.tool, key))
        if shelf is None:
            shelf = self._keyed[asked.tool, key] = _Shelf(self)
            for call in self._past.calls:
                if call.started.tool == asked.tool and isinstance(call.started.args, dict):
                    shelf.put(call, _key_hash(call.started.args, key))
        return shelf


class _Shelf:
    """Recorded calls by owner, tool and what identifies them, in the order of the run, those of a state by themselves."""

    def __init__(self, matcher: Matcher) -> None:
        self._matcher = matcher
        self._all: dict[tuple[str, str, str], deque[PastCall]] = defaultdict(deque)
        self._of_state: dict[tuple[str, str, str, int | None], deque[PastCall]] = defaultdict(deque)
        self._first: dict[tuple[str, str, str, int | None], PastCall] = {}
        self._different: dict[tuple[str, str, str], tuple[PastCall, PastCall]] = {}

    def put(self, call: PastCall, identity: str) -> None:
        key = (call.owner, call.started.tool, identity)
        self._all[key].append(call)
        if call.answered and not call.overlapped:
            state = (*key, None if call.refused else call.effects_before)
            self._of_state[state].append(call)
            first = self._first.setdefault(state, call)
            if first.started.args_hash != call.started.args_hash and not _same_answer(first, call):
                self._different.setdefault(key, (first, call))

    def different(self, asked: Asked, identity: str) -> tuple[PastCall, PastCall] | None:
        """Return two calls of one state that are the same by this shelf, and were answered differently."""
        keys = ((owner, asked.tool, identity) for owner in asked.sources)
        return next((self._different[key] for key in keys if key in self._different), None)

    def all(self, asked: Asked, identity: str) -> Iterator[PastCall]:
        """Yield of each owner the first that is left."""
        return self._firsts(asked, lambda owner: self._all.get((owner, asked.tool, identity)))

    def answered(self, asked: Asked, identity: str) -> Iterator[PastCall]:
        """Yield of each owner the first that is left and has an answer."""
        return self._firsts(asked, lambda owner: self._all.get((owner, asked.tool, identity)), answered=True)

    def fresh(self, asked: Asked, identity: str, now: int | None) -> Iterator[PastCall]:
        """Yield of each owner the first that is left and was answered in this state, or was refused in any."""
        for state in dict.fromkeys((now, None)):
            found = list(self._firsts(asked, lambda owner: self._of_state.get((owner, asked.tool, identity, state))))  # noqa: B023 - used up at once
            if found:
                return iter(found)
        return iter(())

    def _firsts(
        self, asked: Asked, queue_of: Callable[[str], deque[PastCall] | None], *, answered: bool = False
    ) -> Iterator[PastCall]:
        for owner in asked.sources:
            queue = queue_of(owner)
            while queue and self._matcher.is_taken(queue[0]):
                queue.popleft()  # so that what has been served is passed over only once
            for call in queue or ():
                if self._matcher.free(call, asked.caller) and (call.answered or not answered):
                    yield call
                    break


def is_fresh(call: PastCall, now: int | None) -> bool:
    """Return whether the call was answered in the state of `now` side effects; a refusal holds in all."""
    return call.refused or (now is not None and call.effects_before == now and not call.overlapped)


def _place(request: int | None, iteration: int | None, position: int) -> tuple[str, int | None, int]:
    return ("turn", iteration, position) if request is None else ("request", request, position)


def _same_answer(one: PastCall, other: PastCall) -> bool:
    left, right = one.completed, other.completed
    assert left is not None  # noqa: S101 - only answered calls are candidates
    assert right is not None  # noqa: S101
    return (left.ok, left.result, left.error, left.ended) == (right.ok, right.result, right.error, right.ended)


def _key_hash(args: JsonValue, key: tuple[str, ...]) -> str:
    given = args if isinstance(args, dict) else {}
    return json_hash({name: given[name] for name in key if name in given})
