"""Random programs: trees of requests, tools, facts, errors, retries, nested programs, and tasks that may be cut off or left at work."""

from __future__ import annotations

import asyncio
import contextvars
import random
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

import httpx2
import openai

from playhead import recorded, tool
from playhead.instrument import facts
from tests.instrument.chatting import Chat, says

LEAVES = (
    *("raise", "ask", "ask", "stream", "other", "flaky", "refused", "read", "write", "fail", "fact"),
    *("timeout", "secret"),
)
SECRET = "ghp_" + "Ab1" * 12
LEFT: list[Any] = []
"""Tasks that nobody waits for."""
RAN: list[str] = []
"""The bodies that ran."""


@dataclass(frozen=True)
class Node:
    """A part of a program."""

    kind: str
    key: str = ""
    parts: tuple[Node, ...] = ()


JITTER = random.Random(0)


class Network:
    """Lets one answer after the other arrive, in any order, each when the program has come to rest, after 50 turns of the loop."""

    def __init__(self) -> None:
        self._waiting: list[asyncio.Future[None]] = []

    async def arrive(self) -> None:
        """Wait until the answer arrives."""
        loop = asyncio.get_running_loop()
        self._waiting = [each for each in self._waiting if each.get_loop() is loop]
        self._waiting.append(answer := loop.create_future())
        if len(self._waiting) == 1:
            loop.call_soon(self._arrived, 50)
        await answer

    def _arrived(self, turns: int) -> None:
        """Let an answer arrive after some turns of the event loop, and then the next one."""
        if not turns:
            answer = self._waiting.pop(JITTER.randrange(len(self._waiting)))
            if not answer.done():
                answer.set_result(None)
        if self._waiting:
            asyncio.get_running_loop().call_soon(self._arrived, turns - 1 if turns else 50)


NETWORK = Network()


NETWORK = Network()


@dataclass
class Servers:
    """What the model answers: by key, and for keys that begin with `v` another answer each time."""

    failed: set[str] = field(default_factory=set)
    count: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self.chats = [Chat(self._answer, NETWORK.arrive), Chat(self._answer, NETWORK.arrive)]

    @property
    def asked(self) -> int:
        """The requests that reached a server."""
        return sum(len(each.asked) for each in self.chats)

    def _answer(self, body: dict[str, Any]) -> Any:
        key = str(body["messages"][-1]["content"])
        with self.lock:
            self.count += 1
            if key.startswith("flaky") and key not in self.failed:
                self.failed.add(key)
                return httpx2.Response(500, headers={"retry-after-ms": "1"}, text="{}")
        if key.startswith("refused"):
            return httpx2.Response(
                400, headers={"content-type": "application/json"}, text='{"error": {"message": "no"}}'
            )
        return says(f"{key} {self.count if ' v' in key else ''}")


SERVERS = Servers()


@tool(read_only=True)
def read(key: str) -> str:
    """Read."""
    RAN.append(key)
    return f"{key} {len(RAN) if key.startswith('v') else ''}"


@tool
def write(key: str) -> dict:
    """Write."""
    RAN.append(key)
    return {"wrote": key}


@tool
def fail(key: str) -> str:
    """Fail."""
    RAN.append(key)
    raise LookupError(key)


@tool
async def read_later(key: str) -> str:
    """Read, as a coroutine."""
    await NETWORK.arrive()
    RAN.append(key)
    return key


@tool
async def hang(key: str) -> None:
    """Never return."""
    await asyncio.Event().wait()


@tool(read_only=True)
def token(key: str) -> str:
    """Return a credential."""
    RAN.append(key)
    return f"{key} {SECRET}"


PAUSES = [False]
"""Whether programs pause by a clock of their own, which no recording knows."""


async def pause() -> None:
    """Let others take their turns."""
    for _ in range(JITTER.randrange(4) if PAUSES[0] else 0):
        await asyncio.sleep(0)


def made(rng: random.Random, depth: int = 5) -> Node:
    """Return a random program."""
    inner = ("seq", "gather", "gather", "nested", "threads", "try", "try", "cancel", "group", "left")
    kind = rng.choice(inner[:3] if depth == 5 else (*inner, *LEAVES) if depth else LEAVES)
    key = rng.choice(("a", "b", "c", "d", "e", "va"))
    if kind == "threads":
        return Node(
            kind, parts=tuple(Node(rng.choice(("read", "write", "ask")), key) for _ in range(rng.randint(2, 4)))
        )
    if kind not in LEAVES:
        return Node(kind, key, tuple(made(rng, depth - 1) for _ in range(rng.randint(1, 4))))
    return Node(kind, key)


