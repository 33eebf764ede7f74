"""Keys for signing heads: a secret for HMAC, or an Ed25519 key pair.

Anyone who can verify with HMAC can also sign. An Ed25519 public key only verifies.
"""

from __future__ import annotations

import hmac
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from playhead.errors import MissingDependencyError, UsageError
from playhead.trace.blobs import read_plain

_PEM: Final = b"-----BEGIN "
_LARGEST: Final = 16 * 1024
_LEAST: Final = 32
"""The minimum length of a secret in bytes; `openssl rand -hex 32` writes 64."""


@dataclass(frozen=True, slots=True, repr=False)
class Secret:
    """HMAC with SHA-256 (RFC 2104)."""

    secret: bytes

    def sign(self, message: bytes) -> str:
        """Return the authentication code in hex."""
        return hmac.digest(self.secret, message, "sha256").hex()

    def verifies(self, message: bytes, signature: str) -> bool:
        """Return whether this is the authentication code of the message."""
        return hmac.compare_digest(self.sign(message).encode(), signature.encode())


@dataclass(frozen=True, slots=True, repr=False)
class Pair:
    """Ed25519 (RFC 8032)."""

    private: Any
    public: Any

    def sign(self, message: bytes) -> str:
        """Return the signature in hex; raises `UsageError` for a public key."""
        if self.private is None:
            raise UsageError("--key is a public key, which verifies (check --key) and cannot sign")
        return str(self.private.sign(message).hex())

    def verifies(self, message: bytes, signature: str) -> bool:
        """Return whether this is the key's signature of the message."""
        from cryptography.exceptions import InvalidSignature  # noqa: PLC0415 - an extra

        try:
            self.public.verify(bytes.fromhex(signature), message)
        except (InvalidSignature, ValueError):
            return False
        return True


Key = Secret | Pair
"""Signs, or verifies, or both."""


def read_key(source: str) -> Key:
    """Return the key from a file, or from a variable for `env:VARIABLE`: Ed25519 in PEM, or any other text as a secret.

    Raises:
        UsageError: it cannot be read, others can read it, or it is not such a key.
    """
    content = _content(source).strip()
    if content.startswith(_PEM):
        return _pair(content, source)
    if len(content) < _LEAST:
        raise UsageError(f"--key {source}: a secret has at least {_LEAST} bytes; `openssl rand -hex 32` writes one")
    return Secret(content)


def _content(source: str) -> bytes:
    if source.startswith("env:"):
        return os.environb.get(source.removeprefix("env:").encode(), b"")
    path = Path(source).expanduser()
    try:
        content = read_plain(path, _LARGEST)
        is_open = b"PUBLIC KEY" not in content and path.stat().st_mode & 0o077
    except (OSError, ValueError) as error:
        raise UsageError(f"--key {source}: {getattr(error, 'strerror', None) or error}") from None
    if is_open:
        raise UsageError(f"--key {source}: others can read it: chmod 600")
    return content


def _pair(content: bytes, source: str) -> Pair:
    ed25519, serialization = _cryptography()
    try:
        if b"PUBLIC KEY" in content:
            private, public = None, serialization.load_pem_public_key(content)
        else:
            private = serialization.load_pem_private_key(content, password=None)
            public = private.public_key()
    except (ValueError, TypeError):
        raise UsageError(f"--key {source}: not a key in PEM, or one with a password") from None
    if not isinstance(public, ed25519.Ed25519PublicKey):
        raise UsageError(f"--key {source}: not an Ed25519 key; `openssl genpkey -algorithm ed25519` writes one")
    return Pair(private, public)


def _cryptography() -> tuple[Any, Any]:
    try:
        from cryptography.hazmat.primitives import serialization  # noqa: PLC0415 - an extra
        from cryptography.hazmat.primitives.asymmetric import ed25519  # noqa: PLC0415
    except ImportError:
        raise MissingDependencyError("Ed25519 keys need: pip install 'playhead[sign]' (HMAC does not)") from None
    return ed25519, serialization
