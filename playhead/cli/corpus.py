"""One verdict on many replays: its options, a progress bar, and the verdict as a table, JSON, Markdown, HTML and JUnit XML."""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from xml.etree import ElementTree as ET

import click

from playhead.cli import exits
from playhead.cli.output import note, tell, text_console
from playhead.cli.reading import open_store
from playhead.diagnose.document import Document, Row, Section, section
from playhead.diagnose.parts import UNKNOWN, counted, points, short
from playhead.diagnose.terminal import escape
from playhead.errors import UsageError
from playhead.trace.redaction import without_credentials

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from playhead.replay.corpus import Corpus
    from playhead.replay.verdict import Effect

OUTCOMES: Final = {
    "PASS": (exits.OK, "bold green", None),
    "FAIL": (exits.FAILED, "bold red", "failure"),
    "INCONCLUSIVE": (exits.INCONCLUSIVE, "bold yellow", "error"),
}
"""Each verdict's exit code, its style, and the element of JUnit for a test that did not pass."""
MEASURES: Final = {
    "success": ("success", 100, "{:.1f} %", "{:+.1f}"),
    "grounded": ("grounded", 100, "{:.1f} %", "{:+.1f}"),
    "edits": ("tool edits", 1, "{:.2f}", "{:+.2f}"),
    "tokens": ("tokens", 1, "{:,.0f}", "{:+,.0f}"),
    "cost_usd": ("cost", 1, "${:.5f}", "{:+.5f}"),
    "latency_ms": ("model time", 1, "{:,.0f} ms", "{:+,.0f}"),
}
"""How each measure is shown: its name, a factor, a value, and a difference."""
JUDGED: Final = {True: "success", False: "no success", None: "not judged"}


def read_success(text: str) -> Any:  # noqa: ANN401 - a criterion
    """Read what a success is: a word, `judge:MODEL`, MODULE:FUNCTION, or the file of a JSON schema."""
    from playhead.cli.toolbox import load_function
    from playhead.replay.success import Judge

    if text.endswith(".json"):
        try:
            return json.loads(Path(text).read_bytes())
        except (OSError, ValueError) as error:
            raise UsageError(f"--success: {text} cannot be read as a JSON schema: {error}") from None
    kind, colon, name = text.partition(":")
    return Judge(name) if kind == "judge" else load_function(text, "--success") if colon else text


def replay_many(paths: list[Path], given: dict[str, Any], *, as_json: bool) -> int:
    """Replay these runs with one change, print the verdict and write it; return the exit code that says it."""
    from rich.progress import Progress

    from playhead.replay import replay_corpus
    from playhead.trace.format import new_run_id

    outputs, group = given.pop("outputs", ()), given.pop("group", None) or new_run_id()
    for each in outputs:
        if each.suffix not in WRITTEN or not os.access(each.parent, os.W_OK):
            raise UsageError(f"--output: {each} must end in {', '.join(WRITTEN)}, in a folder that can be written to")
    given["success"] = read_success(given.get("success", "answered"))
    note(f"group {group}: to continue after an interruption, run the same command with --group {group}")
    console = text_console(stderr=True)
    with Progress(console=console, disable=not console.is_terminal) as bar:
        task = bar.add_task("replays", total=None)
        given["on_progress"] = lambda done, total: bar.update(task, completed=done, total=total)
        corpus = replay_corpus(paths, group=group, **given)
    for each in outputs:
        each.write_text(WRITTEN[each.suffix](corpus), encoding="utf-8")
    tell(asdict(corpus), corpus_document(corpus), as_json=as_json)
    return OUTCOMES[corpus.verdict.verdict][0]


# --- the verdict as a document and as XML -----------------------------------------------------------------------------


def corpus_document(corpus: Corpus) -> Document:
    """Return the verdict with its reason, the effects, and what the corpus could have seen."""
    verdict, without = corpus.verdict, "baseline" if corpus.baseline else "recorded"
    reason = Row(verdict.reason, style=OUTCOMES[verdict.verdict][1])
    asked = (
        f"success: {corpus.success}; margin: {points(verdict.margin)}; grounded: at least {verdict.min_grounded:.0%}"
    )
    heading = ("measure", without, "changed", "difference", "90 % interval", "recordings")
    return Document(
        (
            Section(verdict.verdict, (reason, Row(asked))),
            Section("Effects", tuple(map(Row, _about(corpus))), table=(heading, *map(_effect_cells, verdict.effects))),
            *section("Lost", (Row(f"{name}: {points(difference)}") for name, difference in verdict.lost)),
            *section("Not judged", (Row(why) for why in _reasons(corpus).values() if why)),
        ),
        spaced=True,
    )


