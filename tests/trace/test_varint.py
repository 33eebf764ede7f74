"""Varints are those of protobuf, and what is none is told."""

from __future__ import annotations

import pytest
from google.protobuf.internal.encoder import _VarintBytes  # type: ignore[attr-defined]
from hypothesis import given
from hypothesis import strategies as st

from playhead.trace.varint import LONGEST, decode_varint, encode_varint


@given(st.integers(0, 2**64 - 1), st.binary(max_size=3), st.binary(max_size=3))
def test_numbers_are_written_as_protobuf_writes_them_and_read_back(number: int, before: bytes, after: bytes) -> None:
    """Wherever they stand."""
    written = encode_varint(number)
    assert written == _VarintBytes(number)
    assert decode_varint(before + written + after, len(before)) == (number, len(before) + len(written))


@pytest.mark.parametrize("content", [b"", b"\x80", b"\xff" * LONGEST + b"\x01"], ids=["nothing", "cut off", "too long"])
def test_a_number_that_does_not_end_is_an_error(content: bytes) -> None:
    """It is no number that nobody has written."""
    with pytest.raises(ValueError, match="a number in it does not end"):
        decode_varint(content)
