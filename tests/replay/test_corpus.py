"""`replay_corpus`: many recordings replayed, kept under a group, and judged; where they run makes no difference."""

from __future__ import annotations

import importlib
import os
import signal
import subprocess
import sys
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from benchmarks.corpus import Lookups, found, record
from playhead import Agent, Corpus, UsageError, replay_corpus
from playhead.diagnose.finding import Query, find
from playhead.errors import TraceError
from playhead.replay import Judge
from playhead.testing import ScriptedModel, text
from playhead.trace.store import TraceStore
from tests.cli.command_line import playhead
from tests.proving import sample

if TYPE_CHECKING:
    from collections.abc import Callable

RUNS = 30


def replayed(folder: Path, **options: Any) -> Corpus:
    """Replay all runs of a folder, told to be brief."""
    defaults: dict[str, Any] = {
        "baseline": {"model": Lookups(2)}, "model": Lookups(2), "system_prompt": "Be brief.", "margin": 0.2,
        "success": found, "on_missing": "lenient", "min_grounded": 0.5, "trace": folder,
    }  # fmt: skip
    return replay_corpus(sorted(folder.glob("*.jsonl")), **{**defaults, **options})


def replay_in_a_process() -> None:
    """Replay the folder that is named, and say how many replays are done."""
    replayed(Path(sys.argv[1]), group="killed", on_progress=lambda done, _: print(done, flush=True))  # noqa: T201


def table(corpus: Corpus) -> list[Any]:
    """Return what does not differ when the same replays run again: all but ids and times."""
    effects = [each for each in corpus.verdict.effects if each.measure != "latency_ms"]
    measured = [(each.key, each.success, each.why, each.edits, each.tokens, each.cost_usd) for each in corpus.measured]
    return [corpus.verdict.verdict, corpus.verdict.reason, corpus.verdict.lost, effects, measured]


