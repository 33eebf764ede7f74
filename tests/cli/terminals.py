"""What a program writes to a terminal."""

from __future__ import annotations

import os
import pty
import subprocess


def written_to_a_terminal(command: list[str], **environment: str) -> bytes:
    """Run a program in a terminal of its own, and return what it writes there."""
    controller, side = pty.openpty()
    program = subprocess.Popen(
        command, stdin=side, stdout=side, stderr=side, env={**os.environ, "TERM": "xterm-256color", **environment}
    )
    os.close(side)
    output = b""
    try:
        while chunk := os.read(controller, 65536):
            output += chunk
    except OSError:  # Linux says so when the other side is closed
        pass
    program.wait(timeout=30)
    os.close(controller)
    return output
