"""The guide to strategies says what is so."""

from __future__ import annotations

import re
from pathlib import Path

from playhead.kernel.strategies.registry import list_strategies, strategy_class

DOCS = Path(__file__).parents[3] / "docs"
GUIDE = (DOCS / "guides/strategies.md").read_text(encoding="utf-8")
CHOOSING = (DOCS / "choosing-a-strategy.md").read_text(encoding="utf-8")


def rows(heading: str, page: str = GUIDE) -> list[list[str]]:
    """Return the cells of the first table below a heading."""
    table = re.search(r"(?:^\|.*\n)+", page.split(f"# {heading}\n", 1)[1], re.MULTILINE)
    assert table is not None
    return [[cell.strip() for cell in line.strip("|\n").split("|")] for line in table[0].splitlines()[2:]]


def test_every_setting_and_its_default() -> None:
    """The table has all settings of these strategies, each with its default."""
    told: dict[str, dict[str, str]] = {}
    for strategy, setting, default, _ in rows("The settings"):
        if strategy:
            said = told[strategy.strip("`")] = {}
        said[setting.strip("`")] = default.strip("`").replace('"', "'")
    for name in ("autonomous", "reflexion"):
        assert told[name] == {key: repr(value) for key, value in strategy_class(name)().recorded().items()}, name


def test_all_settings_are_told() -> None:
    """The table has every setting of every strategy."""
    told: dict[str, list[str]] = {}
    for strategy, settings, *_ in rows("The settings"):
        if strategy:
            said = told[re.findall(r"`([\w-]+)`", strategy)[0]] = []
        said += re.findall(r"`(\w+)`", settings)
    assert told.pop("code-action") == []  # which has a page of its own
    assert told == {name: list(strategy_class(name)().recorded()) for name in told}
    assert {*told} == {*list_strategies()} - {"reactive", "direct", "chain-of-thought", "code-action"}


def test_every_strategy_can_be_chosen() -> None:
    """The page that compares them has all of them, with short names that lead to them."""
    names = [re.findall(r"`([\w-]+)`", row[0]) for row in rows("Choosing a strategy", CHOOSING)]
    assert sorted(full for full, *_ in names) == list_strategies()
    assert all(set(short) <= set(strategy_class(full).short_names()) for full, *short in names)


def test_every_alias_and_the_turns() -> None:
    """The short names lead where the table says, and the usual number of turns is right."""
    for name, *_ in rows("Strategies"):
        full, *short = re.findall(r"`([\w-]+)`", name)
        assert strategy_class(full).short_names() == tuple(short)
    turns = {name: strategy_class(name).max_iterations for name in ("autonomous", "reflexion", "direct", "reactive")}
    assert turns == {"autonomous": 50, "reflexion": 20, "direct": 10, "reactive": 10}
