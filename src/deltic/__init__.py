"""Deltic keeps the answers to queries exact while the data changes.

    >>> import deltic
    >>> with deltic.Session() as session:
    ...     session.sql("CREATE TABLE t (k BIGINT, v BIGINT, PRIMARY KEY (k)); CREATE MATERIALIZED VIEW s AS SELECT sum(v) AS total FROM t")
    ...     with session.transaction() as tx:
    ...         tx.insert("t", [{"k": 1, "v": 20}, {"k": 2, "v": 22}])
    ...     session.view("s").rows()
    [{'total': 42}]

The engine is loaded when it is first used, so that `import deltic` and `deltic --version` cost little.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from deltic import errors

if TYPE_CHECKING:
    from deltic.frontends.edn import Keyword
    from deltic.frontends.python import UDF, Circuit, Encoded, IndexedStream, MapOf, SetOf, Stream
    from deltic.pipeline import Pipeline
    from deltic.runtimes.read_only import ReadOnlyState, open
    from deltic.runtimes.stored_view import StoredView
    from deltic.session import Answer, Datalog, EdnStore, EdnView, LoadProgress, Program, Session, Transaction, View, Watermark
    from deltic.session.frame_views import view
    from deltic.variants import Variant

__version__ = "0.1.0"
__all__ = [
    "UDF",
    "Answer",
    "Circuit",
    "Datalog",
    "EdnStore",
    "EdnView",
    "Encoded",
    "IndexedStream",
    "Keyword",
    "LoadProgress",
    "MapOf",
    "Pipeline",
    "Program",
    "ReadOnlyState",
    "Session",
    "SetOf",
    "StoredView",
    "Stream",
    "Transaction",
    "Variant",
    "View",
    "Watermark",
    "__version__",
    "errors",
    "open",
    "view",
]

_LOADED_LATE: Final = {
    **dict.fromkeys(("Circuit", "Encoded", "MapOf", "SetOf", "UDF", "IndexedStream", "Stream"), "deltic.frontends.python"),
    **dict.fromkeys(
        ("Answer", "Datalog", "EdnStore", "EdnView", "LoadProgress", "Program", "Session", "Transaction", "View", "Watermark"),
        "deltic.session",
    ),
    **dict.fromkeys(("ReadOnlyState", "open"), "deltic.runtimes.read_only"),
    "Keyword": "deltic.frontends.edn",
    "Pipeline": "deltic.pipeline",
    "StoredView": "deltic.runtimes.stored_view",
    "Variant": "deltic.variants",
    "view": "deltic.session.frame_views",
}


def __getattr__(name: str) -> Any:
    if name not in _LOADED_LATE:
        raise AttributeError(f"module 'deltic' has no attribute {name!r}")
    return getattr(import_module(_LOADED_LATE[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
