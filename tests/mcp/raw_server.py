"""An MCP server in a few lines, without any package: it starts in no time, and can misbehave in every way.

python raw_server.py '{"tools": [...], "answers": {"tool": result | {"do": "die"}}, "start": "..."}'
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

CASE = json.loads(sys.argv[1])


def say(message: dict[str, Any]) -> None:
    """Send a message."""
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def die() -> None:
    """End at once, with last words that would paint a terminal red."""
    sys.stderr.write("\x1b[31mout of \x07memory\x1b[0m\n")
    sys.stderr.flush()
    os._exit(3)


def talk_without_end() -> None:
    """Send a message that never ends."""
    while True:
        sys.stdout.write("x" * 65536)


def go_deaf() -> None:
    """Stop reading."""
    os.close(0)
    time.sleep(600)


def babble() -> None:
    """Print what is no message."""
    sys.stdout.write("not \x1b[2J json\n")
    sys.stdout.flush()


def be_stubborn() -> None:
    """Ignore that anybody wants the process to end."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def have_a_child() -> None:
    """Start a process that outlives this one."""
    subprocess.Popen([sys.executable, "-S", "-c", "import time; time.sleep(600)", os.environ["MARK"]])


def shout() -> None:
    """Write more to standard error than a pipe holds."""
    sys.stderr.write("x" * 1_000_000 + "\n")
    sys.stderr.flush()


WAYS = {
    "die": die,
    "crash": lambda: os.kill(os.getpid(), signal.SIGSEGV),
    "hang": lambda: time.sleep(600),
    "endless": talk_without_end,
    "deaf": go_deaf,
    "garbage": babble,
    "stubborn": be_stubborn,
    "child": have_a_child,
    "noise": shout,
}


def answer(request: dict[str, Any]) -> None:
    """Answer a request."""
    method, params = request["method"], request.get("params", {})
    if method == "initialize":
        info = {"name": "raw", "version": "1"}
        result: Any = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": info}
    elif method == "tools/list":
        many = [{"name": f"t{number}", "inputSchema": {"type": "object"}} for number in range(CASE.get("many", 0))]
        result = {"tools": [*CASE["tools"], *many]}
        if CASE.get("pages"):
            result["nextCursor"] = str(time.time())
    elif method == "tools/call":
        result = CASE["answers"][params["name"]]
        if "echo" in result:
            result = {"content": [{"type": "text", "text": json.dumps(params["arguments"])}]}
        if "do" in result:
            WAYS[result["do"]]()
            result = {"content": [{"type": "text", "text": "done"}]}
        if "refuse" in result:
            say({"id": request["id"], "error": {"code": -32603, "message": result["refuse"]}})
            return
    else:
        say({"id": request["id"], "error": {"code": -32601, "message": "no such method"}})
        return
    say({"id": request["id"], "result": result})


for each in CASE.get("start", []):
    WAYS[each]()
for line in sys.stdin:
    received = json.loads(line)
    if "log" in CASE:
        with Path(CASE["log"]).open("a") as log:
            log.write(line)
    if "id" in received:
        answer(received)
if "stubborn" in CASE.get("start", []):
    time.sleep(600)
