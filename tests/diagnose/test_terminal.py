"""Nothing from a trace reaches a terminal raw, and no line is wider than its place."""

from __future__ import annotations

import io
import sys
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console

from playhead.diagnose.terminal import Line, escape, fit, pad

# Arabic and other signs that are drawn: number signs, and marks of Egyptian, Kaithi, Syriac.
VISIBLE_FORMATS = {
    *range(0x600, 0x606), 0x6DD, 0x70F, 0x890, 0x891, 0x8E2, 0x110BD, 0x110CD, *range(0x13430, 0x13440)
}  # fmt: skip


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain text, naïve, 山, 👍", "plain text, naïve, 山, 👍"),
        ("\x1b[2J\x1b]0;title\x07", r"\x1b[2J\x1b]0;title\x07"),
        ("\x1b]8;;http://evil\x1b\\link\x1b]8;;\x1b\\", r"\x1b]8;;http://evil\x1b\link\x1b]8;;\x1b" + "\\"),
        ("user\u202egnp.exe\u2069", r"user\u202egnp.exe\u2069"),
        ("a\u200bb\ufeffc\u2028d", r"a\u200bb\ufeffc\u2028d"),
        ("\ud800 alone", r"\ud800 alone"),
        (r"C:\new", r"C:\new"),
    ],
)
def test_what_is_not_plainly_visible_is_shown_as_an_escape(text: str, shown: str) -> None:
    """Controls, directions, invisible letters and lone surrogates become what Python would write; the rest stays."""
    assert escape(text) == shown


def test_every_control_and_format_character_of_unicode_is_escaped() -> None:
    """Of the characters that Unicode calls control, format, surrogate or separator, none but visible ones get through."""
    raw = [
        hex(code)
        for code in range(sys.maxunicode + 1)
        if unicodedata.category(chr(code)) in ("Cc", "Cf", "Cs", "Zl", "Zp")
        and code not in VISIBLE_FORMATS
        and escape(chr(code)) == chr(code)
    ]
    assert raw == []


@settings(deadline=None)  # machines that run tests are busy
@given(st.text(st.characters(codec=None)), st.integers(0, 60))
def test_a_fitted_line_is_never_wider_and_never_unsafe(text: str, width: int) -> None:
    """Whatever the text: one line, within the width, and nothing left to escape."""
    line = fit(text, width)
    assert cell_len(line) <= width
    assert escape(line) == line
    assert cell_len(pad(text, width)) == width


def test_a_cut_line_says_so() -> None:
    """An ellipsis stands where something is missing, and only there; wide characters count twice."""
    assert [fit("abcdef", width) for width in (6, 5, 1, 0)] == ["abcdef", "abcd…", "…", ""]
    assert fit("山川湖海", 6) == "山川…"
    assert fit("a" * 10_000_000, 4) == "aaa…"
    assert fit("\u0301" * 1000, 10).endswith("…")


def test_a_line_is_cut_as_a_whole_unless_it_is_to_be_copied() -> None:
    """The last part that fits is cut; a whole line keeps its path to the end, still escaped."""
    out = io.StringIO()
    console = Console(file=out, width=10)
    console.print(Line("12345", ("[b]6789\x1b", "red"), "more"), Line("/a/long/path\x1b", whole=True), crop=False)
    assert out.getvalue() == "12345[b]6…\n/a/long/path\\x1b\n"
