"""The tasks can be solved with the tools, and only the right answer counts."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from benchmarks.real_tasks.setting import EXAMPLES
from benchmarks.real_tasks.tasks import TASKS, Task
from benchmarks.real_tasks.tools import TOOLS

BY_NAME = {each.spec.name: each for each in TOOLS}
WAYS: dict[str, list[tuple[Any, ...]]] = {
    "product": [("calculator", "347 * 29")],
    "quotient": [("calculator", "(128 + 64) / 12")],
    "percent": [("calculator", "0.15 * 2460")],
    "power": [("calculator", "2 ** 15 - 700")],
    "half": [("calculator", "(9876 - 1234) / 2")],
    "inhabitants": [("lookup", "Port Amber")],
    "year": [("lookup", "Castle Brook")],
    "depth": [("lookup", "Lake Quill")],
    "river": [("lookup", "River Sel")],
    "desk": [("price", "desk")],
    "chairs": [("price", "chair"), ("calculator", "3 * 89")],
    "lamp-and-rug": [("price", "lamp"), ("price", "rug"), ("calculator", "24.5 + 65")],
    "change": [("price", "desk"), ("price", "shelf"), ("calculator", "500 - 240 - 112")],
    "miles": [("convert", 42, "kilometres", "miles")],
    "pounds": [("convert", 75, "kilograms", "pounds")],
    "fever": [("convert", 98.6, "fahrenheit", "celsius")],
    "minutes": [("convert", 3.25, "hours", "minutes")],
    "days": [("days_between", "2024-02-01", "2024-03-15")],
    "later": [("add_days", "2025-01-15", 100)],
    "earlier": [("add_days", "2024-03-10", -30)],
    "weekday": [("weekday", "2001-09-09")],
    "weekday-later": [("add_days", "2024-11-20", 45), ("weekday", "2025-01-04")],
    "hours": [("days_between", "2024-05-01", "2024-05-11"), ("convert", 10, "days", "hours")],
    "chair-order": [("read_file", "orders.csv")],
    "lead": [("read_file", "team.txt")],
    "port": [("read_file", "config.txt")],
    "log-file": [("list_files",)],
    "sum": [("read_file", "numbers.txt"), ("calculator", "18 + 225 + 340")],
    "mountain": [("lookup", "Mount Zed"), ("convert", 4180, "feet", "metres")],
    "density": [("lookup", "Isle Marn"), ("calculator", "1890 / 53")],
    "age": [("lookup", "Castle Brook"), ("calculator", "2000 - 1382")],
    "higher": [
        ("lookup", "Mount Zed"),
        ("lookup", "Tower Vint"),
        ("convert", 4180, "feet", "metres"),
        ("calculator", "1274.064 - 312"),
    ],
    "lamp-order": [("read_file", "orders.csv"), ("price", "lamp"), ("calculator", "6 * 24.5")],
    "arrival": [("read_file", "delivery.txt"), ("add_days", "2025-03-03", 12), ("weekday", "2025-03-15")],
    "river-miles": [("lookup", "River Sel"), ("convert", 846, "kilometres", "miles")],
    "project": [("read_file", "project.txt"), ("days_between", "2024-01-10", "2024-07-01")],
    "rope": [("lookup", "Tower Vint"), ("convert", 312, "metres", "feet")],
    "walk": [("read_file", "walk.txt"), ("calculator", "8.5 / 5 * 60")],
}


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
def test_the_shortest_way_leads_to_the_right_answer(task: Task):
    """Each task is solved by the calls that it names, in one to four of them, and what they return is judged right."""
    way = WAYS[task.name]
    assert tuple(name for name, *_ in way) == task.calls
    assert 1 <= len(way) <= 4
    results = [BY_NAME[name](*arguments) for name, *arguments in way]
    assert task.is_right(f"The answer is {json.dumps(results[-1])}.")


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
def test_the_question_does_not_hold_the_answer(task: Task):
    """Nobody is right by repeating the question, or the turns before it."""
    assert not task.is_right(task.text)
    assert not task.is_right(None)
    assert not task.is_right("I do not know.")
    assert not any(task.text == example.content for example in EXAMPLES)


def test_there_are_enough_of_them_and_each_is_told_apart():
    """At least 32 tasks over 6 to 10 tools, with one name each; every tool is needed."""
    assert len(TASKS) >= 32
    assert len({task.name for task in TASKS}) == len(TASKS)
    assert {name for task in TASKS for name in task.calls} == set(BY_NAME)
    assert 6 <= len(TOOLS) <= 10
    assert all(re.fullmatch(r"[a-z-]+", task.name) for task in TASKS)  # a name of files


@pytest.mark.parametrize(
    ("name", "answer", "right"),
    [
        ("mountain", "It is 1,274.06 metres high.", True),
        ("mountain", "1274 m", True),
        ("mountain", "About 1275.5", False),
        ("mountain", "1.274", False),
        ("mountain", "", False),
        ("mountain", "4180 feet are 1274.064 metres", True),
        ("lead", "It is **ines**.", True),
        ("lead", "It is Inessa.", False),
    ],
)
def test_answers_are_read_as_people_write_them(name: str, answer: str, right: bool):
    """Thousands have commas, what a person would round away is no error, and a word is a whole word."""
    assert next(task for task in TASKS if task.name == name).is_right(answer) == right
