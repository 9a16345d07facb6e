"""What functions over ARRAYs, MAPs and STRUCTs are compared on: terms in SQL over the columns of `function_samples`, by function."""

# ruff: noqa: E501  data
from __future__ import annotations

from collections.abc import Mapping
from typing import Final


def each(template: str, arguments: str) -> list[str]:
    """The template with `{}` replaced by each of the arguments, which are separated by blanks."""
    return [template.replace("{}", argument) for argument in arguments.split()]


_ELEMENTS: Final = {
    "array_contains": ["array_contains(ai, i)", "array_contains(ai, 1)", "array_contains(ai, l)", "array_contains(ax, x)", "array_contains(ax, 0.0D)", "array_contains(aw, s)",
        "array_contains(aa, array(1))", "array_contains(ad, ts)", "array_contains(array(p), r)", "array_contains(ar, named_struct('n', 1, 'v', 'a'))", "array_contains(array(b), true)",
        "array_contains(array(1, 2), i)", "array_contains(ai, CAST(NULL AS INT))", "array_contains(ax, double('nan'))"],
    "array_position": ["array_position(ai, 3)", "array_position(ai, j)", "array_position(ax, double('nan'))", "array_position(aw, 'a')", "array_position(ai, NULL)", "array_position(ax, -0.0D)"],
    "array_remove": ["array_remove(ai, 3)", "array_remove(ai, 1L)", "array_remove(ax, 0.0D)", "array_remove(aw, a)", "array_remove(ai, NULL)", "array_remove(aa, array(1))"],
    "array_compact": each("array_compact({})", "ai ax aw aa ar"),
    "array_distinct": each("array_distinct({})", "ai ax aw ad aa ar array(-0.0D) array(f,f)"),
    "array_union": ["array_union(ai, aj)", "array_union(ax, ai)", "array_union(ax, ax)", "array_union(aw, array(s))", "array_union(aa, array(ai))", "array_union(ai, array())"],
    "array_intersect": ["array_intersect(ai, aj)", "array_intersect(ax, array(0.0D, x))", "array_intersect(aw, array('a', NULL))", "array_intersect(aa, array(ai))"],
    "array_except": ["array_except(ai, aj)", "array_except(ax, array(1D))", "array_except(aw, array('a', NULL))", "array_except(aa, array(aj))", "array_except(ar, ar)"],
    "arrays_overlap": ["arrays_overlap(ai, aj)", "arrays_overlap(ax, array(x, 0.0D))", "arrays_overlap(aw, array(s))", "arrays_overlap(ai, array())", "arrays_overlap(aa, array(ai))"],
    "array_min": each("array_min({})", "ai ax aw ad aa ar"),
    "array_max": each("array_max({})", "ai ax aw ad aa ar"),
    "array_size": each("array_size({})", "ai aa NULL"),
    "cardinality": each("cardinality({})", "ai mp NULL"),
    "sort_array": [*each("sort_array({})", "ai ax aw ad aa ar"), *each("sort_array({}, false)", "ai ax aw aa ar"), "sort_array(ai, 1 > 2)", "sort_array(ai, NULL)"],
    "array_join": ["array_join(aw, ',')", "array_join(aw, ',', '-')", "array_join(ai, s)", "array_join(ax, ' ', 'none')", "array_join(aw, NULL)", "array_join(aw, ',', a)", "array_join(ad, '')"],
    "get": ["get(ai, 0)", "get(aw, 1)", "get(ax, i)", "get(aa, 0)", "get(ai, -1)", "get(ar, 1).v", "get(ai, l % 3)"],
    "reverse": ["reverse(s)", *each("reverse({})", "ai ax aw aa ar i")],
    "element_at": ["element_at(mp, s)", "element_at(mi, t)", "element_at(map(1, s), l)", "element_at(ar, 1)", "element_at(mp, NULL)", "ai[0]", "mp['a']", "mi[1]", "ar.v", "ar[0].n"],
    "map_keys": ["map_keys(mp)", "map_keys(mi)"],
    "map_values": ["map_values(mp)", "map_values(mi)"],
}  # fmt: skip

