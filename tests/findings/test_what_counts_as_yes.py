"""Only a real `True` or a decision of the exact type counts: an object that claims to be one does not."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock, Mock, create_autospec

import pytest

from playhead import Approval, Verdict, tool
from playhead.compose.killswitches import require_approval_for
from playhead.errors import UsageError
from playhead.replay import DID_NOT_HAPPEN, load_recording, resume_sync
from playhead.testing import call, text
from tests.findings.adapter import agent, run


class Claims:
    """Says of itself that it is of another type, and that it approves."""

    approved = valid = ok = True
    why = by = None
    feedback = ""

    def __init__(self, kind: type) -> None:
        self.kind = kind

    @property
    def __class__(self) -> Any:
        """Return what it is not."""
        return self.kind

    @__class__.setter
    def __class__(self, kind: Any) -> None:
        raise TypeError


class Later:
    """Is awaited, and then is another one."""

    def __init__(self, then: Any) -> None:
        self.then = then

    def __await__(self) -> Any:
        """Return what it stands for."""
        yield from ()
        return self.then


class Approved(Approval):
    """A subclass may say anything."""

    def __init__(self) -> None:
        super().__init__(approved=True)


class Valid(Verdict):
    """A subclass may say anything."""

    def __init__(self) -> None:
        super().__init__(valid=True)


def posing(kind: type, **fields: Any) -> list[Any]:
    """Return objects that pass for one of this type where `isinstance` or an attribute is asked."""
    return [
        Mock(), MagicMock(), Mock(spec=kind), Mock(spec=kind, **fields), MagicMock(spec=kind, **fields),
        create_autospec(kind, instance=True, **fields), Mock(spec=bool), MagicMock(spec=bool), Claims(kind), Claims(bool),
        SimpleNamespace(**fields), dict(fields), 1, 1.0, "yes", "True", [True], kind,
    ]  # fmt: skip


NO_APPROVAL = [
    *posing(Approval, approved=True, why=None, by=None), Approved(), Approval(1), Approval("yes"), Approval(Mock()),  # type: ignore[arg-type]
    Approval(Mock(spec=bool)), Approval(Claims(bool)),  # type: ignore[arg-type]
]  # fmt: skip
NO_VERDICT = [
    *posing(Verdict, valid=True, feedback=""), Valid(), None, Verdict(1), Verdict("yes"), Verdict(Mock()),  # type: ignore[arg-type]
    Verdict(MagicMock(spec=bool)), Verdict(True, Mock()), Verdict(True, Mock(spec=str)),
]  # fmt: skip


@pytest.mark.parametrize("where", ["approver", "switch"])
@pytest.mark.parametrize("how", [lambda answer: answer, Later])
def test_only_an_approval_is_an_approval(where, how):
    """A tool runs only after `True` or an exact `Approval(True)`; anything else denies the call."""
    ran: list[str] = []

    @tool(requires_approval=where == "approver")
    def pay(to: str) -> str:
        """Pay."""
        ran.append(to)
        return "paid"

    for answer in [*NO_APPROVAL, True, Approval(approved=True)]:
        options: dict[str, Any] = {"approver": lambda _, answer=answer: how(answer)}
        if where == "switch":
            options = {"compose": [require_approval_for("pay", options["approver"])]}
        made = agent([call("pay", to=f"{type(answer)}"), text("done")], [pay], **options)
        assert run(made).output == "done"
    assert ran == ["<class 'bool'>", "<class 'playhead.kernel.approval.Approval'>"]


@pytest.mark.parametrize("option", ["validators", "done_when"])
@pytest.mark.parametrize("how", [lambda said: said, Later])
def test_only_a_verdict_is_a_verdict(option, how):
    """An answer is accepted only by `True` or an exact `Verdict(True)`; otherwise the error says what was returned."""

    def judged_as(said: Any) -> Any:
        judge = lambda _: how(said)  # noqa: E731
        options: dict[str, Any] = {option: [judge] if option == "validators" else judge}
        return run(agent([text("4180")], **options))

    for said in NO_VERDICT:
        assert "return True, False or a Verdict" in judged_as(said).error
        assert judged_as(said).terminated_by == "output_rejected"
    for said in (True, Verdict(valid=True)):
        assert judged_as(said).output == "4180"


def test_only_the_word_itself_lets_a_call_run_again(tmp_path):
    """A resumed run repeats a side effect only for `DID_NOT_HAPPEN`, not for an object that claims to be it."""
    ran: list[int] = []

    @tool
    def pay() -> str:
        """Pay."""
        ran.append(1)
        return "paid"

    turns = [call("pay"), text("done")]
    path = run(agent(turns, [pay], trace=tmp_path), run_id="a").trace_path
    assert path is not None
    lines = path.read_bytes().splitlines(keepends=True)
    cut = next(number for number, line in enumerate(lines) if b'"kind":"tool-call-completed"' in line)
    path.write_bytes(b"".join(lines[:cut]))
    answer: Any
    for answer in (Mock(spec=type(DID_NOT_HAPPEN)), Claims(type(DID_NOT_HAPPEN)), type(DID_NOT_HAPPEN)):
        with pytest.raises(UsageError, match="DID_NOT_HAPPEN"):
            resume_sync(agent(turns, [pay], trace=tmp_path), load_recording(path), unresolved={"call_0_0": answer})
    assert ran == [1]
