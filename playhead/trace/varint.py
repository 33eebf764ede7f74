"""Numbers as protobuf writes them: seven bits a byte, the lowest first, and the highest bit in all bytes but the last."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

LONGEST: Final = 10
"""Bytes of a number of 64 bits."""
MORE: Final = 0x80
"""The bit that says that another byte follows."""
_SEVEN: Final = 0x7F


@lru_cache(maxsize=8192)
def encode_varint(number: int) -> bytes:
    """Return a number that is not negative as its bytes."""
    parts = bytearray()
    while number > _SEVEN:
        parts.append(number & _SEVEN | MORE)
        number >>= 7
    parts.append(number)
    return bytes(parts)


def decode_varint(content: bytes, at: int = 0) -> tuple[int, int]:
    """Return the number that begins there, and the place of what follows it.

    Raises:
        ValueError: it does not end within `LONGEST` bytes, or within the content.
    """
    number = 0
    for place, byte in enumerate(content[at : at + LONGEST]):
        number |= (byte & _SEVEN) << 7 * place
        if byte < MORE:
            return number, at + place + 1
    raise ValueError("a number in it does not end")
