"""Find the recorded call that answers a call of a replay. Nothing runs here, and no match is a guess.

Candidates in order: a call of the same owner, place, tool and arguments (`exact`); of the same owner, tool and arguments
(`reordered`); of the same owner and tool with an equal declared `key` (`normalised`). A candidate must have been answered
in the replay's current state of the world. As long as the replay does exactly what was recorded, the call of the same
place always matches. A call from another state, or one whose arguments redaction hides, is `stale`. Each recorded call is
served once.
"""

from __future__ import annotations

import json
from collections import defaultdict, deque
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import islice
from typing import TYPE_CHECKING, Final, NamedTuple

from playhead.diagnose.parts import short
from playhead.errors import AmbiguousResultError
from playhead.trace.events import AgentStarted
from playhead.trace.parameters import comparable
from playhead.trace.values import JsonValue, json_hash

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from playhead.diagnose.recording import OwnerRecording, RecordedCall, Recording
    from playhead.kernel.session import ToolContext
    from playhead.replay.calls import Call, Past
    from playhead.trace.events.tools import Rung
    from playhead.trace.header import AgentHeader
    from playhead.trace.types import ToolSpec


@dataclass(frozen=True, slots=True)
class Place:
    """The recorded counterpart of an agent of the replay."""

    sources: tuple[str, ...]
    """The recorded owners whose answers it may get."""
    is_owner: bool
    """Whether this is its own recording. If not, its task is new, and these are other agents of the same name."""


class Match(NamedTuple):
    """The recorded call that matches a call of the replay."""

    call: Call
    rung: Rung
    why: str | None = None
    """The reason why it is stale, if that is not the state of the world."""


NOWHERE: Final = Place((), is_owner=False)
HIDDEN: Final = "redaction hides whether its arguments are these: their fingerprints are of another ~/.playhead"


