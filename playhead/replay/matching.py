"""Which recorded call is the one that a replay makes now. Nothing runs here, and nothing is ever chosen by guess.

In order: the call of the same owner, decision, place, tool and arguments (`exact`); one of the same owner, tool and
arguments (`reordered`); one of the same owner and tool that the tool's declared `key` says is the same (`normalised`).
Each only when it was answered in the state that the replay is in now. If there is none, but one of another state, or one of
which redaction hides whether its arguments are the same, that one is `stale`. Each recorded call is served once.
"""

from __future__ import annotations

from collections import defaultdict, deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from playhead.errors import AmbiguousResultError
from playhead.replay.history import identity
from playhead.trace.fingerprint_key import comparable
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
    fingerprint: str | None = None
    """Where redaction changes the arguments: what tells them from others all the same."""
    key: tuple[str, ...] | None = None
    """The arguments that the tool declares to identify a call."""

    @property
    def place(self) -> tuple[str, int | None, int]:
        """Where in the agent's course the call stands."""
        return _place(self.request, self.iteration, self.position)

    @property
    def identity(self) -> str | None:
        """What tells its arguments from others; None when redaction hides that."""
        return identity(self.args_hash, self.fingerprint)


class Match(NamedTuple):
    """A recorded call for a call of the replay."""

    call: PastCall
    rung: Rung
    why: str | None = None
    """Why it is stale, where that is not the state of the world."""


HIDDEN: Final = (
    "redaction made its arguments look the same as these, and nothing here tells whether they are (the key of their "
    "fingerprints is in ~/.playhead of whoever recorded it; rebind= gives redacted values)"
)


