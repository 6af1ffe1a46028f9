"""A page that follows a store while it grows, served to this machine only."""

from __future__ import annotations

import contextlib
import json
import threading
import urllib.parse
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from placecell.errors import InputError
from placecell.report.page.build import Page, build_page
from placecell.store import RunSet, Store
from placecell.study.known import known_measures
from placecell.study.records import RunSummary

WATCHED = ("status.json", "metrics.csv", "lazy_rich*")


class Live:
    """The page of a folder, built again when something in the folder has changed.

    Every finished run is measured once.

    Parameters ---------- folder : Path A folder of runs. build : callable Builds the page, as
    `build_page` does. **options Further arguments of `build`.
    """

    def __init__(
        self, folder: Path, build: Callable[..., Page] = build_page, **options: Any
    ) -> None:
        self.folder, self.build, self.options = folder, build, options
        self.seen: dict[str, RunSummary] = {}
        self.guard = threading.Lock()
        self.made: tuple[str, Page] | None = None

    def version(self) -> str:
        """Return a text that changes when a run or an analysis that the page shows changes.

        Returns
        -------
        str
        """
        stats = []
        for name in WATCHED:
            for path in sorted(self.folder.glob(f"*/{name}")):
                with contextlib.suppress(OSError):  # removed since it was listed
                    stat = path.stat()
                    stats.append((str(path), stat.st_mtime_ns, stat.st_size))
        return f"{hash(tuple(stats)) & (2**64 - 1):x}"

    def page(self) -> tuple[str, Page]:
        """Return the page as the folder is now.

        Returns
        -------
        (str, Page)
            Version and page.
        """
        with self.guard:
            version = self.version()
            if self.made is None or self.made[0] != version:
                try:
                    store = Store(self.folder).run_set()
                except InputError as error:
                    if self.folder.exists() and not self.folder.is_dir():
                        raise
                    store = RunSet(str(self.folder), [], {"": f"{error} This page follows it."})
                known = known_measures(self.folder)
                self.made = (
                    version,
                    self.build(store, known=known, seen=self.seen, live=version, **self.options),
                )
            return self.made


class _Handler(BaseHTTPRequestHandler):
    live: Live
    hosts: tuple[str, ...]

    def do_GET(self) -> None:
        # a page of another site could name this address as its own: only our own name is answered
        if self.headers.get("Host") not in self.hosts:
            return self.answer(
                HTTPStatus.FORBIDDEN,
                "text/plain; charset=utf-8",
                b"only as " + self.hosts[0].encode(),
            )
        url = urllib.parse.urlsplit(self.path)
        try:
            if url.path == "/":
                return self.answer(
                    HTTPStatus.OK, "text/html; charset=utf-8", self.live.page()[1].html.encode()
                )
            if url.path == "/news":
                if urllib.parse.parse_qs(url.query).get("have") == [self.live.version()]:
                    return self.answer(HTTPStatus.NO_CONTENT, "application/json", b"")
                parts = dict(self.live.page()[1].parts)
                return self.answer(
                    HTTPStatus.OK, "application/json", json.dumps(parts, allow_nan=False).encode()
                )
        except InputError as error:
            return self.answer(
                HTTPStatus.INTERNAL_SERVER_ERROR, "text/plain; charset=utf-8", str(error).encode()
            )
        return self.answer(HTTPStatus.NOT_FOUND, "text/plain; charset=utf-8", b"nothing here")

    def answer(self, status: HTTPStatus, kind: str, body: bytes) -> None:
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # the reader has gone
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.send_header("Cache-Control", "no-store")
            self.send_header("X-Content-Type-Options", "nosniff")
            self.end_headers()
            self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing: a terminal beside a sweep has better things to show."""


def make_server(live: Live, port: int = 0) -> ThreadingHTTPServer:
    """Make a server of the page on the loopback address.

    Parameters
    ----------
    live : Live
        The page.
    port : int
        The port; 0 takes any free one.

    Returns
    -------
    ThreadingHTTPServer
    """
    try:
        server = ThreadingHTTPServer(("127.0.0.1", port), _Handler)
    except (OSError, OverflowError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not a port"
        raise InputError(
            f"port {port} cannot be had ({reason}); leave --port out to take any."
        ) from None
    server.daemon_threads = True
    hosts = tuple(f"{name}:{server.server_port}" for name in ("127.0.0.1", "localhost"))
    server.RequestHandlerClass = type("Handler", (_Handler,), {"live": live, "hosts": hosts})
    return server