def planted(rng: random.Random, node: Node) -> Node:
    """Return the program with one leaf that does something with another key, of a part that comes to its end."""
    places = [place for place, each in enumerate(node.parts) if each.kind not in {"left", "cancel"}]
    if not places:
        return replace(node, kind="read", key="planted", parts=())
    place = rng.choice(places)
    parts = (*node.parts[:place], planted(rng, node.parts[place]), *node.parts[place + 1 :])
    return replace(node, parts=parts)


async def run(node: Node) -> Any:
    """Run a part of a program."""
    await pause()
    return await (WITH_TASKS.get(node.kind, in_order))(node)


async def in_order(node: Node) -> Any:  # noqa: PLR0911 - one for each kind
    """Run a part of a program that starts no task itself."""
    if node.kind == "seq":
        return [await run(each) for each in node.parts]
    if node.kind == "try":
        try:
            return [await run(each) for each in node.parts]
        except ValueError:
            return "caught"
    if node.kind == "secret":
        return await ask(Node("ask", token(node.key)))
    if node.kind == "raise":
        raise ValueError  # the same everywhere: which of several tasks fails first is a race of the program's own
    if node.kind == "nested":
        return await nested([encoded(each) for each in node.parts])
    if node.kind == "threads":
        with ThreadPoolExecutor(2) as pool:
            futures = [pool.submit(contextvars.copy_context().run, leaf, each) for each in node.parts]
            return await asyncio.to_thread(lambda: [each.result() for each in futures])
    if node.kind in {"ask", "other", "flaky", "refused"}:
        return await ask(node)
    if node.kind == "stream":
        chunks = await SERVERS.chats[0].acreate(asking(node), stream=True)
        return "".join([chunk.choices[0].delta.content or "" async for chunk in chunks])
    return await read_later(node.key) if node.key == "d" else leaf(node)


async def timeout(node: Node) -> None:
    """Wait for what never comes."""
    with suppress(TimeoutError):
        await asyncio.wait_for(hang(node.key), 0.002)


def beside(node: Node) -> Any:
    """Start the parts beside each other."""
    (started := asyncio.gather(*map(run, node.parts))).add_done_callback(seen)
    return started


def seen(future: Any) -> None:
    """Take the exception of what nobody waits for, which asyncio would report."""
    _ = future.cancelled() or future.exception()


async def gather(node: Node) -> list[Any]:
    """Run parts beside each other; if one fails, the others go on."""
    return list(await beside(node))


async def left(node: Node) -> None:
    """Start a part, and do not wait for it."""

    async def work() -> None:
        with suppress(ValueError):
            await beside(node)

    LEFT.append(asyncio.ensure_future(work()))
    LEFT[-1].add_done_callback(seen)


async def cancelled(node: Node) -> str:
    """Start a part, and cancel it when the model has answered something else."""
    task = beside(node)
    await ask(Node("ask", f"before {node.key}"))
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    return "cancelled"


async def group(node: Node) -> Any:
    """Run parts as a group, which cancels the others when one fails."""
    try:
        async with asyncio.TaskGroup() as tasks:
            begun = [tasks.create_task(run(each)) for each in node.parts]
    except ExceptionGroup:
        return "caught"
    return [each.result() for each in begun]


WITH_TASKS = {"gather": gather, "left": left, "cancel": cancelled, "group": group, "timeout": timeout}


async def drain(before: set[Any]) -> None:
    """Let tasks end that a failed program has left at work."""
    while left := asyncio.all_tasks() - before:
        await asyncio.wait(left, timeout=5)


async def ask(node: Node) -> str:
    """Ask one of the models; a refused request is the SDK's own error."""
    chat = SERVERS.chats[node.kind == "other"]
    try:
        return str((await chat.acreate(asking(node))).choices[0].message.content)
    except openai.BadRequestError as error:
        return f"refused: {error.status_code}"


def asking(node: Node) -> list[dict[str, Any]]:
    """Return the messages of a request."""
    return [{"role": "user", "content": f"{node.kind} {node.key}"}]


def leaf(node: Node) -> Any:
    """Run a part that does not wait."""
    if node.kind == "fact":
        return facts.ask("fact", lambda: JITTER.randrange(2))
    if node.kind == "ask":
        return str(SERVERS.chats[0].create(asking(node)).choices[0].message.content)
    try:
        return {"read": read, "write": write, "fail": fail}.get(node.kind, read)(node.key)
    except LookupError as error:
        return f"failed: {error}"


def encoded(node: Node) -> list[Any]:
    """Return a program as JSON."""
    return [node.kind, node.key, [encoded(each) for each in node.parts]]


def decoded(given: list[Any]) -> Node:
    """Return a program from its JSON."""
    kind, key, parts = given
    return Node(kind, key, tuple(map(decoded, parts)))


@recorded
async def nested(parts: list) -> Any:
    """Run parts, as a program of its own."""
    return [await run(decoded(each)) for each in parts]


@recorded
async def program(node: list) -> Any:
    """Run a whole program."""
    return await run(decoded(node))
