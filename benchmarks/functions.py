"""Which of Spark's functions Deltic has, and whether they are the same: `python -m benchmarks.functions [--quick] [NAME …]`.

A report and not a clock. Spark's own registry is the list. Each function is tried on Spark's own examples, on the terms of
`function_terms` over edge values, and, if Deltic has it and there are no terms, on columns of every type that it accepts; Spark 4.2
answers the same query. It is

  same     every answer is Spark's, and errors are on the same rows
  differs  as docs/sql.md says (the reason is given)
  wrong    otherwise: the exit code is 1
  any      one of the results that Spark may give, which depends on the order of rows
  refused  Deltic refuses all of it, with this error

At the end: the share of `same` among the functions that are deterministic and not aside (DataSketches, geometry, XML, Avro, Protobuf), and
what is refused, by reason. --quick: Spark's examples and one term of each function. Needs the extra `spark`.
"""

from __future__ import annotations

import itertools
import json
import math
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa

from benchmarks.function_comparison import APPROXIMATE, LAST_PLACE, Ask, Samples, Term, accepted, differences
from benchmarks.function_samples import sample_rows, table_of
from benchmarks.function_terms import TERMS
from benchmarks.harness import progress
from deltic.connectors.recognise import of_spark
from deltic.errors import DelticError
from deltic.expr import known_functions
from deltic.frontends.sql import bind_query
from deltic.plan.evaluate import evaluate
from deltic.types import frozen

MOMENT: Final = frozenset((
    *("curdate", "current_date", "current_time", "current_timestamp", "localtimestamp", "now", "rand", "random", "randn", "randstr"),
    *("uniform", "uuid", "shuffle", "current_catalog", "current_database", "current_path", "current_schema", "current_user"),
    *("session_user", "user", "version", "input_file_name", "input_file_block_start", "input_file_block_length"),
    *("monotonically_increasing_id", "spark_partition_id", "java_method", "reflect", "try_reflect", "python_worker_logs"),
    *("sql_keywords", "collations", "measure"),
))  # fmt: skip
"""Functions whose value depends on the moment or the place: the session, the machine, the version of Spark, its catalog."""
UNORDERED: Final = frozenset((
    *("any_value", "collect_list", "collect_set", "array_agg", "listagg", "string_agg", "mode", "max_by", "min_by"),
    *("first", "first_value", "last", "last_value", "histogram_numeric", "vector_sum", "vector_avg"),
))  # fmt: skip
"""Aggregates that depend on the order of rows in Spark, which its documentation calls nondeterministic; here on the values alone."""
EXACT: Final = frozenset(("kurtosis", "skewness"))
"""Aggregates that are rounded once here; in Spark their last digits are those of a sum in the order of rows."""
ASIDE: Final = frozenset(("sketch_funcs", "st_funcs", "xml_funcs", "avro_funcs", "protobuf_funcs"))
"""Kinds that are not counted: DataSketches, geometry, XML, Avro and Protobuf."""
SKETCHES: Final = ("approx_top_k_", "hll_", "kll_", "theta_", "tuple_")
"""What the names of DataSketches' functions begin with, its aggregates among them."""
DOCUMENTED: Final = {
    **dict.fromkeys(APPROXIMATE, "the last place of DOUBLE"),
    **dict.fromkeys(EXACT, "rounded once from exact sums"),
    **dict.fromkeys(
        ("approx_percentile", "percentile_approx", "approx_count_distinct", "approx_top_k"), "exact, where Spark's may be off by an error"
    ),
}
"""What differs as docs/sql.md says."""
WINDOWS: Final = ("row_number", "rank", "dense_rank", "percent_rank", "cume_dist", "ntile", "lag", "lead", "nth_value")
REASONS: Final = {
    **dict.fromkeys(WINDOWS, "a window function"),
    **dict.fromkeys(("grouping", "grouping_id"), "of CUBE, ROLLUP and GROUPING SETS"),
    **dict.fromkeys(("make_interval", "try_make_interval"), "an INTERVAL of months, days and time, which has no order and no equality"),
    **dict.fromkeys(("collate", "collation"), "COLLATE"),
    "sentences": "the rules of Java's BreakIterator, which no library has",
    "count_min_sketch": "a sketch",
}
"""Why functions are refused; of others their kind or their first error says it."""
COLUMNS: Final = ["b", "t", "i", "l", "f", "x", "p", "s", "u", "k", "d", "ts"]
DIGITS: Final = 1e-12
"""How far aggregates that are rounded once may be from Spark's, relatively."""
PROBED: Final = 10
"""Terms that are made up for a function without any."""


