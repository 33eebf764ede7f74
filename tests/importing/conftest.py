"""A collector in this process."""

from __future__ import annotations

from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from playhead.importing.collect.collector import Collector
from playhead.importing.collect.server import CollectServer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


@pytest.fixture(scope="module")
def server() -> Iterator[CollectServer]:
    """One server for all tests of a module: starting and stopping it takes longer than most of them."""
    server = CollectServer(lambda _: None, port=0)
    server.start()
    yield server
    server.stop()


@pytest.fixture
def collecting(server: CollectServer, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Open a collector of a folder, and yield it with the address of its server."""

    @contextmanager
    def opened(folder: Path, **options: Any) -> Iterator[tuple[Collector, str]]:
        with closing(Collector(folder, **options)) as made:
            monkeypatch.setattr(server, "_take", made.take)
            yield made, server.address

    return opened
