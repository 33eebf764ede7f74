"""What every captured framework is asked to do: read two facts at once, then send a mail, then answer."""

from __future__ import annotations

from pathlib import Path

from provider import Answer, calls, text

TASK = "How high is Mount Zed, and how deep is Lake Quill? Mail both to ann@example.com."
SYSTEM = "You answer with facts from the tools."
ANSWERS: tuple[Answer, ...] = (
    calls(("lookup", {"key": "Mount Zed"}), ("lookup", {"key": "Lake Quill"}), content="I look both up."),
    calls(("send_mail", {"to": "ann@example.com", "body": "4,180 feet and 61 metres"})),
    text("Mount Zed is 4,180 feet high, Lake Quill 61 metres deep; both are mailed."),
)
FACTS = {"Mount Zed": "4,180 feet", "Lake Quill": "61 metres"}
MAILBOX = Path("/tmp/playhead-capture-mailbox")


def lookup(key: str) -> str:
    """Look a fact up.

    Args:
        key: what to look up.
    """
    return FACTS[key]


def send_mail(to: str, body: str) -> str:
    """Send a mail.

    Args:
        to: the address.
        body: the text.
    """
    with MAILBOX.open("a") as mailbox:
        mailbox.write(f"{to}: {body}\n")
    return f"sent to {to}"