@dataclass(slots=True)
class Finding:
    """What is known of a function: how many queries agree, what differs, and what Deltic refuses."""

    name: str
    kind: str
    agreeing: int = 0
    different: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)

    @property
    def verdict(self) -> str:
        if self.different:
            return "wrong"
        if not self.agreeing:
            return "refused"
        return "any" if self.name in UNORDERED else "differs" if self.name in DOCUMENTED else "same"

    @property
    def aside(self) -> bool:
        """Whether it is not counted."""
        return self.kind in ASIDE or self.name.startswith(SKETCHES)

    @property
    def reason(self) -> str:
        """Why it is refused."""
        if self.aside:
            return self.kind if self.kind in ASIDE else "sketch_funcs"
        parts = {"variant": "VARIANT", "parse_json": "VARIANT"}
        words = [*self.refused, "no example"][0]
        known = (reason for part, reason in parts.items() if part in self.name)
        return REASONS.get(self.name) or next(known, words)


def registry(spark: Any) -> Iterator[tuple[str, str, list[str]]]:
    """Spark's functions: name, kind, and the queries of its examples."""
    state = spark._jsparkSession.sessionState()
    for functions, prefix in ((state.functionRegistry(), ""), (state.tableFunctionRegistry(), "table ")):
        names = functions.listFunction()
        for i in range(names.size()):
            info = functions.lookupFunction(names.apply(i)).get()
            name = names.apply(i).funcName()
            yield name, prefix + info.getGroup(), examples(name, info.getExamples())


def examples(name: str, text: str) -> list[str]:
    """The queries among Spark's examples of a function."""
    queries = re.findall(r"^\s*> (SELECT.*?);\s*$", text, re.MULTILINE | re.DOTALL)
    return [query.replace("_FUNC_", name) for query in queries]


def probes(name: str) -> list[str]:
    """Calls on columns of any types, those that Deltic accepts."""
    texts: list[str] = []
    for arity in (1, 2, 3):
        calls = (f"{name}({', '.join(columns)})" for columns in itertools.product(COLUMNS, repeat=arity))
        for call in itertools.islice(calls, 0, None, (1, 5, 61)[arity - 1]):
            if len(texts) >= PROBED * arity:
                break
            terms, _ = accepted(name, [call])
            texts += [term.sql for term in terms]
    return texts


def tried(finding: Finding, queries: Iterable[str], ask: Ask) -> None:
    """Runs whole queries on both; the oracle answers for Deltic."""
    for query in queries:
        try:
            plan = bind_query(query, "example", Samples())
            ours = [tuple(row) for row, weight in evaluate(plan, {}).items() for _ in range(weight)]
        except DelticError as error:
            finding.refused.append(error.message)
            continue
        try:
            answer = ask(query)
        except Exception as error:
            finding.different.append(f"{query}: Spark says {_first_line(error)}, ours {ours}")
            continue
        theirs = list(zip(*(map(frozen, column.to_pylist()) for column in answer.columns), strict=True))
        if finding.name in UNORDERED or _alike(ours, theirs, DIGITS if finding.name in EXACT else LAST_PLACE):
            finding.agreeing += 1
        else:
            finding.different.append(f"{query}: Spark {theirs}, ours {ours}")


def _alike(ours: Sequence[tuple[Any, ...]], theirs: Sequence[tuple[Any, ...]], tolerance: float) -> bool:
    def key(row: tuple[Any, ...]) -> str:
        return repr([f"{v:.12g}" if isinstance(v, float) else str(v) for v in row])

    pairs = zip(sorted(ours, key=key), sorted(theirs, key=key), strict=False)
    return len(ours) == len(theirs) and all(_same(a, b, tolerance) for a, b in pairs)


def _same(ours: Any, theirs: Any, tolerance: float) -> bool:
    if isinstance(ours, float) and isinstance(theirs, float):
        return ours == theirs or (math.isnan(ours) and math.isnan(theirs)) or math.isclose(ours, theirs, rel_tol=tolerance)
    if isinstance(ours, tuple) and isinstance(theirs, tuple):
        return len(ours) == len(theirs) and all(_same(a, b, tolerance) for a, b in zip(ours, theirs, strict=True))
    return type(ours) is type(theirs) and bool(ours == theirs)


