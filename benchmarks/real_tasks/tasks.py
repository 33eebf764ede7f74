"""The tasks, and what counts as right. They were written before anything was measured, and are not tuned."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

NUMBER: Final = re.compile(r"-?\d+(?:\.\d+)?")
THOUSANDS: Final = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")


@dataclass(frozen=True, slots=True)
class Task:
    """A question with one right answer."""

    name: str
    text: str
    expected: float | tuple[str, ...]
    """A number, or the words of which one has to stand in the answer."""
    calls: tuple[str, ...]
    """The tools of the shortest way; said for the reader, and checked by a test. No run is asked to go it."""
    tolerance: float = 0.01
    """How far the number may be off; what a person would round away."""

    def is_right(self, answer: str | None) -> bool:
        """Return whether the answer holds what is expected."""
        if answer is None:
            return False
        if isinstance(self.expected, tuple):
            return any(re.search(rf"\b{re.escape(word)}\b", answer, re.IGNORECASE) for word in self.expected)
        return any(abs(number - self.expected) <= self.tolerance for number in numbers(answer))


def numbers(text: str) -> list[float]:
    """Return the numbers in a text, `1,274.06` among them."""
    return [float(each) for each in NUMBER.findall(THOUSANDS.sub("", text))]


def selected(count: int | None) -> tuple[Task, ...]:
    """Return all tasks, or so many of them from every part of the list."""
    if count is None or count >= len(TASKS):
        return TASKS
    return tuple(TASKS[number * len(TASKS) // count] for number in range(count))


TASKS: Final = (
    Task("product", "What is 347 multiplied by 29?", 10063, ("calculator",)),
    Task("quotient", "What is (128 + 64) divided by 12?", 16, ("calculator",)),
    Task("percent", "What is 15 percent of 2460?", 369, ("calculator",)),
    Task("power", "What is 2 to the power of 15, minus 700?", 32068, ("calculator",)),
    Task("half", "Subtract 1234 from 9876 and halve the result.", 4321, ("calculator",)),
    Task("inhabitants", "How many inhabitants does Port Amber have?", 48200, ("lookup",)),
    Task("year", "In which year was Castle Brook built?", 1382, ("lookup",)),
    Task("depth", "How deep is Lake Quill, in metres?", 61, ("lookup",)),
    Task("river", "How long is River Sel, in kilometres?", 846, ("lookup",)),
    Task("desk", "What does a desk cost?", 240, ("price",)),
    Task("chairs", "What do 3 chairs cost together?", 267, ("price", "calculator")),
    Task("lamp-and-rug", "What do a lamp and a rug cost together?", 89.5, ("price", "price", "calculator")),
    Task(
        "change",
        "I buy a desk and a shelf and pay with 500. How much do I get back?",
        148,
        ("price", "price", "calculator"),
    ),
    Task("miles", "How many miles are 42 kilometres?", 26.0976, ("convert",), 0.1),
    Task("pounds", "How many pounds are 75 kilograms?", 165.3467, ("convert",), 0.5),
    Task("fever", "What is 98.6 degrees Fahrenheit in Celsius?", 37, ("convert",), 0.05),
    Task("minutes", "How many minutes are 3.25 hours?", 195, ("convert",)),
    Task("days", "How many days are there between 2024-02-01 and 2024-03-15?", 43, ("days_between",)),
    Task("later", "Which date is 100 days after 2025-01-15?", ("2025-04-25", "April 25", "25 April"), ("add_days",)),
    Task(
        "earlier", "Which date is 30 days before 2024-03-10?", ("2024-02-09", "February 9", "9 February"), ("add_days",)
    ),
    Task("weekday", "On which day of the week was 2001-09-09?", ("Sunday",), ("weekday",)),
    Task("weekday-later", "Which day of the week is 45 days after 2024-11-20?", ("Saturday",), ("add_days", "weekday")),
    Task("hours", "How many hours are there between 2024-05-01 and 2024-05-11?", 240, ("days_between", "convert")),
    Task("chair-order", "How many chairs are ordered in orders.csv?", 14, ("read_file",)),
    Task("lead", "Who is the team lead according to team.txt?", ("Ines",), ("read_file",)),
    Task("port", "Which port does config.txt name?", 8443, ("read_file",)),
    Task("log-file", "Which of the files ends in .log?", ("server.log",), ("list_files",)),
    Task("sum", "What is the sum of the three numbers in numbers.txt?", 583, ("read_file", "calculator")),
    Task("mountain", "How high is Mount Zed in metres?", 1274.064, ("lookup", "convert"), 1.0),
    Task(
        "density",
        "How many inhabitants per square kilometre does Isle Marn have?",
        35.66,
        ("lookup", "calculator"),
        0.1,
    ),
    Task("age", "How many years old was Castle Brook in the year 2000?", 618, ("lookup", "calculator")),
    Task(
        "higher",
        "How many metres is Mount Zed higher than Tower Vint?",
        962.064,
        ("lookup", "lookup", "convert", "calculator"),
        1.0,
    ),
    Task(
        "lamp-order",
        "What do all the lamps that are ordered in orders.csv cost together?",
        147,
        ("read_file", "price", "calculator"),
    ),
    Task(
        "arrival",
        "On which day of the week does the delivery in delivery.txt arrive?",
        ("Saturday",),
        ("read_file", "add_days", "weekday"),
    ),
    Task("river-miles", "How many miles long is River Sel?", 525.68, ("lookup", "convert"), 0.5),
    Task(
        "project", "How many days lie between the start and the end in project.txt?", 173, ("read_file", "days_between")
    ),
    Task(
        "rope", "A rope is as long as Tower Vint is high. How many feet is that?", 1023.62, ("lookup", "convert"), 1.0
    ),
    Task(
        "walk",
        "How many minutes does the path in walk.txt take at 5 kilometres per hour?",
        102,
        ("read_file", "calculator"),
    ),
)

CHOSEN_ON: Final = frozenset(task.name for task in TASKS[::2])
"""Every second task: on these the words of the arm that calls in text were chosen, and on no other."""
