"""Whoever can write the trace, and hash it again, is noticed by a kept head; whoever can write the head too, by its signature."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from playhead.diagnose.erasure import Eraser, erase
from playhead.diagnose.heads import Head, Sealed, judge, keep_heads, read_heads
from playhead.diagnose.signing import Key, Secret, read_key
from playhead.errors import TraceError, UsageError
from playhead.trace.events import Erased, ErasedLine
from playhead.trace.line import encode_data, encode_line
from tests.trace.traces import header, record, rehashed, thought, thoughts

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

COUNT = 8


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A trace of eight events."""
    folder = tmp_path / "traces"
    folder.mkdir()
    record(folder / "run.jsonl", thoughts(COUNT))
    return folder / "run.jsonl"


def make_key(file: Path, kind: str) -> None:
    """Write a key, and the public key of a pair as `<file>.pub`."""
    file.touch(0o600)
    if kind == "hmac":
        file.write_text("s" * 64)
        return
    key = Ed25519PrivateKey.generate()
    file.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    public = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    file.with_name(f"{file.name}.pub").write_bytes(public)


@pytest.fixture(params=["hmac", "ed25519"])
def key_file(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A key of each kind."""
    file = tmp_path / "key"
    make_key(file, request.param)
    return file


def sealed(path: Path, key: Key | None = None) -> Head:
    """Keep the head of a run, signed if there is a key, and return what was kept."""
    file = path.parent / ".heads"
    keep_heads(file, {}, [judge(path, None)], key)
    return read_heads(file)["run"]


def lines_of(path: Path) -> list[bytes]:
    """Return the lines of a trace."""
    return path.read_bytes().splitlines(keepends=True)


def cut(lines: list[bytes]) -> list[bytes]:
    """Remove the last lines."""
    return lines[:-2]


def changed(lines: list[bytes]) -> list[bytes]:
    """Change a line, and hash the file again."""
    return rehashed([lines[0], lines[1].replace(b"thought", b"forgery"), *lines[2:]])


def lengthened(lines: list[bytes]) -> list[bytes]:
    """Change a line, hash the file again, and add events, so that it is longer than it was."""
    return rehashed(
        [*changed(lines)[:-1], *[lines[2].replace(b'"seq":2', b'"seq":%d' % n) for n in range(COUNT - 1, COUNT + 3)]]
    )


def replaced(lines: list[bytes]) -> list[bytes]:
    """Put another run in its place."""
    return rehashed([lines[0].replace(b"Find it", b"Lose it"), *lines[1:]])


def erased(lines: list[bytes]) -> list[bytes]:
    """Call a change an erasure, with all that belongs to one."""
    hashes = ["", *(json.loads(line)["h"] for line in lines)]
    lie = lines[3].replace(b',"data":', b',"erased":true,"data":').replace(b"thought", b"forgery")
    event = Erased(lines=(ErasedLine(seq=3, previous=hashes[3]),))
    last = encode_line(len(lines), 9, event.kind, "root", None, encode_data(event), hashes[-1])[0]
    return [*lines[:3], lie, *lines[4:], last]


FORGERIES = [
    (cut, "events were cut off: it ends with event 5, and the kept head is of event 7"),
    (changed, "it was changed, and hashed again: event 7 has another hash than the kept head"),
    (lengthened, "it was changed, and hashed again: event 7 has another hash than the kept head"),
    (replaced, "this is another run than the one whose head was kept: its first event differs"),
]


@pytest.mark.parametrize(("forge", "said"), FORGERIES)
def test_a_kept_head_shows_what_the_chain_alone_does_not(
    path: Path, forge: Callable[[list[bytes]], list[bytes]], said: str
):
    """Each forgery is sound by itself, and differs from the head."""
    head = sealed(path)
    path.write_bytes(b"".join(forge(lines_of(path))))
    assert judge(path, None).ok
    found = judge(path, head)
    assert (found.ok, found.differs) == (False, said)


@pytest.mark.parametrize(("forge", "said"), FORGERIES)
def test_a_signature_shows_it_where_the_head_can_be_written(
    path: Path, key_file: Path, forge: Callable[[list[bytes]], list[bytes]], said: str
):
    """A head that was made for the forgery has no signature; the old signature fits no other head; another key's is none."""
    key = read_key(str(key_file))
    head = sealed(path, key)
    assert judge(path, head, key).ok
    path.write_bytes(b"".join(forge(lines_of(path))))
    assert judge(path, head, key).differs == said
    other = path.with_name("other-key")
    other.touch(0o600)
    other.write_text("t" * 64)
    for forged in (
        judge(path, None).now,
        judge(path, None).now.model_copy(update={"signature": head.signature}),
        sealed(path, read_key(str(other))),
    ):
        assert judge(path, forged, key).differs == "the kept head is not signed with this key, or was changed"
    assert judge(path, None, key).differs == "no signed head was kept"


def test_no_field_of_a_signed_head_can_be_changed(path: Path, key_file: Path):
    """Everything that is compared is signed."""
    key = read_key(str(key_file))
    head = sealed(path, key)
    for change in (
        {"run": "other"},
        {"first": "0" * 64},
        {"seq": 3},
        {"head": "0" * 64},
        {"erased": (3,)},
        {"signature": "ab"},
    ):
        forged = head.model_copy(update=change)
        assert judge(path, forged, key).differs == "the kept head is not signed with this key, or was changed"


def test_a_change_that_is_called_an_erasure_is_named(path: Path):
    """Neither chain nor head tells it from an erasure: the line is named as not covered, and the run is never `ok`."""
    head = sealed(path)
    path.write_bytes(b"".join(erased(lines_of(path))))
    found = judge(path, head)
    assert (found.differs, found.checked.verdict, found.ok, found.erased_since) == (None, "erased", False, (3,))
    assert (
        found.account
        == "erased: 9 events, the kept head covers them up to 7; erased, and not covered by a head: event 3"
    )


def test_a_head_that_is_kept_after_an_erasure_covers_what_it_left(path: Path):
    """Another erasure shows, and so does a change of the erased line."""
    erase(path, Eraser(["thought 3"]))
    head = sealed(path)
    assert (head.erased, judge(path, head).erased_since) == ((3,), ())
    altered = path.read_bytes().replace(b"[erased:", b"[Erased:", 1)
    erase(path, Eraser(["thought 5"]))
    assert judge(path, head).erased_since == (5,)
    path.write_bytes(altered)
    assert judge(path, head).checked.verdict == "damaged"


def test_a_run_may_grow(path: Path):
    """The head of a run without an end is kept too; what comes later is no difference."""
    whole = lines_of(path)
    path.write_bytes(b"".join(whole[:4]))
    head = sealed(path)
    path.write_bytes(b"".join(whole))
    found = judge(path, head)
    assert (head.seq, found.ok, found.checked.verdict, found.account) == (
        3,
        True,
        "ok",
        "ok: 8 events, the kept head covers them up to 3",
    )


def test_a_head_that_differs_is_not_overwritten(path: Path):
    """Keeping heads again, as a daily job does, blesses no forgery, and no damaged file."""
    head = sealed(path)
    good = path.read_bytes()
    file = path.parent / ".heads"
    for forged in (b"".join(changed(lines_of(path))), good.replace(b"thought 4", b"thought 9")):
        path.write_bytes(forged)
        keep_heads(file, {"run": head}, [judge(path, head)])
        assert read_heads(file) == {"run": head}
    assert read_heads(path.with_name("none")) == {}
    keep_heads(file, {}, [judge(path, None)])
    assert read_heads(file) == {}


def test_what_no_head_shows(path: Path):
    """What was false before the head was kept; and an older state together with its older signed head."""
    key = Secret(b"k" * 32)
    old, earlier = path.read_bytes(), None
    path.write_bytes(b"".join(lines_of(path)[:4]))
    earlier = sealed(path, key)
    rolled_back = path.read_bytes()
    path.write_bytes(old)
    sealed(path, key)
    path.write_bytes(rolled_back)
    assert judge(path, earlier, key).ok
    record(path.with_name("lie.jsonl"), [header(run_id="lie"), thought(1)])
    found = judge(path.with_name("lie.jsonl"), None)
    assert isinstance(found, Sealed)
    assert judge(path.with_name("lie.jsonl"), found.now).ok


@pytest.mark.parametrize("content", ["{}\n", "nothing\n", '{"run":"a","first":"b","seq":"1","head":"c"}\n', "\udcff"])
def test_a_file_of_something_else_is_refused(path: Path, content: str):
    """It is not taken for a file without heads."""
    file = path.with_name("heads")
    file.write_bytes(content.encode("utf-8", "surrogateescape"))
    with pytest.raises(TraceError):
        read_heads(file)


def test_a_pipe_is_no_file_of_heads(path: Path):
    """Nobody waits for what never comes."""
    file = path.with_name("heads")
    os.mkfifo(file)
    with pytest.raises(TraceError, match="not a plain file"):
        read_heads(file)


def test_keys_are_kept_from_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A key that others can read, or a weak secret, is refused."""
    for kind in ("hmac", "ed25519"):
        file = tmp_path / kind
        make_key(file, kind)
        file.chmod(0o640)
        with pytest.raises(UsageError, match="chmod 600"):
            read_key(str(file))
    public = read_key(str(tmp_path / "ed25519.pub"))
    with pytest.raises(UsageError, match="public key"):
        public.sign(b"")
    monkeypatch.setenv("KEY", "x" * 31)
    for source in ("env:KEY", "env:NO_KEY", str(tmp_path / "nothing"), str(tmp_path)):
        with pytest.raises(UsageError):
            read_key(source)
    (tmp_path / "rsa").write_text("-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n")
    (tmp_path / "rsa").chmod(0o600)
    with pytest.raises(UsageError, match="not a key in PEM"):
        read_key(str(tmp_path / "rsa"))


def test_a_public_key_is_no_secret_for_hmac(tmp_path: Path):
    """What is signed with the public key as a secret does not verify with it."""
    make_key(tmp_path / "key", "ed25519")
    public = (tmp_path / "key.pub").read_bytes()
    forged = Secret(public.strip()).sign(b"head")
    assert not read_key(str(tmp_path / "key.pub")).verifies(b"head", forged)