def _first_line(error: Exception) -> str:
    return next(iter(str(error).strip().splitlines()), "")[:200]


def report(spark: Any, names: Sequence[str], quick: bool) -> list[Finding]:
    """A finding for each function, in the registry's order."""
    rows = sample_rows()
    table = table_of(rows).append_column("row", pa.array(range(len(rows)), pa.int32()))
    spark.createDataFrame(table).coalesce(1).cache().createOrReplaceTempView("samples")

    def ask(query: str) -> pa.Table:
        return of_spark(in_months(spark.sql(query)), "the answer")

    findings = []
    for name, kind, queries in registry(spark):
        if names and name not in names:
            continue
        finding = Finding(name, kind)
        tried(finding, queries, ask)
        texts = TERMS.get(name) or (probes(name) if name in known_functions() else [])
        terms, refused = accepted(name, texts[:1] if quick else texts)
        finding.refused += [error.message for _, error in refused]
        different = compared(terms, rows, ask)
        finding.different += different
        finding.agreeing += len(terms) - len({words.partition(": ")[0] for words in different})
        findings.append(finding)
        progress(f"{finding.verdict:8} {kind:20} {name}")
        for words in finding.different[:3]:
            progress(f"         {words[:400]}")
    return findings


def in_months(frame: Any) -> Any:
    """The frame with year-month INTERVALs as numbers of months, as Deltic has them: Spark's Arrow has none."""
    names = [f"`{i}`" for i in range(len(frame.schema))]
    types = [field.dataType.simpleString() for field in frame.schema]
    if not any(type.startswith("interval year") or type == "interval month" for type in types):
        return frame
    months = "CAST(CAST({} AS INTERVAL MONTH) AS INT)"
    chosen = [months.format(n) if t.startswith(("interval year", "interval month")) else n for n, t in zip(names, types, strict=True)]
    return frame.toDF(*(name.strip("`") for name in names)).selectExpr(*chosen)


def compared(terms: list[Term], rows: Sequence[tuple[Any, ...]], ask: Ask) -> list[str]:
    return [words for start in range(0, len(terms), 40) for _, words in differences(terms[start : start + 40], rows, ask)]


def summary(findings: Sequence[Finding]) -> dict[str, Any]:
    """Counts by kind, and of the deterministic ones that are not aside; the reasons of what is not the same."""
    kinds: dict[str, Counter[str]] = defaultdict(Counter)
    counted: Counter[str] = Counter()
    for finding in findings:
        verdict = "of the moment" if finding.name in MOMENT and finding.verdict == "refused" else finding.verdict
        kinds[finding.kind][verdict] += 1
        if verdict != "of the moment" and not finding.aside:
            counted[verdict] += 1
    refused: dict[str, list[str]] = defaultdict(list)
    for finding in findings:
        if finding.verdict == "refused":
            refused["of the moment" if finding.name in MOMENT else finding.reason].append(finding.name)
    considered = sum(counted[verdict] for verdict in ("same", "differs", "wrong", "refused"))
    return {
        "kinds": {kind: dict(counts) for kind, counts in sorted(kinds.items())},
        "deterministic": dict(counted),
        "differs": {f.name: DOCUMENTED[f.name] for f in findings if f.verdict == "differs"},
        "refused": {reason: sorted(names) for reason, names in sorted(refused.items())},
        "wrong": {f.name: f.different[:3] for f in findings if f.verdict == "wrong"},
        "of": considered,
        "same_percent": round(100 * counted["same"] / considered, 1) if considered else None,
    }


def main(arguments: Sequence[str]) -> int:
    from deltic.runtimes.spark.session import local_session  # noqa: PLC0415  needs the extra

    spark = local_session(1, name="functions", settings={"spark.sql.timeType.enabled": "true"})
    try:
        result = summary(report(spark, [a for a in arguments if not a.startswith("-")], "--quick" in arguments))
    finally:
        spark.stop()
    for reason, names in result["refused"].items():
        progress(f"refused: {reason}: {', '.join(names)}")
    progress(f"{result['deterministic'].get('same', 0)} of {result['of']} deterministic functions are the same: {result['same_percent']} %")
    print(json.dumps(result))
    return 1 if result["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
