"""LAST, or LAST_VALUE: the greatest value that is not NULL. In Spark it is that of the last row, in an order that is nondeterministic."""

from __future__ import annotations

from deltic.aggregates.any_value import extreme_value

AGGREGATES = (extreme_value("last", "last_value", descending=True),)
