"""Keeps secrets out of the trace: text is redacted before it is encoded.

No secret reaches the disk, a span or a report, and every hash covers the redacted value. Known secrets are replaced
everywhere, and so is what has the format of a credential (`playhead.trace.detection`). The user's functions receive free text
only, not the ids that link events and not the format's own words. Exceptions and log lines go through the same redactor.
"""

from __future__ import annotations

import base64
import json
import logging
import re
import threading
import traceback
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import cache
from typing import Any, Final, Literal, TypeVar, get_args, get_origin
from urllib.parse import quote, quote_plus, unquote
from weakref import WeakSet

from pydantic import BaseModel
from pydantic_core import to_json

from playhead.trace.base import ID
from playhead.trace.detection import find, keywords
from playhead.trace.parameters import marker, unrecorded_values
from playhead.trace.values import TYPE_TAG, JsonValue, scrub

AnyModel = TypeVar("AnyModel", bound=BaseModel)
RedactText = Callable[[str], str]
"""Takes the text of a value or key and returns the text that may be written."""

MIN_SECRET: Final = 6
"""Shorter "secrets" would redact half of any text. (Local servers accept keys such as `none`.)"""
FAILED: Final = "[redaction failed]"
"""Replaces a text whose redactor raised or did not return a text."""


_LONGEST: Final = 8192
"""Longest text, in characters, that is split into words, such as the JSON of a service account; a longer text is one word."""
_MOST: Final = 1000
"""Largest number of words kept of a value, the longest first: a value with more words is a document."""
_PART: Final = re.compile(r"[^\s;,]+")
"""A part of a text: `session=abc`, `Bearer`, an address."""
_PIECE: Final = re.compile(r"[^\s;,&?=:@/\"'<>{}]+")
"""A piece between the punctuation marks of an address, a cookie or a list."""
_BASE64: Final = re.compile(r"[A-Za-z0-9+/_-]{8,}={0,2}")
_URL_SAFE: Final = str.maketrans("-_", "+/")
_SCHEMES: Final = frozenset({"basic", "bearer", "digest", "token"})
_MOST_FOUND: Final = 50
"""Credentials of a run that are remembered: each of them is looked for in every text."""
_LONG, _LONG_MIXED, _LONG_ENCODED = 20, 8, 8