_MAKING: Final = {
    "array_append": ["array_append(ai, i)", "array_append(ai, l)", "array_append(ax, NULL)", "array_append(aw, s)", "array_append(aa, ai)", "array_append(array(), i)", "array_append(ai, x)"],
    "array_prepend": ["array_prepend(ai, i)", "array_prepend(ai, x)", "array_prepend(aw, s)", "array_prepend(aa, ai)"],
    "array_insert": [*(f"array_insert(ai, {n}, 7)" for n in (1, 2, -1, -2, 5, -5)), "array_insert(ai, t, 9)", "array_insert(ai, 1, 1.5D)", "array_insert(aw, 2, s)", "array_insert(ai, 2, NULL)",
        "array_insert(ai, CAST(NULL AS INT), 1)"],
    "array_repeat": ["array_repeat(i, 3)", "array_repeat(s, 0)", "array_repeat(ai, 2)", "array_repeat(x, -1)", "array_repeat(s, CAST(NULL AS INT))", "array_repeat(i, length(a))"],
    "flatten": ["flatten(aa)", "flatten(array(ai, aj))", "flatten(array(array(aw)))", "flatten(array(aa))"],
    "slice": [*(f"slice(ai, {start}, {length})" for start in (1, 2, -1, -3, 9) for length in (0, 1, 9)), "slice(aw, t, 2)", "slice(ai, 1, t)", "slice(aa, l, 1)", "slice(ai, NULL, 1)", "slice(ai, 1, 2147483647)"],
    "concat": ["concat(s, a)", "concat(ai, aj)", "concat(ai, array(l), aj)", "ai || aj", "concat(ai, array())", "concat(aw, array(s))", "concat(aa, array(ai))", "concat(ai)"],
    "concat_ws": ["concat_ws(',', aw)", "concat_ws('-', s, aw, a)", "concat_ws(s, ai, aw)", "concat_ws('', ax)"],
    "arrays_zip": ["arrays_zip(ai, aw)", "arrays_zip(ai)", "arrays_zip(ai, array(1))", "arrays_zip(ax, ar.n)", "arrays_zip(ar, aa, ad)"],
    "sequence": ["sequence(1, 5)", "sequence(t, 3Y)", "sequence(length(s), 0, -1)", "sequence(0L, length(a), 2L)", "sequence(i, i)", "sequence(i, j, 100000000)", "sequence(d, d)", "sequence(d, e, INTERVAL 100 YEARS)",
        "sequence(d, d + INTERVAL 3 DAYS)", "sequence(d, date_sub(d, 3))", "sequence(DATE '2020-01-31', DATE '2020-06-01', INTERVAL 1 MONTH)", "sequence(ts, ts + INTERVAL 1 DAY, INTERVAL 6 HOURS)",
        "sequence(ts, ts)", "sequence(ts, ts - INTERVAL 3 DAYS)", "sequence(DATE '2020-05-31', DATE '2020-01-01', INTERVAL -1 MONTH)", "sequence(TIMESTAMP '2020-01-31 10:00:00', TIMESTAMP '2020-05-01 00:00:00', INTERVAL 1 MONTH)",
        "sequence(DATE '2020-01-01', TIMESTAMP '2020-01-03 12:00:00')", "sequence('1', 3)", "sequence(1, NULL)", "sequence(d, e, INTERVAL 10000 DAYS)", "sequence(1, 0, t)", "sequence(DATE '2019-02-28', DATE '2021-05-01', INTERVAL 1 YEAR)"],
    "map": ["map(x, i)", "map(f, 1, 5, 2)"],
}  # fmt: skip

_MAPS: Final = {
    "map_concat": ["map_concat(mp, map('z', 1))", "map_concat(mp, map(s, i))", "map_concat(mi, map(99L, 1))", "map_concat(mp)", "map_concat()", "map_concat(map(x, 1), map(5D, 2))", "map_concat(map('x', 1), map('y', NULL), mp)"],
    "map_contains_key": ["map_contains_key(mp, 'a')", "map_contains_key(mp, s)", "map_contains_key(mi, 1L)", "map_contains_key(mi, i)", "map_contains_key(map(x, 1), 0.0D)"],
    "map_entries": ["map_entries(mp)", "map_entries(mi)", "map_entries(mp).value"],
    "map_from_arrays": ["map_from_arrays(array(1, 2), array(s, a))", "map_from_arrays(ai, ai)", "map_from_arrays(array_distinct(aw), sequence(1, size(array_distinct(aw))))", "map_from_arrays(array(s, a), array(i, j))",
        "map_from_arrays(map_keys(mp), map_values(mp))"],
    "map_from_entries": ["map_from_entries(ar)", "map_from_entries(map_entries(mp))", "map_from_entries(array(struct(x, y)))", "map_from_entries(array(struct(i, s), struct(i, s)))", "map_from_entries(arrays_zip(ai, aw))"],
    "str_to_map": ["str_to_map(s)", "str_to_map(url, '&', '=')", "str_to_map('a:1,b:2,c')", "str_to_map('a1b22c', '\\\\d')", "str_to_map(k, '-', ':')", "str_to_map(s, a)", "str_to_map(s, NULL)", "str_to_map('', '', '')", "str_to_map(s, 'b')"],
}  # fmt: skip

