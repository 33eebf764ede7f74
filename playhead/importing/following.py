"""Whether a prompt goes on as that of a replay does: with the answer, the results of its calls, and nothing else.

Some frameworks have no messages for calls and results and tell the model of them in words, as the assistant's and the user's:
that is a form like another, as long as there are only few words around them.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from playhead.importing.wording import MOST_AROUND, count, how_shown, plain, without
from playhead.trace.types import text_of
from playhead.trace.values import to_json

_NUMBER = re.compile(r"(?:_\d+)*")

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from playhead.importing.readings import ForeignMessage
    from playhead.trace.events import LlmResponded, ToolCallCompleted


def follows(
    added: Sequence[ForeignMessage],
    answer: LlmResponded | None,
    results: Mapping[str, ToolCallCompleted],
    *,
    answer_is_shown: bool,
) -> bool:
    """Tell whether a replay adds the same messages to a prompt.

    Args:
        added: the messages that a prompt has after those of the one before.
        answer: what was answered to the one before; None when it failed, and was sent again.
        results: of the calls, by their ids.
        answer_is_shown: whether the span shows the message of the answer, if there is one.
    """
    if answer is None:
        return not added
    said = [message for message in added if message.role == "assistant"]
    told = [message for message in added if message.role != "assistant"]
    if list(added) != said + told:
        return False
    return (not answer_is_shown or _is_answer(said, answer)) and _are_results(told, answer, results)


def _is_answer(said: Sequence[ForeignMessage], answer: LlmResponded) -> bool:
    if len(said) > 1 and any(message.known and not message.content and not message.calls for message in said):
        return False
    asked = [(call.name, to_json(call.arguments), call.raw) for message in said for call in message.calls]
    words = plain("\n".join(text_of(message.content) for message in said))
    if asked:
        wanted = [(call.name, call.arguments, call.raw_arguments) for call in answer.tool_calls]
        return asked == wanted and words == plain(answer.text)
    made = [each for call in answer.tool_calls for each in (call.name, call.arguments or call.raw_arguments)]
    return _is_made_of(words, [answer.text, *made])


def _are_results(
    told: Sequence[ForeignMessage], answer: LlmResponded, results: Mapping[str, ToolCallCompleted]
) -> bool:
    returned = [results.get(call.id) for call in answer.tool_calls]
    if all(message.role == "tool" for message in told):
        ids = [call.id for call in answer.tool_calls]
        return len(told) == len(returned) and all(map(_is_result, told, ids, returned))
    if any(message.role != "user" or not isinstance(message.content, str) for message in told):
        return False
    words = plain("\n".join(text_of(message.content) for message in told))
    return _is_made_of(words, [each.result if each.ok else each.observation() for each in returned if each is not None])


def _is_result(told: ForeignMessage, call_id: str, result: ToolCallCompleted | None) -> bool:
    """Tell whether a message shows the result of a call; one that names its call was compared with its result already."""
    if told.call_id is not None:
        # an id that came before has got a number
        return call_id.startswith(told.call_id) and _NUMBER.fullmatch(call_id[len(told.call_id) :]) is not None
    if result is None:
        return True
    shown, said = result.observation(), text_of(told.content)
    return shown == said or (not isinstance(result.result, str) and how_shown(shown, said) == "same")


def _is_made_of(words: str, values: Sequence[object]) -> bool:
    """Tell whether words are these values, with no more than a few around each."""
    for value in values:
        left = without(words, plain(value)) if words or value else words
        if left is None:
            return False
        words = left
    return count(words) <= MOST_AROUND * len(values)
