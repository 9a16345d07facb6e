"""Every name and alias of an aggregate is a call in SQL, also those that are words of other syntax."""

from __future__ import annotations

import pytest

from deltic.aggregates import aggregate_function
from deltic.plan.nodes import Aggregate
from deltic.plan.walk import nodes
from program_plans import built_in
from sql_data import bound

ARGUMENTS = {
    **dict.fromkeys(("bool_and", "bool_or", "count_if"), "b"),
    **dict.fromkeys(("percentile", "approx_percentile"), "k, 0.5"),
    **dict.fromkeys(("bitmap_or_agg", "bitmap_and_agg"), "CAST('a' AS BINARY)"),
    "histogram_numeric": "k, 5",
    "count_min_sketch": "k, 0.1, 0.9, 7",
    "schema_of_variant_agg": "CAST(k AS VARIANT)",
    **dict.fromkeys(("vector_sum", "vector_avg"), "array(CAST(k AS FLOAT))"),
    **dict.fromkeys(("percentile_cont", "percentile_disc"), "0.5) WITHIN GROUP (ORDER BY k"),
}
NAMES = [(name, function.name, function.parameters[0]) for function in built_in() for name in (function.name, *function.aliases)]


@pytest.mark.parametrize(("name", "canonical", "width"), NAMES, ids=[name for name, _, _ in NAMES])
def test_a_name_is_a_call(name: str, canonical: str, width: int) -> None:
    arguments = ARGUMENTS.get(canonical, ", ".join(["k"] * (width or 1)))
    distinct = "DISTINCT " if aggregate_function(name).distinct and "WITHIN" not in arguments else ""
    plan = bound(f"SELECT {name.upper()}({distinct}{arguments}) FILTER (WHERE id > 1) AS r FROM t")
    (calls,) = (node.aggregates for node in nodes(plan) if isinstance(node, Aggregate))
    assert [call.function for _, call in calls] == [canonical]