def in_group(folder: Path, group: str) -> int:
    """Return how many replays of a group there are."""
    return sum(1 for _ in find(TraceStore(folder / "replays"), Query(tags=[f"group={group}"])))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Thirty recorded runs."""
    folder = tmp_path_factory.mktemp("corpus")
    record(folder, RUNS, 2)
    return folder


@pytest.fixture(scope="module")
def whole(folder: Path) -> list[Any]:
    """The table of a corpus that nobody disturbed."""
    return table(replayed(folder, group="whole"))


def test_a_corpus_is_replayed_measured_and_judged(folder: Path, whole: list[Any]) -> None:
    """Each third task is lost, each fifth looks up once more, and the replays are stored with their group."""
    verdict, reason, lost, effects, measured = whole
    assert (verdict, reason[:32], in_group(folder, "whole")) == ("FAIL", "success falls by 33.3 points: wi", 2 * RUNS)
    assert lost == tuple((f"run-{number:05}", -1.0) for number in range(0, RUNS, 3))
    assert [(each.measure, each.recordings, each.reference, each.changed) for each in effects] == [
        ("success", RUNS, 1.0, pytest.approx(2 / 3)),
        ("grounded", RUNS, 1.0, pytest.approx(0.9)),
        ("edits", RUNS, 0.0, pytest.approx(0.2)),
        ("tokens", RUNS, 24.0, pytest.approx(26.4)),
        ("cost_usd", RUNS, 0.0, 0.0),
    ]
    assert [each[0] for each in measured[:2]] == [("run-00000", "baseline", 0), ("run-00000", "changed", 0)]


def test_what_is_stored_is_not_run_again(folder: Path, whole: list[Any]) -> None:
    """Under its group a corpus goes on: here nothing is left, then a repeat; another change, agent or share is refused."""
    heard: list[Any] = []
    assert table(replayed(folder, group="whole", on_progress=lambda *counts: heard.append(counts))) == whole
    assert heard == []
    again = replayed(folder, group="whole", repeats=2, on_progress=lambda *counts: heard.append(counts))
    assert (heard[0], heard[-1], len(again.measured)) == ((61, 120), (120, 120), 120)
    for options in (
        {"system_prompt": "No."},
        {"agent": Agent(Lookups(2))},
        {"baseline": {"model": Lookups(2), "task": "1"}},
        {"min_grounded": 0.8},
    ):
        with pytest.raises(UsageError, match="the group whole is of another change, success, check or code, or a line"):
            replayed(folder, group="whole", **options)


class Backwards(Executor):
    """Waits for three jobs, runs the newest first, and counts how many wait."""

    def __init__(self) -> None:
        self.waiting: list[Callable[[], None]] = []
        self.most = 0

    def submit(self, function: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        self.waiting.append(lambda: future.set_result(function(*args, **kwargs)))
        self.most = max(self.most, len(self.waiting))
        while self.most == 3 and self.waiting:
            self.waiting.pop()()
        return future


@pytest.mark.slow
def test_any_executor_will_do(folder: Path, whole: list[Any]) -> None:
    """Other processes, and an executor that runs jobs backwards, give the same table; none gets more jobs than it may."""
    backwards = Backwards()
    assert table(replayed(folder, executor=backwards, concurrency=3)) == whole
    assert backwards.most == 3
    with ProcessPoolExecutor(2, get_context("spawn")) as executor:
        assert table(replayed(folder, executor=executor)) == whole


@pytest.mark.slow
@pytest.mark.parametrize("done", sample([1, 7, 13, 22, 31, 40, 47, 55, 59], [7, 40]))
def test_a_corpus_that_was_killed_goes_on(tmp_path: Path, folder: Path, whole: list[Any], done: int) -> None:
    """After SIGKILL in the middle of replays, and with the last line of the journal cut off, the table is the same."""
    for path in folder.glob("*.jsonl"):
        (tmp_path / path.name).hardlink_to(path)
    code = "from tests.replay.test_corpus import replay_in_a_process as run; run()"
    root = Path(__file__).parents[2]
    with subprocess.Popen([sys.executable, "-c", code, tmp_path], stdout=subprocess.PIPE, cwd=root) as process:
        assert process.stdout is not None
        while int(process.stdout.readline()) < done:
            pass
        process.send_signal(signal.SIGKILL)
    journal = tmp_path / "corpora" / "killed.jsonl"
    written = journal.read_bytes()
    journal.write_bytes(written[: len(written) - done % 9])
    assert done <= in_group(tmp_path, "killed") <= 2 * RUNS
    assert table(replayed(tmp_path, group="killed")) == whole
    assert in_group(tmp_path, "killed") <= 2 * RUNS + 6  # those that ran when it was killed, and the one cut off


def test_a_model_that_does_not_answer_is_asked_again(folder: Path) -> None:
    """Such a replay says nothing of the change: it is not judged, not kept, and runs again when the corpus goes on."""
    verdict = replayed(folder, group="down", baseline=False, system_prompt="fail").verdict
    assert (verdict.verdict, verdict.visible, verdict.judged) == ("INCONCLUSIVE", None, 0)
    assert verdict.reason.startswith("0 of 30 recordings could be judged; a verdict needs 50%: the replay was stopped")
    assert (folder / "corpora/down.jsonl").read_bytes().count(b"}\n") == RUNS  # the recorded runs


def test_a_check_that_changed_gives_no_old_verdict(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A function with the same name and other code, or another schema, is another success."""
    record(tmp_path, 2, 2)
    for number, code in enumerate(("answer != 'x'", "answer == 'x'")):
        (folder := tmp_path / str(number)).mkdir()
        (folder / "graders.py").write_text(f"def right(answer, recording):\n    return {code}\n")
        os.utime(folder / "graders.py", (0, 0))  # older than this process, as a user's file is
        monkeypatch.syspath_prepend(folder)
        monkeypatch.delitem(sys.modules, "graders", raising=False)
        right = importlib.import_module("graders").right
        if number == 0:
            for group, success in (("g", right), ("g", right), ("s", {"type": "string"})):
                replayed(tmp_path, group=group, baseline=False, success=success)
    for group, changed in (("g", right), ("s", {"type": "integer"})):
        with pytest.raises(UsageError, match=f"the group {group} is of another .* check or code"):
            replayed(tmp_path, group=group, baseline=False, success=changed)


def test_a_group_has_one_corpus_at_a_time_and_a_whole_journal(tmp_path: Path) -> None:
    """While it is replayed a second corpus is refused; so is a journal of which a verdict, a figure or a line was changed."""
    record(tmp_path, 2, 2)

    def second(*_: int) -> None:
        with pytest.raises(TraceError, match=r"g\.jsonl cannot be used: another process replays this group"):
            replayed(tmp_path, group="g")

    replayed(tmp_path, group="g", on_progress=second)
    journal = tmp_path / "corpora" / "g.jsonl"
    one, other, *_ = (whole := journal.read_bytes()).splitlines(keepends=True)
    edits = {b'"success": false': b'"success": true', b'"cost_usd": 0.0': b'"cost_usd": 0.1', one: b"", other: one}
    for old, new in edits.items():
        journal.write_bytes(whole.replace(old, new, 1))
        with pytest.raises(UsageError, match=r"or a line of .*g\.jsonl is not what was written: name another group"):
            replayed(tmp_path, group="g")


