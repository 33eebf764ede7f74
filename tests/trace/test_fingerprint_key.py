"""Fingerprints tell equal values from others, for whoever has the key."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

import pytest

from playhead.trace.fingerprint_key import KEY_BYTES, UNKNOWN, comparable, fingerprint

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))


def test_equal_values_have_equal_fingerprints(tmp_path: Path) -> None:
    """The same value has the same fingerprint, another value another one, and neither shows the value."""
    one, other = fingerprint({"email": "a@x.com"}), fingerprint({"email": "b@x.com"})
    assert one == fingerprint({"email": "a@x.com"})
    assert one != other
    assert comparable(one, other)
    assert "a@x" not in one
    key = tmp_path / ".playhead" / "fingerprint.key"
    assert (len(key.read_bytes()), stat.S_IMODE(key.stat().st_mode)) == (KEY_BYTES, 0o600)
    assert [each.name for each in key.parent.iterdir()] == ["fingerprint.key"]


def test_another_key_says_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fingerprints of two keys cannot be compared, also those of equal values."""
    one = fingerprint("x")
    monkeypatch.setenv("HOME", str(tmp_path / "elsewhere"))
    assert not comparable(one, fingerprint("x"))


def test_a_key_that_others_could_read_is_closed(tmp_path: Path) -> None:
    """The key file is for its owner alone, whatever mode it was copied with."""
    key = tmp_path / ".playhead" / "fingerprint.key"
    key.parent.mkdir()
    key.write_bytes(bytes(KEY_BYTES))
    key.chmod(0o644)
    assert fingerprint("x") != UNKNOWN
    assert stat.S_IMODE(key.stat().st_mode) == 0o600


def test_without_a_place_for_the_key_nothing_is_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no key can be written or read, every fingerprint is `UNKNOWN`, which is equal to nothing."""
    file = tmp_path / "file"
    file.write_bytes(os.urandom(3))
    monkeypatch.setenv("HOME", str(file))
    assert fingerprint("x") == UNKNOWN
    assert not comparable(UNKNOWN, UNKNOWN)
