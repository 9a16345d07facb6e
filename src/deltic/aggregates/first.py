"""FIRST, or FIRST_VALUE: the least value that is not NULL. In Spark it is that of the first row, in an order that is nondeterministic."""

from __future__ import annotations

from deltic.aggregates.any_value import extreme_value

AGGREGATES = (extreme_value("first", "first_value", descending=False),)
