"""Redaction: credentials found, ordinary lines left alone, and what it costs.

Recall is over credentials made by the formats in `credential_formats.txt`, each in several surroundings, and over the public
examples in `credential_vectors.txt`. A credential counts as found when none of its random part is left, as a whole or in a
piece of eight characters. False positives are over lines that hold no credential: hashes, UUIDs, base64, counts, and source code.
"""

from __future__ import annotations

import base64
import hashlib
import json
import random
import re
import string
import sysconfig
import time
import uuid
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Final

from playhead.trace.detection import find, keywords

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

FOLDER: Final = Path(__file__).parent
PER_FORMAT: Final = 24
_LETTERS: Final = {
    "h": "0123456789abcdef",
    "H": "0123456789ABCDEF",
    "a": string.ascii_letters + string.digits,
    "l": string.ascii_lowercase + string.digits,
    "u": string.ascii_uppercase + string.digits,
    "u2": string.ascii_uppercase + "234567",
    "w": string.ascii_letters + string.digits + "_-",
    "b": string.ascii_letters + string.digits + "+/",
    "d": string.digits,
    "A": string.ascii_letters,
}
_RANDOM: Final = re.compile(r"\{(?:(\w+):(\d+)|uuid)\}")
_SURROUNDINGS: Final = (
    "{0}",
    "export {1}",
    "the value is {0}, do not lose it",
    "line one\n{1}\nline three",
    "{2}",
    "{3}",
    "{4}",
    "[2026-01-02 03:04:05] ERROR request failed: {1}",
)
"""0: as it is. 1: as in an environment file. 2: as JSON. 3: as JSON inside JSON. 4: as an assignment in Python."""


def lines_of(name: str) -> list[str]:
    """Return the lines of a file of this folder, without comments."""
    lines = (FOLDER / name).read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def made(form: str, rng: random.Random) -> tuple[str, list[str]]:
    """Return a credential of this format, and its random parts."""
    parts: list[str] = []

    def one(found: re.Match[str]) -> str:
        letters, length = (_LETTERS[found[1]], int(found[2])) if found[1] else ("", 0)
        part = (
            "".join(rng.choices(letters, k=length)) if length else str(uuid.UUID(int=rng.getrandbits(128), version=4))
        )
        parts.append(part)
        return part

    return _RANDOM.sub(one, form), parts


def surrounded(form: str, value: str, rng: random.Random) -> str:
    """Return the credential in a text as it may stand in a prompt, a result or a log line."""
    name, is_named, assigned = value.partition("=") if re.match(r"[A-Za-z_]+=", form) else ("KEY", "", value)
    assigned = assigned if is_named else value
    in_python = f"{name.lower()} = {assigned!r}"
    as_json = json.dumps({name.lower(): assigned})
    lines = (value, f"{name}={assigned}", as_json, json.dumps({"body": f"a\n{as_json}"}), in_python)
    return rng.choice(_SURROUNDINGS).format(*lines)


def left_in(text: str, parts: list[str]) -> bool:
    """Return whether a piece of eight characters of the longest random part is left."""
    longest, left = max(parts, key=len), text
    for start, end, _ in reversed(find(text)):
        left = left[:start] + left[end:]
    return any(longest[start : start + 8] in left for start in range(max(1, len(longest) - 7)))


def recall() -> None:
    """Print how many credentials are found."""
    rng, total = random.Random(17), 0  # noqa: S311 - no secrets
    missed: dict[str, int] = {}
    for form in lines_of("credential_formats.txt"):
        for _ in range(PER_FORMAT):
            value, parts = made(form, rng)
            total += 1
            if left_in(surrounded(form, value, rng), parts):
                missed[form] = missed.get(form, 0) + 1
    forms = len(lines_of("credential_formats.txt"))
    print(f"found: {total - sum(missed.values()):,} of {total:,} credentials of {forms} formats "
          f"({1 - sum(missed.values()) / total:.1%})")  # fmt: skip
    for form, count in sorted(missed.items(), key=lambda each: -each[1])[:8]:
        print(f"    missed {count} of {PER_FORMAT}: {form}")
    vectors = [line.replace("\\n", "\n").split("\t") for line in lines_of("credential_vectors.txt")]
    not_found = [where for where, text in vectors if not find(text)]
    print(f"found: {len(vectors) - len(not_found)} of {len(vectors)} public examples", *not_found, sep="\n    missed: ")