_CUTS: Final = {
    "split": [*(f"split(s, '{p}')" for p in ("b", "", ",", "a|c", "\\\\d+", "x*", "[ab]", "(a)(b)", "^", "$", ".", "𝒳")), *(f"split(s, 'b', {n})" for n in (-1, 0, 1, 2, 3, "t")), "split(s, a)", "split(s, '', 2)",
        "split(i, '1')", "split(s, NULL)", "split(k, '[-:T ]')", "split(s, '')[0]"],
    "regexp_extract_all": ["regexp_extract_all(s, '([a-z])(.)')", "regexp_extract_all(s, '([a-z])(.)', 0)", "regexp_extract_all(s, '(a)|(b)', 2)", "regexp_extract_all(k, '\\\\d+', 0)", "regexp_extract_all(s, 'b', 1)",
        "regexp_extract_all(s, '(b)', -1)", "regexp_extract_all(s, '(a*)', 0)", "regexp_extract_all(s, '(b)', t)", "regexp_extract_all(s, NULL)"],
}  # fmt: skip

_LAMBDAS: Final = {
    "transform": ["transform(ai, x -> x + 1L)", "transform(ai, x -> x + 1)", "transform(ai, (x, k) -> x * k)", "transform(aw, x -> concat(x, s))", "transform(ai, x -> x + i)", "transform(aa, x -> transform(x, y -> y - size(x)))",
        "transform(aa, x -> transform(x, x -> x * 2L))", "transform(ar, r -> r.n)", "transform(ar, r -> r.v || s)", "transform(ax, x -> 1 / x)", "transform(ai, x -> j / x)", "transform(ai, 5)", "transform(ai, x -> array(x, i))",
        "transform(ai, x -> CASE WHEN x > 1 THEN 10 / (x - 2) ELSE i END)", "transform(aw, x -> CAST(x AS INT))", "transform(array(i, j), x -> aggregate(ai, 0L, (a, y) -> a + y * x))", "transform(ai, x -> x IS NULL)",
        "transform(map_keys(mp), k -> mp[k])", "transform(ai, I -> i)", "transform(array(1, 2), x -> x + 1)", "transform(ad, x -> datediff(x, d))", "transform(ai, x -> coalesce(x, 100 / j))", "transform(aa, x -> (x[0]))"],
    "filter": ["filter(ai, x -> x > 1)", "filter(ai, (x, k) -> k % 2 = 0)", "filter(aw, x -> x = s)", "filter(ai, x -> NULL)", "filter(ar, r -> r.n IS NOT NULL)", "filter(ai, x -> 1 / x > 0)", "filter(aa, x -> exists(x, y -> y = 1))",
        "filter(ai, b)", "size(filter(ax, x -> x <= y))"],
    "exists": ["exists(ai, x -> x > 1)", "exists(ai, x -> x = i)", "exists(ai, x -> 1 / x > 0.5)", "exists(ax, x -> x = double('nan'))", "exists(ai, x -> NULL)", "exists(aw, x -> x LIKE '%a%')", "exists(ai, x -> x = 1 OR 1 / (x - 3) > 0)"],
    "forall": ["forall(ai, x -> x > 0)", "forall(ai, x -> x >= i)", "forall(ai, x -> 1 / x < 0.5)", "forall(aa, x -> forall(x, y -> y > size(x)))"],
    "aggregate": ["aggregate(ai, 0L, (a, x) -> a + x)", "aggregate(ai, 0L, (a, x) -> a + coalesce(x, 0), a -> a * 2)", "aggregate(aw, '', (a, x) -> concat(a, coalesce(x, '-')))", "aggregate(ai, i, (a, x) -> greatest(a, x))",
        "aggregate(ax, named_struct('s', 0.0D, 'n', 0), (a, x) -> named_struct('s', a.s + x, 'n', a.n + 1), a -> a.s / a.n)", "aggregate(ai, CAST(NULL AS INT), (a, x) -> x)", "aggregate(ai, 1, (a, x) -> a * x)",
        "aggregate(ai, array(0, NULL), (a, x) -> array_append(a, x))", "aggregate(ai, 10 / i, (a, x) -> a + x)", "aggregate(aa, 0, (a, x) -> a + aggregate(x, 0, (c, y) -> c + y))", "aggregate(ai, 100, (a, x) -> CAST(a DIV x AS INT))"],
    "reduce": ["reduce(ai, 0L, (a, x) -> a + x)"],
    "zip_with": ["zip_with(ai, aj, (x, y) -> x + 0L + y)", "zip_with(ai, aw, (x, y) -> concat(x, y))", "zip_with(ai, aj, (x, y) -> coalesce(x, y))", "zip_with(ai, ax, (x, y) -> x / y)", "zip_with(aa, ai, (x, y) -> array_contains(x, y))",
        "zip_with(ai, aj, (x, y) -> struct(x, y))", "zip_with(ai, aj, (x, y) -> i)"],
    "array_sort": [*each("array_sort({})", "ai ax aw ad aa ar"), "array_sort(ai, (l, r) -> CASE WHEN l IS NULL THEN -1 WHEN r IS NULL THEN 1 WHEN l < r THEN 1 WHEN l > r THEN -1 ELSE 0 END)", "array_sort(aw, (l, r) -> coalesce(length(l), 0) - coalesce(length(r), 0))",
        "array_sort(ai, (l, r) -> 0)", "array_sort(ar, (l, r) -> coalesce(l.n, 0) - coalesce(r.n, 0))", "array_sort(filter(ai, x -> x < 100), (l, r) -> (r - l) * sign(i + 1)::INT)", "array_sort(ai, (l, r) -> r - l)"],
    "map_filter": ["map_filter(mp, (k, v) -> v > 0)", "map_filter(mp, (k, v) -> k = s)", "map_filter(mi, (k, v) -> k / v > 1)"],
    "transform_keys": ["transform_keys(mp, (k, v) -> upper(k))", "transform_keys(mp, (k, v) -> v)", "transform_keys(mi, (k, v) -> v)", "transform_keys(mi, (k, v) -> 1)", "transform_keys(mi, (k, v) -> k + i)", "transform_keys(mp, (k, v) -> length(k))"],
    "transform_values": ["transform_values(mp, (k, v) -> concat(k, v))", "transform_values(mi, (k, v) -> v * i)", "transform_values(mi, (k, v) -> 1 / k)", "transform_values(mp, (k, v) -> array(v))"],
    "map_zip_with": ["map_zip_with(mp, map('a', 5L), (k, a, c) -> coalesce(a, 0) + coalesce(c, 0))", "map_zip_with(mp, mp, (k, a, c) -> concat(k, a, c))", "map_zip_with(mi, map(1L, 'x', 77L, 'y'), (k, a, c) -> coalesce(c, k))",
        "map_zip_with(map(x, 1), map(0.0D, 2), (k, a, c) -> a + c)", "map_zip_with(mp, map(s, i), (k, a, c) -> a / c)"],
}  # fmt: skip

_AX: Final = "CAST(ax AS ARRAY<FLOAT>)"
_LONG: Final = "transform(sequence(1, 21), k -> CAST(k / 7 + coalesce(t, 0) AS FLOAT))"
_OTHER: Final = "transform(sequence(1, 21), k -> CAST(1 / k AS FLOAT))"
_VECTORS: Final = {
    **{name: [f"{name}({_AX}, {_AX})", f"{name}({_LONG}, {_OTHER})", f"{name}({_LONG}, {_LONG})", f"{name}(array(f), array(1.5F))", f"{name}(array(f, f), array(1.5F))"]
        for name in ("vector_inner_product", "vector_l2_distance", "vector_cosine_similarity")},
    **{name: [f"{name}({_AX})", f"{name}({_LONG})", f"{name}({_LONG}, 1.0F)", f"{name}({_LONG}, float('inf'))", f"{name}(array(f, 1F), 2.0F)", f"{name}(array(f), 3.0F)"] for name in ("vector_norm", "vector_normalize")},
}  # fmt: skip

COLLECTIONS: Final[Mapping[str, list[str]]] = {**_ELEMENTS, **_MAKING, **_MAPS, **_CUTS, **_LAMBDAS, **_VECTORS}
