"""The metrics of `deltic run` and `deltic pipelines run` over HTTP."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any, Final

from cyclopts import Parameter

from deltic.errors import SetupError
from deltic.pipeline import Progress
from deltic.pipeline.metrics import CONTENT_TYPE, Metrics

LOOPBACK: Final = "127.0.0.1"
_PORT: Final = re.compile(r"(?:(?P<host>[^:\s]+|\[[0-9a-fA-F:.]+\]):)?(?P<port>\d{1,5})")


def address(given: str) -> tuple[str, int]:
    """The host and the port of `PORT` or `HOST:PORT`. Raises ValueError.

    >>> address("9100"), address("0.0.0.0:9100")
    (('127.0.0.1', 9100), ('0.0.0.0', 9100))
    """
    match = _PORT.fullmatch(given)
    if match is None or int(match["port"]) > 65535:
        raise ValueError("Must be PORT, which is on 127.0.0.1, or HOST:PORT, such as 0.0.0.0:9100.")
    return (match["host"] or LOOPBACK).strip("[]"), int(match["port"])


def _check(_: Any, given: str | None) -> None:
    if given is not None:
        address(given)


ADDRESS: Final = Parameter(validator=_check)
"""Of an option whose value `address` takes: another value is wrong usage."""


@contextmanager
def measured(
    listens: tuple[str, int], epoch: int, say: Callable[[str], None], reported: Callable[[Progress], None]
) -> Iterator[Callable[[Progress], None]]:
    """Serves the metrics of a run during the block; gives what to call after each tick in place of `reported`.

    listens: host and port. epoch: the last one committed before.
    """
    metrics = Metrics(epoch)

    def ticked(progress: Progress) -> None:
        metrics.add(progress)
        reported(progress)

    with served(metrics, *listens) as url:
        say(f"metrics at {url}")
        yield ticked


@contextmanager
def served(metrics: Metrics, host: str, port: int) -> Iterator[str]:
    """Answers GET /metrics while the block runs; gives the URL. port: 0 for a free one. Raises SetupError if it cannot listen."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            is_known = self.path.partition("?")[0] == "/metrics"
            body = metrics.text().encode() if is_known else b"the metrics are at /metrics\n"
            self.send_response(200 if is_known else 404)
            self.send_header("Content-Type", CONTENT_TYPE)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    try:
        server = ThreadingHTTPServer((host, port), Handler)
    except OSError as error:
        raise SetupError(f"--metrics: cannot listen on {host}:{port}: {error.strerror}", remedy="choose another port") from error
    thread = Thread(target=server.serve_forever, name="deltic-metrics", daemon=True)
    thread.start()
    try:
        yield f"http://{host}:{server.server_port}/metrics"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