class Matcher:
    """Assigns recorded calls to the calls of a replay, each at most once."""

    def __init__(self, past: Past) -> None:
        self._at = {(call.owner, call.iteration, call.started.position): call for call in reversed(past.calls)}
        self._left: dict[tuple[str | None, ...], deque[Call]] = defaultdict(deque)
        self._alike: dict[tuple[str, str, str], list[Call]] = defaultdict(list)
        self._of_tool: dict[tuple[str, str], list[Call]] = defaultdict(list)
        self._redacted = any(call.started.args_fingerprint is not None for call in past.calls)
        self._taken: set[int] = set()
        for call in past.calls:
            name = (call.owner, call.started.tool, call.identity)
            if _is_answer(call) or (call.recorded_spec is not None and call.recorded_spec.kind == "agent"):
                self._left[name].append(call)
            if _is_fresh(call, call.state):
                self._left[*name, call.state].append(call)
            self._alike[call.owner, call.started.tool, call.started.args_hash].append(call)
            if isinstance(call.started.args, dict) and call.started.args_fingerprint is None and _is_answer(call):
                self._of_tool[call.owner, call.started.tool].append(call)

    def at(self, asked: Call, place: Place) -> Call | None:
        """Return the recorded call of exactly this place, answered or not, if it looks the same and is unused."""
        found = self._at.get((place.sources[0], asked.iteration, asked.started.position)) if place.is_owner else None
        return found if found is not None and self._is_left(found) and _looks_same(found, asked) else None

    def on_course(self, asked: Call, place: Place) -> Call | None:
        """Take the recorded call of this place, if the replay has done exactly what was recorded so far."""
        found = self.at(asked, place)
        if found is None or found.course != asked.course or found.doubt or not (found.served or found.denied):
            return None
        then, now = found.recorded_spec, found.spec
        if then is None or now is None or (then.cache, then.cache_s) != (now.cache, now.cache_s):
            return None
        return self._take(found)

    def take(self, asked: Call, place: Place, now: str | None) -> Match | None:
        """Take the recorded call that was answered in this state, or else in another state.

        Raises:
            AmbiguousResultError: agents of the same name got different answers, so the right one is unknown.
        """
        found = self._fresh(asked, place, now) or self._stale(asked, place)
        if found is not None:
            self._take(found.call)
        return found

    def enter(self, asked: Call, place: Place) -> list[Call]:
        """Return the recorded call of an agent: of this place, or the first of the same owner, agent and task.

        If the caller has no recording of its own, return the first call of each of its sources, and take it if only one
        is found.
        """
        here = self.at(asked, place)
        found = [here] if here is not None else list(self._firsts(asked, place))
        if len(found) == 1:
            self._take(found[0])
        return found

    def same(self, asked: Call, place: Place) -> list[Call]:
        """Return every recorded call of the same owner, tool and arguments, served or not; for messages."""
        found = (self._alike[source, asked.started.tool, asked.started.args_hash] for source in place.sources)
        return [call for calls in found for call in calls if _looks_same(call, asked)]

    def _take(self, call: Call) -> Call:
        self._taken.add(call.seq)
        return call

    def _is_left(self, call: Call) -> bool:
        return call.seq not in self._taken

    def _fresh(self, asked: Call, place: Place, now: str | None) -> Match | None:
        if now is None or asked.identity is None:
            return None
        here = self.at(asked, place)
        if here is not None and here.identity == asked.identity and _is_fresh(here, now):
            return Match(here, "exact")
        found = self._only(asked, self._firsts(asked, place, now))
        if found is not None:
            return Match(found, "reordered")
        found = self._only(asked, self._of_key(asked, place, now))
        return None if found is None else Match(found, "normalised")

    def _of_key(self, asked: Call, place: Place, now: str) -> list[Call]:
        """Return each owner's first call with an equal key. All of them must have the same answer.

        Raises:
            AmbiguousResultError: the answers differ, so the key does not determine the answer.
        """
        alike = [[call for call in each if _is_fresh(call, now)] for each in self._same_key(asked, place)]
        for one, other in ((each[0], other) for each in alike for other in each):
            if other.started.args_hash != one.started.args_hash and not _same_answer(one, other):
                key, events = ", ".join(_key(asked)), f"{one.seq} and {other.seq}"
                why = f"by its key ({key}) the call is the same as events {events} of the recording"
                raise AmbiguousResultError(f"{asked.started.tool}: {why}, which were answered differently")
        return [call for each in alike for call in list(filter(self._is_left, each))[:1]]

    def _stale(self, asked: Call, place: Place) -> Match | None:
        found = self.at(asked, place)
        if found is None or not _is_answer(found):
            found = self._only(asked, self._firsts(asked, place)) or self._hidden(asked, place)
        if found is None:
            firsts = (next(filter(self._is_left, each), None) for each in self._same_key(asked, place))
            found = self._only(asked, filter(None, firsts))
        if found is None:
            return None
        hidden = asked.identity is None or (_looks_same(found, asked) and found.identity != asked.identity)
        return Match(found, "stale", found.doubt or (HIDDEN if hidden else None))

    def _hidden(self, asked: Call, place: Place) -> Call | None:
        """Return the first call that looks the same because of redaction."""
        same = self.same(asked, place) if self._redacted or asked.started.args_fingerprint is not None else []
        return next((call for call in same if _is_answer(call) and self._is_left(call)), None)

    def _only(self, asked: Call, found: Iterable[Call]) -> Call | None:
        """Return the first answered call. If the calls have several owners, their answers must be the same."""
        calls = [call for call in found if _is_answer(call)]
        different = next((call for call in calls[1:] if not _same_answer(calls[0], call)), None)
        if different is not None:
            both = " and ".join(f"{each.owner} (event {each.seq})" for each in (calls[0], different))
            why = f"no recorded agent had its task; {both} made the same call and were answered differently"
            raise AmbiguousResultError(f"{asked.owner} calls {asked.started.tool}; {why}. Give it with tool_results=")
        return calls[0] if calls else None

    def _firsts(self, asked: Call, place: Place, *state: str) -> Iterator[Call]:
        """Yield each owner's first unused call of the same tool and arguments, and of this state if one is given."""
        for owner in place.sources if asked.identity is not None else ():
            queue = self._left.get((owner, asked.started.tool, asked.identity, *state))
            while queue and not self._is_left(queue[0]):
                queue.popleft()  # so that what has been served is passed over only once
            if queue:
                yield queue[0]

    def _same_key(self, asked: Call, place: Place) -> list[list[Call]]:
        """Return each owner's answered calls with an equal key; none if the tool has no key."""
        key, started = _key(asked), asked.started
        if not key or started.args_fingerprint is not None:
            return []
        name, found = _key_hash(started.args, key), (self._of_tool[owner, started.tool] for owner in place.sources)
        alike = ([call for call in calls if _key_hash(call.started.args, key) == name] for calls in found)
        return list(filter(None, alike))


