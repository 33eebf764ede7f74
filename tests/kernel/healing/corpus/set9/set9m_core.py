"""What all operators of the mutation set share: the draft of a case, schemas, drawing by weight."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from difflib import SequenceMatcher
from pathlib import Path
from random import Random
from typing import Any

from jsonschema import Draft202012Validator, FormatChecker

HERE = Path(__file__).parent
Schema = dict[str, Any]
CHECKER = FormatChecker()


@CHECKER.checks("date-time")
def is_date_time(value: object) -> bool:
    """Say whether a text is a date and time with an offset."""
    if not isinstance(value, str):
        return True
    if not re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)", value):
        return False
    try:
        datetime.fromisoformat(value)
    except ValueError:
        return False
    return True


def fits(schema: Schema, value: object) -> bool:
    """Say whether a value fits a schema, formats included."""
    return Draft202012Validator(schema, format_checker=CHECKER).is_valid(value)


TOOLS: dict[str, Schema] = {t["name"]: t for t in json.loads((HERE / "tools_set9m.json").read_text())}


@dataclass
class Draft:
    """A case in the making: the healthy call and what has become of it."""

    base: dict[str, Any]
    name: str = ""
    args: Any = None
    form: str = "arguments"
    raw: str | None = None
    body: str | None = None
    text: str | None = None
    files: list[str] | None = None
    why: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Begin with the healthy call."""
        self.name = self.base["name"]
        self.args = copy.deepcopy(self.base["arguments"])

    @property
    def tool(self) -> str:
        """The right tool's name."""
        return str(self.base["name"])

    @property
    def parameters(self) -> dict[str, Schema]:
        """The schemas of the right tool's parameters."""
        return dict(TOOLS[self.tool]["parameters"]["properties"])

    @property
    def required(self) -> list[str]:
        """The parameters that have to be there."""
        return list(TOOLS[self.tool]["parameters"]["required"])

    def known(self, test: Callable[[Schema, Any], bool] = lambda _s, _v: True) -> list[str]:
        """Give the parameters that still stand under their own name and pass the test."""
        props = self.parameters
        return [k for k, v in self.args.items() if k in props and test(props[k], v)]

    def absent(self) -> list[str]:
        """Give the optional parameters that the healthy call leaves out."""
        return [k for k in self.parameters if k not in self.base["arguments"] and k not in self.args]

    def rename(self, old: str, new: str) -> bool:
        """Give a parameter another name, in its place; not over a name that is taken."""
        if new in self.args or new in self.parameters:
            return False
        self.args = {(new if k == old else k): v for k, v in self.args.items()}
        self.why.append(f"parameter {old} written {new}")
        return True


Function = Callable[[Draft, Random], bool]


@dataclass(frozen=True)
class Operator:
    """A way to break a call; higher layers come later: 0 parts, 1 the whole object, 2 JSON text, 3 what stands around."""

    kind: str
    name: str
    weight: float
    layer: int
    apply: Function


OPERATORS: list[Operator] = []


def operator(kind: str, weight: float, layer: int = 0) -> Callable[[Function], Function]:
    """Enter a function in the list of operators."""

    def enter(function: Function) -> Function:
        OPERATORS.append(Operator(kind, function.__name__, weight, layer, function))
        return function

    return enter


def falling(rng: Random, words: Sequence[str]) -> str:
    """Draw a word; the first is the most likely."""
    return rng.choices(words, [4, 2, 1.5, 1, 1][: len(words)])[0]


def weighted(rng: Random, **weights: float) -> str:
    """Draw a name by its weight."""
    return rng.choices(list(weights), list(weights.values()))[0]


def parts(name: str) -> list[str]:
    """Split a name into its words, lower case."""
    return [w.lower() for w in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z0-9]+", name)]


def alike(one: str, other: str) -> float:
    """Say how alike two names are, from 0 to 1."""
    return SequenceMatcher(None, "".join(parts(one)), "".join(parts(other))).ratio()


def nearest_is(word: str, right: str, names: Sequence[str]) -> bool:
    """Say whether a word is clearly nearer to the right name than to any other."""
    return all(alike(word, right) > alike(word, n) + 0.1 for n in names if n != right)


def objects(schema: Schema) -> Schema | None:
    """Give the schema of the closed objects that a parameter is or lists, if there are any."""
    inner = schema.get("items", schema)
    return inner if "properties" in inner else None


def members(value: object) -> list[dict[str, Any]]:
    """Give the objects that a value is or lists."""
    items = value if isinstance(value, list) else [value]
    return [i for i in items if isinstance(i, dict)]


def dumps(value: object, rng: Random | None = None) -> str:
    """Write JSON, at times over several lines."""
    indent = 2 if rng is not None and rng.random() < 0.35 else None
    return json.dumps(value, ensure_ascii=False, indent=indent)
