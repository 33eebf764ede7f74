"""The guide to strategies says what is so."""

from __future__ import annotations

import re
from pathlib import Path

from playhead.kernel.strategies.registry import strategy_class

GUIDE = (Path(__file__).parents[3] / "docs" / "guides" / "strategies.md").read_text(encoding="utf-8")


def rows(heading: str) -> list[list[str]]:
    """Return the cells of the first table below a heading."""
    table = re.search(r"(?:^\|.*\n)+", GUIDE.split(f"# {heading}\n", 1)[1], re.MULTILINE)
    assert table is not None
    return [[cell.strip() for cell in line.strip("|\n").split("|")] for line in table[0].splitlines()[2:]]


def test_every_setting_and_its_default() -> None:
    """The table has all settings of these strategies, each with its default."""
    told: dict[str, dict[str, str]] = {}
    for strategy, setting, default, _ in rows("The settings"):
        if strategy:
            said = told[strategy.strip("`")] = {}
        said[setting.strip("`")] = default.strip("`").replace('"', "'")
    for name in ("autonomous", "chain-of-thought", "reflexion"):
        assert told[name] == {key: repr(value) for key, value in strategy_class(name)().recorded().items()}, name


def test_every_alias_and_the_turns() -> None:
    """The short names lead where the table says, and the usual number of turns is right."""
    for name, *_ in rows("Strategies"):
        full, *short = re.findall(r"`([\w-]+)`", name)
        assert strategy_class(full).aliases == tuple(short)
    turns = {name: strategy_class(name).max_iterations for name in ("autonomous", "reflexion", "direct", "reactive")}
    assert turns == {"autonomous": 50, "reflexion": 20, "direct": 10, "reactive": 10}
