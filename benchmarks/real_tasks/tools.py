"""Nine small tools that always answer the same: what they know is made up, so nobody can know it without them."""

from __future__ import annotations

from datetime import date, timedelta
from typing import Final

from examples.tools import calculator
from playhead import tool

FACTS: Final = {
    "Mount Zed": "Mount Zed is 4180 feet high.",
    "Tower Vint": "Tower Vint is 312 metres high.",
    "Lake Quill": "Lake Quill is 61 metres deep.",
    "Port Amber": "Port Amber has 48200 inhabitants.",
    "Castle Brook": "Castle Brook was built in 1382 and has 214 rooms.",
    "Tunnel Orla": "Tunnel Orla is 7.4 kilometres long.",
    "River Sel": "River Sel is 846 kilometres long.",
    "Isle Marn": "Isle Marn has an area of 53 square kilometres and 1890 inhabitants.",
}
PRICES: Final = {"lamp": 24.5, "chair": 89.0, "desk": 240.0, "rug": 65.0, "clock": 31.2, "shelf": 112.0}
FILES: Final = {
    "orders.csv": "item,quantity\nchair,14\nlamp,6\nrug,2\n",
    "team.txt": "Team lead: Ines\nTester: Bo\nDesigner: Karim\n",
    "config.txt": "host=localhost\nport=8443\nworkers=3\n",
    "numbers.txt": "18\n225\n340\n",
    "delivery.txt": "The delivery leaves on 2025-03-03 and takes 12 days.\n",
    "project.txt": "start: 2024-01-10\nend: 2024-07-01\n",
    "walk.txt": "The path is 8.5 kilometres long.\n",
    "server.log": "ok\nok\nerror\n",
}
UNITS: Final = {
    "metres": ("length", 1.0),
    "kilometres": ("length", 1000.0),
    "feet": ("length", 0.3048),
    "miles": ("length", 1609.344),
    "grams": ("mass", 0.001),
    "kilograms": ("mass", 1.0),
    "pounds": ("mass", 0.45359237),
    "minutes": ("time", 60.0),
    "hours": ("time", 3600.0),
    "days": ("time", 86400.0),
}
DEGREES: Final = ("celsius", "fahrenheit")


@tool(read_only=True)
def lookup(name: str) -> str:
    """Look up facts about a place or a building by its name, such as "Tunnel Orla"."""
    for known, fact in FACTS.items():
        if known.casefold() == name.strip().casefold():
            return fact
    raise LookupError(f"nothing is known about {name!r}; known are: {', '.join(FACTS)}")


@tool(read_only=True)
def price(item: str) -> float:
    """Return the price of one item in the shop, such as "clock"."""
    name = item.strip().casefold()
    if name not in PRICES:
        raise LookupError(f"the shop has no {item!r}; it has: {', '.join(PRICES)}")
    return PRICES[name]


@tool(read_only=True)
def convert(value: float, from_unit: str, to_unit: str) -> float:
    """Convert a value between units: metres, kilometres, feet, miles, grams, kilograms, pounds, minutes, hours, days, celsius, fahrenheit."""
    source, target = from_unit.strip().casefold(), to_unit.strip().casefold()
    if source in DEGREES and target in DEGREES:
        celsius = value if source == "celsius" else (value - 32) / 1.8
        return round(celsius if target == "celsius" else celsius * 1.8 + 32, 4)
    for unit in (source, target):
        if unit not in UNITS:
            raise LookupError(f"there is no unit {unit!r}; known are: {', '.join((*UNITS, *DEGREES))}")
    if UNITS[source][0] != UNITS[target][0]:
        raise ValueError(f"{source} cannot be converted to {target}")
    return round(value * UNITS[source][1] / UNITS[target][1], 4)


@tool(read_only=True)
def days_between(start: str, end: str) -> int:
    """Return the number of days from one date to another, both written YYYY-MM-DD."""
    return (date.fromisoformat(end) - date.fromisoformat(start)).days


@tool(read_only=True)
def add_days(start: str, days: int) -> str:
    """Return the date that is so many days after a date written YYYY-MM-DD; negative days go back."""
    return (date.fromisoformat(start) + timedelta(days=days)).isoformat()


@tool(read_only=True)
def weekday(day: str) -> str:
    """Return the day of the week of a date written YYYY-MM-DD."""
    return date.fromisoformat(day).strftime("%A")


@tool(read_only=True)
def list_files() -> list[str]:
    """List the names of all files."""
    return sorted(FILES)


@tool(read_only=True)
def read_file(name: str) -> str:
    """Return the text of a file, such as "notes.txt"."""
    if name not in FILES:
        raise LookupError(f"there is no file {name!r}; there are: {', '.join(sorted(FILES))}")
    return FILES[name]


TOOLS: Final = (calculator, lookup, price, convert, days_between, add_days, weekday, list_files, read_file)