def ordinary_lines() -> Iterator[str]:
    """Yield lines that hold no credential."""
    rng = random.Random(18)  # noqa: S311 - no secrets
    words = [
        "the",
        "report",
        "lists",
        "each",
        "mountain",
        "with",
        "height",
        "of",
        "its",
        "summit",
        "climbed",
        "in",
        "autumn",
    ]
    for number in range(150):
        digest = hashlib.sha256(str(number).encode()).hexdigest()
        sentence = " ".join(rng.choices(words, k=12))
        yield f"commit {digest[:40]}"
        yield f"sha256:{digest}  dist/package-{number}.tar.gz"
        yield f'{{"id": "{uuid.UUID(digest[:32])}", "etag": "{digest[:32]}", "page": {number}}}'
        yield f"data:text/plain;base64,{base64.b64encode(sentence.encode()).decode()}"
        yield f'{{"usage": {{"prompt_tokens": {number * 31}, "completion_tokens": {number}, "total_tokens": {number * 32}}}}}'
        yield f"INFO request {uuid.UUID(digest[32:])} took {number} ms, max_tokens=1024, token_count: {number * 17}"
        yield f"https://shop.example/orders/{digest[:24]}?page={number}&sort=created_at"
        yield f"{sentence}. {sentence}."
    stdlib = Path(sysconfig.get_path("stdlib"))
    for name in (
        "tokenize.py",
        "secrets.py",
        "getpass.py",
        "hashlib.py",
        "netrc.py",
        "uuid.py",
        "http/cookies.py",
        "ssl.py",
    ):
        yield from islice(filter(None, (stdlib / name).read_text(encoding="utf-8").splitlines()), 200)


def false_positives() -> None:
    """Print how many ordinary lines are changed."""
    lines = list(ordinary_lines())
    changed = [line for line in lines if find(line)]
    print(
        f"changed: {len(changed)} of {len(lines):,} ordinary lines ({len(changed) / len(lines):.2%})",
        *changed[:5],
        sep="\n    ",
    )


def seconds(function: Callable[[], object], repeats: int) -> float:
    """Return the least time of five rounds."""
    function()
    found = []
    for _ in range(5):
        started = time.perf_counter()
        for _ in range(repeats):
            function()
        found.append((time.perf_counter() - started) / repeats)
    return min(found)


def cost() -> None:
    """Print the time per KB, with and without a keyword, and of hostile texts of 1 MB beside a half of each."""
    text = "The mountain is high and its summit was climbed in 1953; the tool returned a list of values. " * 11
    plain = text.encode()
    keyed = ("x = 'AKIAIOSFODNN7EXAMPLE'; password = 'hunter2hunter2'; " + text)[:1024]
    print(
        f"without a keyword {seconds(lambda: keywords()(plain), 2000) * 1e6 / (len(plain) / 1024):.1f} µs per KB (at most 10)"
    )
    print(f"with two credentials {seconds(lambda: find(keyed), 500) * 1e3:.3f} ms per KB (at most 0.4)")
    rng = random.Random(19)  # noqa: S311 - no secrets
    pieces = [
        "token",
        "=",
        "secret",
        "key",
        "AKIA",
        "a1",
        '"',
        ": ",
        "sk-",
        "eyJ",
        ".",
        "-",
        "datadog",
        " ",
        "-----BEGIN PRIVATE KEY-----",
    ]
    hostile = {
        "one letter": "A" * 10**6,
        "beginnings": "AKIA" * 250_000,
        "base64": "".join(rng.choices(_LETTERS["b"], k=10**6)),
        "passwords": "password: " * 100_000,
        "addresses": "://a:" * 200_000,
        "names": "datadog heroku vault token secret " * 30_000,
        "pieces": "".join(rng.choices(pieces, k=260_000)),
        "web tokens": "eyJaaaaaaaaaa." * 71_000,
    }
    for name, value in hostile.items():
        half = value[: len(value) // 2]
        whole_s, half_s = seconds(partial(find, value), 1), seconds(partial(find, half), 1)
        print(f"    {name:12} {whole_s * 1e3:6.0f} ms per MB, {whole_s / max(half_s, 1e-4):.1f} times a half of it")


def main() -> None:
    """Print the figures."""
    recall()
    false_positives()
    cost()


if __name__ == "__main__":
    main()