class Matcher:
    """Gives every call of a replay its recorded one, each once."""

    def __init__(self, past: Past) -> None:
        self._past = past
        self._at: dict[tuple[str, tuple[str, int | None, int]], PastCall] = {}
        self._same: _Shelf = _Shelf(self)
        self._keyed: dict[tuple[str, tuple[str, ...]], _Shelf] = {}
        self._alike: dict[tuple[str, str, str], list[PastCall]] = defaultdict(list)
        self._redacted = any(call.started.args_fingerprint is not None for call in past.calls)
        self._taken: set[int] = set()
        self._reserved: dict[int, str] = {}
        self._kept: dict[str, PastCall] = {}
        for call in past.calls:
            for request in (call.started.request, None):  # a strategy need not say which request a call comes from
                place = _place(request, call.iteration, call.started.position)
                self._at.setdefault((call.owner, place), call)
            if call.identity is not None:
                self._same.put(call, call.identity)
            self._alike[call.owner, call.started.tool, call.args_hash].append(call)

    def reserve(self, asked: Asked) -> None:
        """Keep the recorded call of exactly this place for the one that asks for it."""
        self._keep(self._exact(asked), asked.caller)

    def reserve_any(self, asked: Asked) -> None:
        """Keep the recorded call of this place, or else the first one of the same arguments."""
        self._keep(self._exact(asked) or next(iter(self._equal(asked)), None), asked.caller)

    def release(self, asked: Asked) -> None:
        """Give back what was kept for a call that a hook has made into another one since."""
        call = self._kept.get(asked.caller)
        if call is not None and not _fits(call, asked):
            del self._kept[asked.caller], self._reserved[call.seq]

    def take(self, asked: Asked, now: str) -> Match | None:
        """Return the recorded call that was answered in this state, or else in another one, and never again.

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
        found = [call] if call is not None else self._equal(asked)
        if len(found) == 1:
            self._taken.add(found[0].seq)
        return found

    def same(self, asked: Asked) -> list[PastCall]:
        """Return every recorded call of the same owner, tool and arguments, served or not; for messages."""
        calls = (call for source in asked.sources for call in self._alike[source, asked.tool, asked.args_hash])
        return [call for call in calls if _fits(call, asked)]

    def unanswered(self, asked: Asked) -> PastCall | None:
        """Return the recorded call of exactly this place when it has no answer."""
        call = self._exact(asked)
        return None if call is None or _servable(call) else call

    def fresh_at(self, asked: Asked, now: str) -> PastCall | None:
        """Return the recorded call of exactly this place, when its own body answered it in this state; it is taken."""
        call = self._exact(asked)
        if call is None or call.identity is None or call.identity != asked.identity or not _is_fresh(call, now):
            return None
        self._taken.add(call.seq)
        return call

    def at(self, asked: Asked) -> PastCall | None:
        """Return the recorded call of exactly this place, answered or not."""
        return self._exact(asked)

    def is_taken(self, call: PastCall) -> bool:
        """Return whether the recorded call has been served."""
        return call.seq in self._taken

    def free(self, call: PastCall, caller: str) -> bool:
        """Return whether the recorded call may be served to this caller."""
        return call.seq not in self._taken and self._reserved.get(call.seq, caller) == caller

    def _keep(self, call: PastCall | None, caller: str) -> None:
        if call is not None and self._reserved.setdefault(call.seq, caller) == caller:
            self._kept[caller] = call

    def _equal(self, asked: Asked) -> list[PastCall]:
        """Return of each owner the first call of the same tool and arguments that is left."""
        return [] if asked.identity is None else list(self._same.all(asked, asked.identity))

    def _fresh(self, asked: Asked, now: str) -> Match | None:
        if asked.identity is None:
            return None
        call = self._exact(asked)
        if call is not None and call.identity == asked.identity and _is_fresh(call, now):
            return Match(call, "exact")
        call = self._only(asked, self._same.fresh(asked, asked.identity, now))
        if call is not None:
            return Match(call, "reordered")
        if asked.key is not None and asked.fingerprint is None:
            call = self._only(asked, self._of_key(asked, _key_hash(asked.args, asked.key), now))
        return None if call is None else Match(call, "normalised")

    def _of_key(self, asked: Asked, identity: str, now: str) -> list[PastCall]:
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
        if call is None or not _servable(call):
            equal = () if asked.identity is None else self._same.answered(asked, asked.identity)
            call = self._only(asked, equal) or self._hidden(asked)
        if call is None and asked.key is not None:
            call = self._only(asked, self._shelf(asked).answered(asked, _key_hash(asked.args, asked.key)))
        if call is None:
            return None
        hidden = call.args_hash == asked.args_hash and call.identity != asked.identity
        return Match(call, "stale", call.doubt or (HIDDEN if hidden or asked.identity is None else None))

    def _hidden(self, asked: Asked) -> PastCall | None:
        """Return the first call that redaction made look the same."""
        if asked.fingerprint is None and not self._redacted:
            return None
        return next((call for call in self.same(asked) if _servable(call) and self.free(call, asked.caller)), None)

    def _exact(self, asked: Asked) -> PastCall | None:
        call = self._at.get((asked.sources[0], asked.place)) if asked.is_owner and asked.sources else None
        return call if call is not None and _fits(call, asked) and self.free(call, asked.caller) else None

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
                readable = isinstance(call.started.args, dict) and call.started.args_fingerprint is None
                if readable and call.started.tool == asked.tool:
                    shelf.put(call, _key_hash(call.started.args, key))
        return shelf


class _Shelf:
    """Recorded calls by owner, tool and what identifies them, in the order of the run, those of a state by themselves."""

    def __init__(self, matcher: Matcher) -> None:
        self._matcher = matcher
        self._all: dict[tuple[str, str, str], deque[PastCall]] = defaultdict(deque)
        self._of_state: dict[tuple[str, str, str, str], deque[PastCall]] = defaultdict(deque)
        self._first: dict[tuple[str, str, str, str], PastCall] = {}
        self._different: dict[tuple[str, str, str], tuple[PastCall, PastCall]] = {}

    def put(self, call: PastCall, identity: str) -> None:
        key = (call.owner, call.started.tool, identity)
        self._all[key].append(call)
        if _is_fresh(call, call.state):
            state = (*key, call.state)
            self._of_state[state].append(call)
            first = self._first.setdefault(state, call)
            if first.args_hash != call.args_hash and not _same_answer(first, call):
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

    def fresh(self, asked: Asked, identity: str, now: str) -> Iterator[PastCall]:
        """Yield of each owner the first that is left and was answered in this state."""
        return self._firsts(asked, lambda owner: self._of_state.get((owner, asked.tool, identity, now)))

    def _firsts(
        self, asked: Asked, queue_of: Callable[[str], deque[PastCall] | None], *, answered: bool = False
    ) -> Iterator[PastCall]:
        for owner in asked.sources:
            queue = queue_of(owner)
            while queue and self._matcher.is_taken(queue[0]):
                queue.popleft()  # so that what has been served is passed over only once
            for call in queue or ():
                if self._matcher.free(call, asked.caller) and (_servable(call) or not answered):
                    yield call
                    break


def _servable(call: PastCall) -> bool:
    """Return whether there is something to serve: what its body returned, or that somebody did not allow it."""
    return call.completed is not None and (call.answered or call.denied)


def _is_fresh(call: PastCall, now: str) -> bool:
    """Return whether the call was answered in this state, and nothing else speaks against its answer."""
    return _servable(call) and call.state == now and call.doubt is None


def _fits(call: PastCall, asked: Asked) -> bool:
    """Return whether the call is one of this tool and these arguments, as far as redaction lets one see."""
    if (call.started.tool, call.args_hash) != (asked.tool, asked.args_hash):
        return False
    then, now = call.started.args_fingerprint, asked.fingerprint
    return then is None or now is None or then == now or not comparable(then, now)


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
