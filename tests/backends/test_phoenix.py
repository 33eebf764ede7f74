"""What Phoenix alone shows: projects and sessions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.backends.conftest import MORE, PLACE
from tests.backends.phoenix import Phoenix
from tests.backends.scenes import ANSWER, SCENES, SESSION, TASK, USER

if TYPE_CHECKING:
    from tests.backends.conftest import Sent
    from tests.backends.seen import SeenTrace

pytestmark = [
    pytest.mark.parametrize("sent", [pytest.param("phoenix", marks=pytest.mark.phoenix)], indirect=True),
    pytest.mark.timeout(400),
]


def test_project(sent: Sent) -> None:
    """Everything is in the project that the environment named, and its totals are those of its traces."""
    assert isinstance(sent.server, Phoenix)
    query = "{ projects { edges { node { name traceCount tokenCountTotal } } } }"
    projects = sent.server.asked(query)
    traces = sent.server.traces(PLACE, sent.spans)
    assert sorted(projects) == ["default", PLACE]
    assert (projects["default"]["traceCount"], projects[PLACE]["traceCount"]) == (0, len(traces))
    assert projects[PLACE]["tokenCountTotal"] == sum(trace.tokens for trace in traces.values())


def test_sessions(sent: Sent, seen: dict[str, SeenTrace]) -> None:
    """Runs of one session stand together, under their user, with the first input and the last output."""
    assert isinstance(sent.server, Phoenix)
    sessions = sent.server.sessions(PLACE)
    alone = {scene for scene in SCENES if not scene.startswith("session-")}
    assert sessions.keys() - {*MORE} == {SESSION, *alone}
    both = sessions[SESSION]
    said = (both["numTraces"], both["userId"], both["firstInput"]["value"], both["lastOutput"]["value"])
    assert said == (2, USER, TASK, ANSWER)
    assert both["tokenUsage"]["total"] == seen["session-1"].tokens + seen["session-2"].tokens
    failed = {name for name, session in sessions.items() if session["numTracesWithError"]}
    assert failed - {*MORE} == {"failed-model", "failed-tool", "retried-model"}