def _reasons(corpus: Corpus) -> dict[str, str | None]:
    """Return why each recording was not judged; None if it was."""
    every = dict.fromkeys(each.recording for each in corpus.measured)
    return every | {each.recording: each.why for each in corpus.measured if each.why}


def _about(corpus: Corpus) -> Iterator[str]:
    from playhead.diagnose.summaries import preview

    verdict, times = corpus.verdict, counted(corpus.repeats, "time")
    arms = "with and without the change" if corpus.baseline else "with the change"
    yield f"{counted(verdict.recordings, 'recording')}, each replayed {times} {arms}; {verdict.judged:,} judged"
    for name, value in corpus.changes.items():
        yield f"changed: {name}: {short(without_credentials(preview(value)), 120)}"
    seen = verdict.visible and f"a loss of {points(verdict.visible)} in 4 of 5 cases"
    yield f"a corpus like this one finds {seen or 'no loss, however large: that takes 5 judged recordings'}"
    yield f"to find one of {points(verdict.margin)} takes about {verdict.needed:,} recordings"
    yield f"group: {corpus.group}"


def _effect_cells(effect: Effect) -> tuple[str, ...]:
    name, factor, value, difference = MEASURES[effect.measure]
    means = (UNKNOWN if each is None else value.format(each * factor) for each in (effect.reference, effect.changed))
    limits = [each for each in (effect.low, effect.high) if each is not None]
    few = UNKNOWN if effect.difference is None else "too few differ"
    interval = " to ".join(difference.format(each * factor) for each in limits) or few
    change = UNKNOWN if effect.difference is None else difference.format(effect.difference * factor)
    return (name, *means, change, interval, f"{effect.recordings:,}")


def corpus_junit(corpus: Corpus) -> str:
    """Return JUnit XML: a test for the verdict, which alone can fail, and one for each recording, skipped if it was not judged."""
    suite = ET.Element("testsuite", name=f"playhead.{corpus.group}")
    test, tag = ET.SubElement(suite, "testcase", name="verdict"), OUTCOMES[corpus.verdict.verdict][2]
    if tag is not None:
        ET.SubElement(test, tag, message=corpus.verdict.reason)
    ET.SubElement(test, "system-out").text = corpus_document(corpus).markdown()
    for name, why in _reasons(corpus).items():
        test = ET.SubElement(suite, "testcase", name=name)
        if why is not None:
            ET.SubElement(test, "skipped", message=escape(without_credentials(why)))
    for name, tag in (("tests", ""), ("failures", "/failure"), ("errors", "/error"), ("skipped", "/skipped")):
        suite.set(name, str(len(suite.findall(f"testcase{tag}"))))
    return ET.tostring(suite, encoding="unicode", xml_declaration=True)


def corpus_page(corpus: Corpus) -> str:
    """Return the verdict as an HTML page, with the replays that it rests on."""
    from playhead.diagnose.many_page import render_many
    from playhead.diagnose.run_summary import summarise

    store = open_store(click.get_current_context().params["trace_dir"])
    labels = {each.replay: f"{each.arm}: {JUDGED[each.success]}" for each in corpus.measured if each.replay is not None}
    verdict = (corpus_document(corpus), list(map(asdict, corpus.verdict.effects)))
    return render_many([summarise(store.resolve(name)) for name in labels], verdict=verdict, labels=labels)


WRITTEN: Final[dict[str, Callable[[Corpus], str]]] = {
    ".md": lambda corpus: corpus_document(corpus).markdown(),
    ".xml": corpus_junit,
    ".html": corpus_page,
    ".json": lambda corpus: json.dumps(asdict(corpus), indent=2) + "\n",
}
"""How a verdict is written, by the suffix of the file."""
