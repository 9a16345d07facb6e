from __future__ import annotations

import itertools
import logging
import threading
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from deltic.storage.files import Content, FileRef, Origin, write_file
from deltic.storage.folder import open_folder
from deltic.storage.manifest import SegmentRef
from deltic.trace.batch import Batch
from stored import dictionary_of


@pytest.fixture
def root(tmp_path: Path) -> str:
    """An empty state folder."""
    open_folder(tmp_path / "state").make()
    return str(tmp_path / "state")


@pytest.fixture
def store(root: str) -> Callable[..., tuple[FileRef, SegmentRef]]:
    """Writes a batch to a file of its own in `root`."""

    def write(batch: Batch, *, arrangement: str = "a", shard: int = 0, **strings: int) -> tuple[FileRef, SegmentRef]:
        positions = (0,) if strings else ()
        content = Content(arrangement, batch, positions)
        ref = write_file(root, Origin(1, 1, shard, 0), [content], dictionary_of(**strings))
        return ref, SegmentRef(shard, arrangement, ref.name, len(batch))

    return write


@pytest.fixture(scope="session")
def s3_server() -> Iterator[str]:
    """The address of an S3 server on loopback with a bucket named `bucket`."""
    from moto.s3.responses import S3Response  # noqa: PLC0415  takes a second, which workers without these tests save
    from moto.server import ThreadedMotoServer  # noqa: PLC0415

    put, one = S3Response.put_object, threading.Lock()

    def put_alone(self: S3Response) -> Any:
        """Unlike S3, moto lets two requests pass If-None-Match at once."""
        with one:
            return put(self)

    S3Response.put_object = put_alone

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    with urllib.request.urlopen(urllib.request.Request(f"http://{host}:{port}/bucket", method="PUT"), timeout=30):
        yield f"http://{host}:{port}"
    server.stop()


_PREFIXES = itertools.count()


@pytest.fixture
def s3(s3_server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The URL of an empty state folder in an object store; copies of its files are in `tmp_path / "cache"`."""
    settings = {
        "ENDPOINT_URL": s3_server,
        "ALLOW_HTTP": "true",
        "ACCESS_KEY_ID": "key",
        "SECRET_ACCESS_KEY": "secret",
        "REGION": "us-east-1",
    }
    for name, value in settings.items():
        monkeypatch.setenv(f"AWS_{name}", value)
    monkeypatch.setenv("DELTIC_CACHE", str(tmp_path / "cache"))
    return f"s3://bucket/state {next(_PREFIXES)}"