def test_what_leaves_the_script_is_not_judged(folder: Path) -> None:
    """A replay that asks for what was not recorded counts as lost; too many, and there is no verdict. A lower limit is told."""
    corpus = replayed(folder, on_missing="strict", margin=0.9)
    reasons = {each.recording: each.why for each in corpus.measured if each.why}
    assert reasons == {f"run-{number:05}": "the replay was stopped: replay_stopped" for number in range(0, RUNS, 5)}
    assert (corpus.verdict.verdict, corpus.verdict.judged) == ("PASS", 24)
    assert corpus.verdict.reason.endswith("; threshold lowered: only 50% need be grounded")
    assert corpus.verdict.effects[0].low == pytest.approx(-0.66, abs=0.05)
    assert replayed(folder, on_missing="strict", margin=0.9, min_grounded=0.9).verdict.verdict == "INCONCLUSIVE"


def test_recordings_that_cannot_be_replayed(tmp_path: Path) -> None:
    """They are told beside the others; if it is all of them, or none is named, there is nothing to judge."""
    record(tmp_path, 2, 2)
    first, second = sorted(tmp_path.glob("*.jsonl"))
    first.write_bytes(first.read_bytes().replace(b"task 0", b"task 9"))
    why = replayed(tmp_path, baseline=False).measured[1].why
    assert why is not None
    assert why.startswith("NotReplayableError: run-00000.jsonl is not what was written")
    (tmp_path / "again").mkdir()
    (tmp_path / "again" / second.name).hardlink_to(second)
    with pytest.raises(UsageError, match="two files hold a run run-00001, and a corpus knows runs by their ids"):
        replay_corpus([second, tmp_path / "again" / second.name], margin=0.2, trace=tmp_path)
    for path, refusal in ((second, "0 of 1 recordings could be judged"), (first, "0 of 0 recordings could be judged")):
        path.unlink()
        assert refusal in replayed(tmp_path, baseline=False).verdict.reason


def judging(*words: str) -> Judge:
    """Return a judge that says so, with a reason, and then talks nonsense."""
    answers = [text(f'{{"reason": "reason {number}", "passed": {word}}}') for number, word in enumerate(words)]
    return Judge(ScriptedModel([*answers, *[text("perhaps")] * 9]))


def test_what_a_judge_says_is_recorded(tmp_path: Path) -> None:
    """With its reason, in a run named after the one that it judges; a judge that does not answer has not said no."""
    record(tmp_path, 1, 2)
    measured = replayed(tmp_path, success=judging("true", "true", "false"), baseline=False, concurrency=1).measured
    shown = playhead("show", f"judge-of-{measured[1].replay}", "--trace-dir", tmp_path, "--json").stdout
    assert (measured[1].success, "reason 2" in shown) == (False, True)
    nonsense = replayed(tmp_path, success=judging("true", "true"), baseline=False, concurrency=1)
    why = "UsageError: success: the check raised RunError: scripted/model did not judge the answer: output_rejected"
    assert (nonsense.measured[1].success, nonsense.measured[1].why) == (None, why)


@pytest.mark.parametrize(
    ("success", "name", "passed"),
    [
        ("answered", "answered", [True, True]),
        ("equal", "equal", [False, True]),
        (found, "benchmarks.corpus:found", [False, True]),
        ({"type": "string", "pattern": "found"}, "JSON schema", [False, False]),  # it is no JSON
        (judging("true", "true", "true", "false", "false"), "judge scripted/model", [True, False]),
    ],
)
def test_what_a_success_is(tmp_path: Path, success: Any, name: str, passed: list[bool]) -> None:
    """It is what the user gives: a word, a function, a schema, or a judge."""
    record(tmp_path, 2, 2)
    corpus = replayed(tmp_path, success=success, baseline=False, concurrency=1)
    changed = [each.success for each in corpus.measured if each.arm == "changed"]
    assert (corpus.success, changed) == (name, passed)


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (
            {"success": Judge(Lookups(2))},
            "success: scripted/lookups cannot judge its own answers; name another",
        ),
        ({"success": lambda *_: 1}, "success: the check must return True or False; it returned 1"),
        ({"success": lambda answer: answer}, "success: the check raised TypeError: "),
        ({"success": "equals"}, r"success: there is no criterion 'equals'. Did you mean 'equal'\?"),
        ({"success": {"type": "nothing"}}, "success: this JSON schema cannot be used: "),
        ({"margin": 5}, "margin must be a share between 0 and 1"),
        ({"systemprompt": "x"}, "Overrides has no field 'systemprompt'"),
        ({"group": "../x"}, "'../x' is not a run id"),
        ({"trace": None}, "trace must be a folder"),
    ],
)
def test_arguments_that_are_not_valid(folder: Path, options: dict[str, Any], why: str) -> None:
    """They are refused, most of them before anything is replayed."""
    with pytest.raises(UsageError, match=why):
        replayed(folder, **options)
