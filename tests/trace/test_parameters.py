"""Of request parameters the known ones are recorded by value, and of all others that they were there."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING, Any

import pytest

from playhead.trace.parameters import (
    KEY_BYTES,
    UNKNOWN,
    comparable,
    fingerprint,
    known,
    recorded,
    unrecorded,
    unrecorded_values,
)

if TYPE_CHECKING:
    from pathlib import Path

KNOWN: dict[str, Any] = {
    "temperature": 0,
    "maxOutputTokens": 10,
    "stop": ["\n\nHuman: <|x|>", "END"],
    "logit_bias": {"50256": -100},
    "thinking": {"type": "enabled", "budget_tokens": 1024},
    "reasoning": {"effort": "high", "summary": "auto"},
    "tool_choice": {"type": "function", "function": {"name": "lookup"}},
    "response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": {"properties": {"any": {}}}}},
    "chat_template_kwargs": {"enable_thinking": False},
    "safety_settings": [{"category": "HARM_CATEGORY_HATE_SPEECH", "threshold": "BLOCK_NONE"}],
    "extra_body": {"min_p": 0.1, "guided_json": {"type": "object"}, "options": {"num_ctx": 4096}},
    "extra_headers": {"anthropic-beta": "context-1m-2025-08-07,interleaved-thinking-2025-05-14"},
    "extra_query": {"api-version": "2024-06-01"},
    "keep_alive": "5m",
}


def test_what_says_how_a_model_samples_is_recorded_by_value() -> None:
    """Parameters of several providers, as each writes them, stay as they are."""
    assert (recorded(KNOWN), known(KNOWN), list(unrecorded(recorded(KNOWN)))) == (KNOWN, KNOWN, [])


@pytest.mark.parametrize(
    "parameters",
    [
        {"azure_ad_token": "eyJ0"},
        {"user": "u-17"},
        {"temprature": 0},
        {"temperature": "Bearer\nx"},
        {"thinking": {"type": "enabled", "token": "x"}},
        {"response_format": {"type": "json_object", "api_key": "x"}},
        {"tool_choice": {"type": "mcp", "headers": {"Authorization": "x"}}},
        {"extra_body": "{}"},
        {"extra_headers": {"a name with spaces": "x"}},
        {"metadata": None},
    ],
)
def test_anything_else_is_recorded_as_present(parameters: dict[str, Any]) -> None:
    """An unknown name, and a known one whose value is nothing that it takes, leave a fingerprint and no value."""
    [(name, value)] = parameters.items()
    mark = {"$type": "unrecorded", "fingerprint": fingerprint({"parameter": name, "value": value})}
    assert recorded(parameters) == {name: mark}
    assert list(unrecorded_values(parameters)) == [(name, value)]
    assert known(parameters) == {}


def test_what_a_container_holds_is_looked_at_by_its_own_name() -> None:
    """Known parameters beside a secret are recorded; the secret is named by its path; recording twice changes nothing."""
    given = {"extra_body": {"min_p": 0.1, "auth": {"token": "x"}}, "extra_headers": {"Cookie": "s=1"}, "seed": 1}
    kept = recorded(given)
    assert [path for path, _ in unrecorded(kept)] == ["extra_body.auth", "extra_headers.Cookie"]
    assert (kept["extra_body"]["min_p"], kept["seed"], recorded(kept)) == (0.1, 1, kept)
    assert known(given) == {"extra_body": {"min_p": 0.1}, "seed": 1}


def test_equal_values_have_equal_fingerprints(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same value has the same fingerprint, another value another one; those of two keys cannot be compared."""
    monkeypatch.setenv("HOME", str(tmp_path))
    one, other = fingerprint({"email": "a@x.com"}), fingerprint({"email": "b@x.com"})
    assert one == fingerprint({"email": "a@x.com"})
    assert one != other
    assert comparable(one, other)
    assert "a@x" not in one
    key = tmp_path / ".playhead" / "fingerprint.key"
    assert (len(key.read_bytes()), stat.S_IMODE(key.stat().st_mode)) == (KEY_BYTES, 0o600)
    assert [each.name for each in key.parent.iterdir()] == ["fingerprint.key"]
    monkeypatch.setenv("HOME", str(tmp_path / "elsewhere"))
    assert not comparable(one, fingerprint({"email": "a@x.com"}))


def test_without_a_place_for_the_key_nothing_is_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no key can be written or read, every fingerprint is `UNKNOWN`, which is equal to nothing."""
    file = tmp_path / "file"
    file.write_bytes(os.urandom(3))
    monkeypatch.setenv("HOME", str(file))
    assert fingerprint("x") == UNKNOWN
    assert not comparable(UNKNOWN, UNKNOWN)