class Places:
    """Finds the recording of each agent of a replay.

    An owner's name consists of the calls that led to it. Because a replay may enter an agent at another turn or place, its
    recording is found through the call that enters it, not by name.
    """

    def __init__(self, recording: Recording, past: Past, matcher: Matcher) -> None:
        self._recording = recording
        self._matcher = matcher
        self._places = {"root": Place(("root",), is_owner=True)}
        self._claimed: set[str] = set()
        self._agents: dict[tuple[str, str], list[str]] = defaultdict(list)
        for call in past.calls:
            if self._was_entered(call):
                self._agents[call.owner, call.started.tool].append(call.child)

    def of(self, owner: str) -> Place:
        """Return an owner's recorded counterpart. A new task cannot use recordings that are taken by their own agents."""
        place = self._places.get(owner, NOWHERE)
        if place.is_owner:
            return place
        return Place(tuple(name for name in place.sources if name not in self._claimed), is_owner=False)

    def enter(self, asked: Call) -> list[Call]:
        """Find the recording of an agent that is about to be entered, and return its recorded calls.

        The call of this place is used, or the first with the same parent, agent and task. An agent with a new task may
        use the answers of agents of the same name under the same parent.
        """
        above = self.of(asked.owner)
        calls = self._matcher.enter(asked, above)
        entered = [call.child for call in calls if self._was_entered(call)]
        if len(entered) == 1:
            self._claimed.add(entered[0])
        alike = entered or [name for source in above.sources for name in self._agents[source, asked.started.tool]]
        self._places[asked.child] = Place(tuple(alike), is_owner=len(entered) == 1)
        return calls

    def recorded(self, owner: str) -> OwnerRecording | None:
        """Return the recording of an agent, or of the first agent of its name."""
        place = self._places.get(owner, NOWHERE)
        return self._recording.owners[place.sources[0]] if place.sources else None

    def tools(self, owner: str) -> list[ToolSpec]:
        """Return an agent's recorded tools."""
        recorded = self.recorded(owner)
        return [] if recorded is None else list(recorded.own_tools.values())

    def header(self, owner: str) -> AgentHeader | None:
        """Return an agent's recorded header."""
        recorded = self.recorded(owner)
        return None if recorded is None or recorded.started is None else recorded.started.agent

    def _was_entered(self, call: Call) -> bool:
        owner = self._recording.owners.get(call.child)
        return owner is not None and isinstance(owner.started, AgentStarted) and says_tools(owner)


def says_tools(owner: OwnerRecording) -> bool:
    """Return whether the recording is long enough to show an agent's tools."""
    return bool(owner.own_tools or owner.messages or owner.completed)


def _is_answer(call: Call) -> bool:
    """Return whether there is something to serve: the body's result, or a denial."""
    return call.answered or call.denied


def _is_fresh(call: Call, now: str | None) -> bool:
    """Return whether the call's answer is valid: it was given in this state, and there is no other doubt."""
    return _is_answer(call) and now is not None and call.state == now and call.doubt is None


def _looks_same(call: Call, asked: Call) -> bool:
    """Return whether the call has this tool and these arguments, as far as redaction shows."""
    one, other = call.started, asked.started
    if (one.tool, one.args_hash) != (other.tool, other.args_hash):
        return False
    then, now = one.args_fingerprint, other.args_fingerprint
    return then is None or now is None or then == now or not comparable(then, now)


def _same_answer(one: Call, other: Call) -> bool:
    fields = ("ok", "result", "error", "ended")
    return all(getattr(one.completed, name, None) == getattr(other.completed, name, None) for name in fields)


def _key(asked: Call) -> tuple[str, ...]:
    return () if asked.spec is None else asked.spec.key or ()


def _key_hash(args: JsonValue, key: tuple[str, ...]) -> str:
    given = args if isinstance(args, dict) else {}
    return json_hash({name: given[name] for name in key if name in given})


COMPARED: Final = 2000
"""The maximum number of characters of arguments that are compared to find the nearest call."""
COMPARED_CALLS: Final = 100
"""The maximum number of recorded calls searched for the nearest one, so that many misses do not take quadratic time."""


def describe_miss(context: ToolContext, arguments: JsonValue, recorded: Iterable[RecordedCall]) -> str:
    """Return the reason why a call has no recorded result, with the nearest recorded call and the difference."""
    calls, asked = list(islice(recorded, COMPARED_CALLS)), name_call(context, arguments)
    if not calls:
        return f"{asked}; the recording holds no call of {context.owner}"

    def likeness(call: RecordedCall) -> tuple[bool, float, bool]:
        then, now = (_text(each)[:COMPARED] for each in (call.started.args, arguments))
        alike = SequenceMatcher(None, then, now).quick_ratio()
        return call.started.tool == context.tool, alike, call.iteration == context.iteration

    near = max(calls, key=likeness)
    then = {"tool": near.started.tool, "turn": near.iteration, "place": near.started.position}
    now = {"tool": context.tool, "turn": context.iteration, "place": context.position}
    differing = [f"{name} {then[name]!r} instead of {now[name]!r}" for name in then if then[name] != now[name]]
    if near.started.args != arguments:
        differing.append(f"arguments {short(_text(near.started.args))}")
    what = ", ".join(differing) or "it has been served already"
    return f"{asked}; the nearest recorded call is {near.started.tool} (event {near.seq}): {what}"


def name_call(context: ToolContext, arguments: JsonValue) -> str:
    """Return a description of the call and its place."""
    place = f"turn {context.iteration}, place {context.position}"
    return f"{context.owner} calls {context.tool}({short(_text(arguments))}) in {place}"


def _text(value: JsonValue) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True)
