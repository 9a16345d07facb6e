"""Deltic keeps the answers to queries exact while the data changes.

>>> import deltic
>>> with deltic.Session() as session:
...     session.sql("CREATE TABLE t (k BIGINT, v BIGINT, PRIMARY KEY (k)); CREATE MATERIALIZED VIEW s AS SELECT sum(v) AS total FROM t")
...     with session.transaction() as tx:
...         tx.insert("t", [{"k": 1, "v": 20}, {"k": 2, "v": 22}])
...     session.view("s").rows()
[{'total': 42}]
"""

from __future__ import annotations

from deltic import errors
from deltic.session import Session, Transaction, View

__version__ = "0.1.0"
__all__ = ["Session", "Transaction", "View", "__version__", "errors"]
