"""A trace folder over HTTP: the list of runs, the page of each, two side by side. It reads, and answers nobody else's pages.

The address is this machine's own. A `Host` of another name is refused, so that a web page whose name leads here (DNS
rebinding) gets nothing, and no header lets another page read an answer. Answers are not kept; one that is asked for again
with its `ETag` is 304 while nothing has changed, so a page can ask often.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING, Final, TypeAlias

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from playhead.diagnose.many_page import render_many
from playhead.diagnose.recording import read_recording
from playhead.diagnose.report_page import render, render_pair, render_report
from playhead.errors import PlayheadError, TraceNotFoundError
from playhead.trace.store import SUFFIXES, is_alive

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from starlette.requests import Request

    from playhead.diagnose.run_summary import RunSummary
    from playhead.trace.store import TraceStore

HOSTS: Final = ("127.0.0.1", "localhost")
HEADERS: Final = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "frame-ancestors 'none'",  # which a page cannot say of itself
    "Cross-Origin-Resource-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
}
Choose: TypeAlias = "Callable[[list[tuple[str, str]]], tuple[Sequence[RunSummary], Sequence[dict[str, str]], int]]"
"""Returns the first runs that a query string describes, the conditions that there are, and how many such runs exist."""


def application(store: TraceStore, choose: Choose) -> Starlette:
    """Return the application that shows the runs of this folder."""

    def listed(request: Request) -> Response:
        runs, fields, total = choose(request.query_params.multi_items())
        state = [total, *((run, run.ending) for run in runs)]
        return _answer(request, state, lambda: render_many(runs, fields=fields, total=total))

    def one(request: Request) -> Response:
        path = _path(store, request.path_params["run"])
        return _answer(request, _state(path), lambda: render_report(read_recording(path), served=True))

    def two(request: Request) -> Response:
        paths = [_path(store, request.query_params.get(name, "")) for name in "ab"]
        state = [_state(path) for path in paths]
        return _answer(request, state, lambda: render_pair(*map(read_recording, paths), served=True))

    def refused(_: Request, error: Exception) -> Response:
        is_known = isinstance(error, PlayheadError)
        what = str(error) if is_known else f"This is a bug in Playhead ({type(error).__name__}); please report it."
        status = 404 if isinstance(error, TraceNotFoundError) else 400 if is_known else 500
        return HTMLResponse(render("refused.html", (), {"what": what}, served=True), status, HEADERS)

    return Starlette(
        routes=[Route("/", listed), Route("/runs/{run}", one), Route("/diff", two)],
        middleware=[Middleware(TrustedHostMiddleware, allowed_hosts=HOSTS, www_redirect=False)],
        exception_handlers={PlayheadError: refused, Exception: refused},
    )


def _path(store: TraceStore, reference: str) -> Path:
    """Return the file of a run of this folder: an id, its beginning, or `latest`; never a path, which could lead anywhere."""
    if reference.endswith(SUFFIXES):
        raise TraceNotFoundError(f"{reference!r} is no run of {store.folder}: name it by its id")
    return store.resolve(reference)


def _state(path: Path) -> object:
    """Return what differs once the page of a run would differ."""
    try:
        found = path.stat()
    except OSError as error:  # it was removed just now
        raise TraceNotFoundError(f"{path.name}: {error.strerror}") from None
    return found.st_ino, found.st_size, found.st_mtime_ns, is_alive(path)


def _answer(request: Request, state: object, page: Callable[[], str]) -> Response:
    """Return the page, or 304 if its reader has it as it is."""
    tag = f'"{blake2b(repr(state).encode(errors="surrogateescape"), digest_size=16).hexdigest()}"'
    headers = {**HEADERS, "ETag": tag}
    if request.headers.get("if-none-match") == tag:
        return Response(status_code=304, headers=headers)
    return HTMLResponse(page(), headers=headers)
