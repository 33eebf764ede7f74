"""Numbers as protobuf writes them, which are read before a message is parsed."""

from __future__ import annotations

import pytest
from google.protobuf.wrappers_pb2 import UInt64Value
from hypothesis import given
from hypothesis import strategies as st

from playhead.importing.limits import number_at


@given(st.integers(1, 2**64 - 1), st.binary(max_size=5), st.binary(max_size=5))
def test_a_number_is_read_as_protobuf_writes_it(number: int, before: bytes, after: bytes) -> None:
    """Wherever it stands; what follows it begins behind its last byte."""
    written = UInt64Value(value=number).SerializeToString()[1:]
    assert number_at(before + written + after, len(before)) == (number, len(before) + len(written))


@pytest.mark.parametrize("content", [b"", b"\x80", b"\xff" * 10, b"\x80" * 20])
def test_a_number_that_does_not_end_is_refused(content: bytes) -> None:
    """Cut off, or longer than any number of 64 bits."""
    with pytest.raises(ValueError, match="does not end"):
        number_at(content, 0)