class Redactor:
    """Replaces known secrets and credentials in everything that is recorded, and applies the user's redaction functions.

    Without `detects`, only the secrets that it was told of count.
    """

    def __init__(self, functions: Iterable[RedactText] = (), *, detects: bool = True) -> None:
        self._functions = tuple(functions)
        self.detects = detects
        """Whether texts that have the format of a credential are replaced."""
        # These tuples are replaced, never changed in place, because another thread may be reading them.
        self._credentials: Replacements = ()
        self._replacements: Replacements = ()
        self._in_errors: Replacements = ()
        self.needles: tuple[bytes, ...] = ()
        self._told: set[str] = set()
        self._found: set[str] = set()
        self.has_rules = bool(self._functions)
        """Whether the user gave functions."""
        self._learned: deque[Mapping[str, JsonValue]] = deque(maxlen=16)
        with _lock:
            _redactors.add(self)  # for the log lines of this process, as long as this redactor exists

    def add_secret(self, secret: str, name: str) -> bool:
        """Redact this value from now on; `name`, such as `OPENAI_API_KEY`, is written in its place.

        Return False, and do nothing, when the value is shorter than `MIN_SECRET`.
        """
        if secret in self._told or len(secret) < MIN_SECRET:
            return secret in self._told
        self._told.add(secret)
        self._credentials = _with(self._credentials, {secret: name})
        self._replace({secret: name})
        return True

    def add_parameters(self, parameters: Mapping[str, JsonValue], recorded: Collection[str] = ()) -> None:
        """Redact the unrecorded values of these request parameters.

        Some values are ordinary words (`{"metadata": {"team": "support"}}`). So only words that look like a credential are
        replaced everywhere, except in ids; in a provider's error messages, all words are replaced.
        """
        if not parameters or parameters in self._learned:
            return
        self._learned.append(parameters)
        words = {word: path for path, value in unrecorded_values(parameters, recorded) for word in words_of(value)}
        words = {word: path for word, path in words.items() if len(word) >= MIN_SECRET}
        self._in_errors = _with(self._in_errors, words)
        self._replace({word: path for word, path in words.items() if looks_secret(word)})

    @property
    def in_header(self) -> dict[str, Any]:
        """The fields of `run-started` that say how the run is redacted."""
        return {"redacted": self.has_rules, "redaction": None if self.detects else "off"}

    @property
    def secrets(self) -> tuple[str, ...]:
        """The texts that are replaced everywhere, longest first."""
        return tuple(form for form, _ in self._replacements)

    def concerns(self, data: bytes) -> bool:
        """Return whether `redact` may change the value in these JSON bytes; quick, without parsing."""
        if self._functions or (self.detects and keywords()(data)):
            return True
        return any(needle in data for needle in self.needles) if self.needles else False

    def redact_model(self, model: AnyModel) -> AnyModel:
        """Return a redacted copy of an event, or of a value inside it, of the same type."""
        texts, values = _texts_of(type(model)), model.__dict__
        changed = model.model_copy(update={name: self._redact_field(values[name], is_id=texts[name]) for name in texts})
        if model.__pydantic_extra__:  # fields of a newer format: even their names are unknown
            object.__setattr__(changed, "__pydantic_extra__", self._redact_dict(model.__pydantic_extra__))
        return changed

    def redact(self, value: Any) -> Any:  # noqa: ANN401 - any JSON value
        """Return the JSON value with every text redacted: values, keys, and numbers that are a secret."""
        if isinstance(value, str):
            return self.redact_text(value)
        if isinstance(value, list):
            return [self.redact(item) for item in value]
        if isinstance(value, dict):
            return self._redact_dict(value)
        text = str(value)
        redacted = self.redact_secrets(text)
        return value if redacted == text else redacted

    def redact_secrets(self, text: str) -> str:
        """Return the text without secrets, known and detected ones."""
        return self._detected(_replaced(text, self._replacements))

    def of_secrets(self) -> Redactor:
        """Return a redactor without the user's functions."""
        alone = Redactor(detects=self.detects)
        alone._replacements, alone.needles = self._replacements, self.needles
        return alone

    def redact_identity(self, text: str) -> str:
        """Return an id, or a word of the kernel, without credentials."""
        return self._detected(_replaced(text, self._credentials))

    def redact_error(self, text: str) -> str:
        """Return an error message or log line without secrets and with the user's functions applied."""
        return self.redact_text(_replaced(text, self._in_errors))

    @property
    def in_errors(self) -> Replacements:
        """The replacements for errors and log lines."""
        return *self._in_errors, *self._replacements

    def finds_in_error(self, text: str) -> bool:
        """Return whether an error's text contains a secret."""
        return any(form in text for form, _ in self.in_errors) or (self.detects and bool(find(text)))

    def _replace(self, words: Mapping[str, str]) -> None:
        self._replacements = _with(self._replacements, words)
        self.needles = tuple(to_json(form)[1:-1] for form, _ in self._replacements)

    def _detected(self, text: str, name: str = "") -> str:
        return without_credentials(text, name, self._learn) if self.detects else text

    def _learn(self, credential: str, shown: str) -> None:
        """Replace a credential wherever else it stands, if only its name gave it away here, and it looks like one."""
        if len(self._found) < _MOST_FOUND and looks_secret(credential) and not find(credential):
            self._found.add(credential)
            self._replace({credential: shown.strip("[]").removeprefix("redacted:")})

    def _redact_field(self, value: Any, *, is_id: bool) -> Any:  # noqa: ANN401 - any field of any event
        if isinstance(value, BaseModel):
            return self.redact_model(value)
        if isinstance(value, tuple):
            return tuple(self._redact_field(item, is_id=is_id) for item in value)
        return self.redact_identity(value) if is_id and isinstance(value, str) else self.redact(value)

    def redact_text(self, text: str) -> str:
        """Return the redacted text."""
        text = self.redact_secrets(text)
        for function in self._functions:
            try:
                text = str.__str__(function(text))
            except Exception:  # noqa: BLE001 - user code; the text is withheld
                return FAILED
        return scrub(text)

    def _redact_dict(self, value: dict[str, Any]) -> dict[str, Any]:
        if TYPE_TAG in value:
            return {key: item if key == TYPE_TAG else self.redact(item) for key, item in value.items()}
        redacted: dict[str, Any] = {}
        for key, item in value.items():
            name = self.redact_text(key)
            while name in redacted:  # two keys that are now equal must not overwrite each other
                name += "'"
            shown = self.redact(item)
            named = value.get("name") if key == "value" else name  # {"name": "API_TOKEN", "value": …}
            redacted[name] = self._detected(shown, str(named)) if isinstance(shown, str) else shown
        return redacted


def without_credentials(text: str, name: str = "", learn: Callable[[str, str], None] | None = None) -> str:
    """Return the text with a marker in place of each credential.

    Args:
        text: the text.
        name: the key of the text in its object: by it, what has no format of its own is a credential (`{"password": …}`).
        learn: takes each credential and its marker.
    """
    quote = next((mark for mark in "\"'" if mark not in text), "") if name else ""
    before = f'"{name}={quote}' if name else ""
    whole, position = before + text, len(before)
    pieces: list[str] = []
    for start, end, rule in find(whole + quote):
        if end > position:
            credential = whole[max(start, position) : end]
            pieces += (whole[position:start], marker(rule, credential))
            if learn is not None:
                learn(credential, pieces[-1])
            position = min(end, len(whole))
    return "".join((*pieces, whole[position:]))


Replacements = tuple[tuple[str, str], ...]
"""Pairs of a text and its replacement, longest text first, because a secret may be a part of another."""


def _with(replacements: Replacements, words: Mapping[str, str]) -> Replacements:
    """Return the replacements with these words added; existing entries are kept."""
    forms = {form: f"[redacted:{name}]" for word, name in words.items() for form in forms_of(word)}
    return tuple(sorted((forms | dict(replacements)).items(), key=lambda each: -len(each[0])))


def _replaced(text: str, replacements: Iterable[tuple[str, str]]) -> str:
    for form, replacement in replacements:
        if form in text:
            text = text.replace(form, replacement)
    return text


@cache
def _texts_of(model: type[BaseModel]) -> dict[str, bool]:
    """Return the fields that may contain text, each with whether it is an id."""
    fields = ((name, each) for name, each in model.model_fields.items() if name != "kind" and _is_text(each.annotation))
    return {name: ID in each.metadata or _is_id(each.annotation) for name, each in fields}


def _is_id(annotation: Any) -> bool:  # noqa: ANN401 - any annotation
    return ID in getattr(annotation, "__metadata__", ()) or any(map(_is_id, get_args(annotation)))


def _is_text(annotation: Any) -> bool:  # noqa: ANN401 - any annotation
    """Return whether a field may contain free text, so is not a number or a `Literal`."""
    if get_origin(annotation) is Literal or annotation in {int, float, bool, type(None), ...}:
        return False
    parts = get_args(annotation)
    return any(map(_is_text, parts)) if parts else True


def words_of(value: JsonValue) -> list[str]:
    """Return every text in a value, the parts of each text, and the parts' decoded forms."""
    return sorted({word for word in _words(value) if word.lower() not in _SCHEMES}, key=len)[-_MOST:]


def looks_secret(word: str) -> bool:
    """Return whether a word looks like a credential: it is long, or mixes letters and digits."""
    if any(map(str.isspace, word)) and len(word) < 2 * _LONG:
        return False
    is_mixed = any(map(str.isalpha, word)) and any(map(str.isdigit, word))
    return len(word) >= (_LONG_MIXED if is_mixed else _LONG)


def forms_of(secret: str) -> set[str]:
    """Return the forms of a secret: plain, JSON-escaped once and twice, and URL- or base64-encoded."""
    once = {json.dumps(secret, ensure_ascii=ascii_only)[1:-1] for ascii_only in (True, False)}
    twice = {json.dumps(form, ensure_ascii=ascii_only)[1:-1] for form in once for ascii_only in (True, False)}
    plain = {form.encode("utf-8", "replace") for form in (secret, *once)}
    as_bytes = {form.decode("latin-1") for form in plain}  # inside bytes that are not UTF-8
    return {secret, *once, *twice, *as_bytes, *(form for each in plain for form in _encoded(each))}


def _encoded(secret: bytes) -> Iterator[str]:
    """Yield a secret encoded for a URL, and in base64 at each offset inside a longer text such as `user:password`."""
    yield quote(secret, safe="")
    yield quote_plus(secret)
    if len(secret) < _LONG_ENCODED:
        return
    for before, first in ((0, 0), (1, 2), (2, 3)):
        last = (before + len(secret)) * 8 // 6
        for encode in (base64.b64encode, base64.urlsafe_b64encode):
            yield encode(bytes(before) + secret).decode()[first:last]


def _words(value: JsonValue) -> Iterator[str]:
    if isinstance(value, str):
        yield from _words_in(value.strip())
    elif isinstance(value, int) and not isinstance(value, bool):
        yield str(value)
    elif isinstance(value, (list, dict)):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _words(item)


def _words_in(text: str) -> Iterator[str]:
    yield text
    if len(text) > _LONGEST:
        return
    with suppress(ValueError, RecursionError):
        if text[:1] in {"{", "["}:  # the JSON of a service account
            yield from _words(json.loads(text))
    for part in _PART.findall(text):
        yield part
        yield part.partition("=")[2]
        with suppress(ValueError):
            if _BASE64.fullmatch(part):  # such as `user:password` in a `Basic` header
                decoded = base64.b64decode(part.translate(_URL_SAFE), validate=True).decode()
                yield from _words_in(decoded if decoded.isprintable() else "")
    for piece in _PIECE.findall(text):
        yield piece
        yield unquote(piece)


_redactors: Final[WeakSet[Redactor]] = WeakSet()
_lock: Final = threading.RLock()


def _redact_line(record: logging.LogRecord) -> bool:
    with _lock:
        redactors = list(_redactors)
    said = text = record.getMessage()
    trace = "".join(traceback.format_exception(*record.exc_info)) if record.exc_info else ""
    # All secrets first, then the functions: a function might change a part of another agent's secret.
    every = (each for redactor in redactors for each in redactor.in_errors)
    text = _replaced(text, sorted(every, key=lambda each: -len(each[0])))
    for redactor in redactors or [Redactor()]:
        text = redactor.redact_text(text)
        if any(map(redactor.finds_in_error, (trace, *trace.splitlines()))):
            record.exc_info, trace = None, ""
    if text != said:
        record.msg, record.args = text, ()
    return True


for _name in ("playhead", "playhead.mcp"):
    logging.getLogger(_name).addFilter(_redact_line)
