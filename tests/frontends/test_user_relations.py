"""Functions of users over relations: table functions in SQL and in Python, and aggregates in Python."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import deltic
from deltic.errors import CatalogError, CircuitError, DelticError, EvaluationError, ImpureFunction, StateError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TABLE = "CREATE TABLE t (id INT PRIMARY KEY, k INT, s STRING, x BIGINT);"
IN_SQL = """
    CREATE FUNCTION twice(v INT) RETURN v * 2;
    CREATE FUNCTION above(least INT, label STRING DEFAULT 'none') RETURNS TABLE (id BIGINT, tag STRING, n INT)
        RETURN SELECT id, concat(label, s), above.least FROM t WHERE x >= least;
    CREATE FUNCTION by_k(m INT) RETURNS TABLE
        RETURN WITH u AS (SELECT k, count(*) AS n FROM above(twice(m)) AS a JOIN t ON a.id = t.id GROUP BY k) SELECT k, n, m FROM u;
    CREATE FUNCTION sum_of(wanted INT) RETURNS TABLE (total BIGINT, n INT) RETURN SELECT sum(x), count(*) FROM t WHERE k = wanted;
    CREATE FUNCTION texts(least INT) RETURNS TABLE (word STRING)
        RETURN SELECT DISTINCT s FROM t WHERE x >= least UNION ALL SELECT concat(least) WHERE EXISTS (SELECT 1 FROM t WHERE x = least);
"""
VIEWS = """
    CREATE MATERIALIZED VIEW pieces AS SELECT t.id, w.word, w.n FROM t, LATERAL words(s, 2) AS w WHERE w.n < 5;
    CREATE MATERIALIZED VIEW shouted AS SELECT id, word FROM t LATERAL VIEW words(upper(s)) AS word, length;
    CREATE MATERIALIZED VIEW spreads AS
        SELECT k, spread(x) AS s, spread(x) FILTER (WHERE id > 3) AS f, count(*) AS n FROM t GROUP BY k HAVING coalesce(spread(x), 0) < 90;
    CREATE MATERIALIZED VIEW means AS
        SELECT k, mean_of(x) AS m, mean_of(x) FILTER (WHERE id > 3) AS f, count(*) AS n, max(x) AS top FROM t GROUP BY k;
    CREATE MATERIALIZED VIEW mean_of_all AS SELECT mean_of(x) AS m FROM t;
    CREATE MATERIALIZED VIEW spread_of_all AS SELECT spread(x) AS s FROM t;
    CREATE MATERIALIZED VIEW labelled AS SELECT id, tag, n FROM above(30, 'L');
    CREATE MATERIALIZED VIEW counted AS SELECT k, n, m FROM by_k(10);
    CREATE MATERIALIZED VIEW each_above AS SELECT t.id, a.id AS other, tag FROM t, LATERAL above(k * 30, s) AS a WHERE n > 0;
    CREATE MATERIALIZED VIEW next_sums AS SELECT id, y.* FROM t, LATERAL sum_of(k + 1) AS y (total, n);
    CREATE MATERIALIZED VIEW each_text AS SELECT id, word FROM t, LATERAL texts(CAST(x AS INT));
"""
Row = tuple[int, int, str | None, int | None]


class Words:
    def eval(self, text: str | None, least: int = 0) -> Iterator[tuple[str, int]]:
        for word in (text or "").split():
            if len(word) >= least:
                yield word, len(word)


class WithTotal:
    def eval(self, n: int) -> Iterator[tuple[int, str]]:
        self.last = n
        yield n, "row"

    def terminate(self) -> Iterator[tuple[int, str]]:
        yield self.last * 100, "end"


class Mean:
    """An aggregate that takes rows back."""

    state = "n INT, total BIGINT"

    def __init__(self) -> None:
        self.n, self.total = 0, 0

    def step(self, x: int | None) -> None:
        self.n, self.total = (self.n, self.total) if x is None else (self.n + 1, self.total + x)

    def retract(self, x: int | None) -> None:
        self.n, self.total = (self.n, self.total) if x is None else (self.n - 1, self.total - x)

    def finish(self) -> float | None:
        return self.total / self.n if self.n else None


def spread(x: pa.Array) -> int | None:
    ends = pc.min_max(x).as_py()
    return None if ends["max"] is None else int(ends["max"] - ends["min"])


def define(session: deltic.Session) -> deltic.Session:
    session.register("words", Words, returns="word STRING, n INT")
    session.register("spread", spread, returns=int, aggregate=True)
    session.register("mean_of", Mean, returns=float)
    session.sql(TABLE + IN_SQL + VIEWS)
    return session


def spread_of(values: list[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return max(known) - min(known) if known else None


def mean_of(rows: list[Row]) -> float | None:
    known = [row[3] for row in rows if row[3] is not None]
    return sum(known) / len(known) if known else None


def sum_of(values: list[int | None]) -> tuple[int | None, int]:
    known = [value for value in values if value is not None]
    return sum(known) if known else None, len(values)


def texts(least: int, rows: dict[int, Row]) -> list[str | None]:
    found = {s for _, _, s, x in rows.values() if x is not None and x >= least}
    return [*found, str(least)]


def expected(rows: dict[int, Row]) -> dict[str, Counter[tuple[Any, ...]]]:
    words = [(id, word) for id, _, s, _ in rows.values() for word in (s or "").split()]
    groups = {k: [row for row in rows.values() if row[1] == k] for k in {row[1] for row in rows.values()}}
    spreads = [
        (k, spread_of([r[3] for r in group]), spread_of([r[3] for r in group if r[0] > 3]), len(group)) for k, group in groups.items()
    ]
    above = {least: [row for row in rows.values() if row[3] is not None and row[3] >= least] for least in (20, 30)}
    return {
        "pieces": Counter((id, word, len(word)) for id, word in words if 2 <= len(word) < 5),
        "shouted": Counter((id, word.upper()) for id, word in words),
        "spreads": Counter(row for row in spreads if (row[1] or 0) < 90),
        "means": Counter(
            (
                k,
                mean_of(group),
                mean_of([r for r in group if r[0] > 3]),
                len(group),
                max((r[3] for r in group if r[3] is not None), default=None),
            )
            for k, group in groups.items()
        ),
        "mean_of_all": Counter([(mean_of(list(rows.values())),)]),
        "spread_of_all": Counter([(spread_of([row[3] for row in rows.values()]),)]),
        "labelled": Counter((id, None if s is None else f"L{s}", 30) for id, _, s, _ in above[30]),
        "each_above": Counter(
            (id, other, None if s is None or tag is None else tag + s)
            for id, k, tag, _ in rows.values()
            for other, _, s, x in rows.values()
            if k and x is not None and x >= 30 * k
        ),
        "next_sums": Counter((id, *sum_of([row[3] for row in rows.values() if row[1] == k + 1])) for id, k, _, _ in rows.values()),
        "each_text": Counter((id, word) for id, _, _, x in rows.values() if x is not None for word in texts(x, rows)),
        "counted": Counter((k, n, 10) for k, n in Counter(row[1] for row in above[20]).items()),
    }


def run(open_session: Callable[[], deltic.Session], seed: int, ticks: int, restart: bool) -> None:
    chance, rows = random.Random(seed), dict[int, Row]()
    session = open_session()
    for _ in range(ticks):
        changed = [
            (id, chance.randrange(3), chance.choice(("a bb ccc", "dddddd e", "", None, "bb bb")), chance.choice((None, 5, 30, 95)))
            for id in chance.sample(range(12), 3)
        ]
        dropped = [id for id in rows if chance.random() < 0.3 and id not in {row[0] for row in changed}]
        with session.transaction() as tx:
            tx.upsert("t", [dict(zip(("id", "k", "s", "x"), row, strict=True)) for row in changed])
            tx.delete("t", dropped)
        rows = {id: row for id, row in rows.items() if id not in dropped} | {row[0]: row for row in changed}
        if restart:
            session.close()
            session = open_session()
        for view, wanted in expected(rows).items():
            assert Counter(tuple(row.values()) for row in session.view(view).rows()) == wanted, view
    session.close()


@pytest.mark.parametrize("shards", [1, 3])
def test_under_changes(shards: int) -> None:
    run(lambda: define(deltic.Session(shards=shards)), 1, 8, restart=False)


def test_after_restarts(tmp_path: Path) -> None:
    run(lambda: define(deltic.Session(state=tmp_path / "state")), 2, 4, restart=True)


@pytest.mark.spark
@pytest.mark.usefixtures("by_value")
def test_on_spark(spark: SparkSession, tmp_path: Path) -> None:
    run(lambda: define(deltic.Session(spark=spark, state=tmp_path / "state", shards=2)), 3, 2, restart=False)


@pytest.mark.filterwarnings("ignore:In Python 3.6")
def test_objects_of_pyspark_are_taken_as_they_are() -> None:
    functions = pytest.importorskip("pyspark.sql.functions")
    types = pytest.importorskip("pyspark.sql.types")
    returned = types.StructType([types.StructField("word", types.StringType()), types.StructField("n", types.IntegerType())])

    def mean_product(a: Any, b: Any) -> float:
        return float((a * b).mean())

    def longest(text: pa.Array) -> Any:
        return pc.max(pc.utf8_length(text))

    mean_product.__annotations__ = {"a": "pd.Series", "b": "pd.Series", "return": "float"}
    products = functions.pandas_udf(mean_product, types.DoubleType(), functions.PandasUDFType.GROUPED_AGG)
    with deltic.Session() as session:
        session.sql(TABLE)
        session.register("words", functions.udtf(Words, returnType=returned))
        session.register("more_words", functions.udtf(Words, returnType="word string, n: int"))
        session.register("products", products)
        session.register("longest", longest, int, aggregate=True)
        session.sql("""
            CREATE MATERIALIZED VIEW v AS SELECT products(x, id) AS p, longest(s) AS l FROM t;
            CREATE MATERIALIZED VIEW w AS SELECT * FROM words('a bb', 2) UNION ALL SELECT * FROM more_words('ccc');
        """)
        with session.transaction() as tx:
            tx.insert("t", [{"id": i, "k": 0, "s": "ab" * i, "x": 2 * i} for i in range(1, 4)])
        assert session.view("v").rows() == [{"p": 28 / 3, "l": 6}]
        assert sorted(row["word"] for row in session.view("w").rows()) == ["bb", "ccc"]


def test_terminate_ends_one_call_and_is_refused_for_many() -> None:
    with deltic.Session() as session:
        session.sql(TABLE)
        session.register("total", WithTotal, returns={"n": int, "what": str})
        session.sql("CREATE MATERIALIZED VIEW v AS SELECT * FROM total(7)")
        assert [tuple(row.values()) for row in session.view("v").rows()] == [(7, "row"), (700, "end")]
        with pytest.raises(DelticError, match=r"total has terminate\(\), which LATERAL would call once for many rows"):
            session.sql("CREATE MATERIALIZED VIEW w AS SELECT * FROM t, LATERAL total(id)")


def test_a_replaced_function_changes_what_its_views_read() -> None:
    with deltic.Session() as session:
        session.sql(f"""
            {TABLE} CREATE FUNCTION one() RETURNS INT RETURN 1;
            CREATE FUNCTION few() RETURNS TABLE (a INT) RETURN SELECT id + one() FROM t;
            CREATE MATERIALIZED VIEW first AS SELECT a FROM few();
            CREATE VIEW second AS SELECT k AS a FROM t;
            INSERT INTO t VALUES (1, 10, 's', 100);
        """)
        assert session.view("first").rows() == [{"a": 2}]
        session.sql("CREATE OR REPLACE FUNCTION few() RETURNS TABLE (a INT) RETURN SELECT a FROM second")
        assert session.view("first").rows() == [{"a": 10}]
        session.sql("DROP FUNCTION one; CREATE OR REPLACE VIEW second AS SELECT k + 5 AS a FROM t")
        assert session.view("first").rows() == [{"a": 15}]
        with pytest.raises(CatalogError, match="view second is read by view first"):
            session.sql("DROP VIEW second")
        with pytest.raises(CatalogError, match="view first calls few and would read itself"):
            session.sql("CREATE OR REPLACE FUNCTION few() RETURNS TABLE (a INT) RETURN SELECT a FROM first")


def test_a_recursive_view_may_call_a_function_that_then_reads_another_view() -> None:
    with deltic.Session() as session:
        session.sql("""
            CREATE TABLE edges (a INT, b INT);
            CREATE FUNCTION step() RETURNS TABLE (a INT, b INT) RETURN SELECT a, b FROM edges;
            DECLARE RECURSIVE VIEW paths (a INT, b INT);
            CREATE MATERIALIZED VIEW paths AS SELECT a, b FROM step() UNION SELECT p.a, s.b FROM paths p JOIN step() s ON p.b = s.a;
            CREATE VIEW back AS SELECT b AS a, a AS b FROM edges;
            INSERT INTO edges VALUES (1, 2), (2, 3);
        """)
        session.sql("CREATE OR REPLACE FUNCTION step() RETURNS TABLE (a INT, b INT) RETURN SELECT a, b FROM back")
        assert sorted(tuple(row.values()) for row in session.view("paths").rows()) == [(2, 1), (3, 1), (3, 2)]
        with pytest.raises(CatalogError, match="view back is read by view paths"):
            session.sql("DROP VIEW back")


def test_a_function_that_two_views_call_reaches_both_in_the_order_of_their_reading() -> None:
    with deltic.Session() as session:
        session.sql(f"""
            {TABLE} CREATE FUNCTION plus(x INT) RETURNS INT RETURN x + 1;
            CREATE FUNCTION few() RETURNS TABLE (a INT) RETURN SELECT plus(id) FROM t;
            CREATE MATERIALIZED VIEW first AS SELECT a FROM few();
            CREATE VIEW second AS SELECT plus(k) AS a FROM t;
            INSERT INTO t VALUES (1, 10, 's', 100);
        """)
        session.sql("""
            CREATE OR REPLACE FUNCTION few() RETURNS TABLE (a INT) RETURN SELECT plus(a) FROM second;
            CREATE OR REPLACE FUNCTION plus(x INT) RETURNS INT RETURN x * 3;
        """)
        assert session.view("first").rows() == [{"a": 90}]


def test_a_changed_function_is_refused_by_its_state(tmp_path: Path) -> None:
    script = f"{TABLE} CREATE MATERIALIZED VIEW v AS SELECT k, f(x) AS y FROM t GROUP BY k"
    with deltic.Session(state=tmp_path / "state") as session:
        session.register("f", spread, int, aggregate=True)
        session.sql(script)
    with deltic.Session(state=tmp_path / "state") as session:
        session.register("f", len, int, aggregate=True)
        with pytest.raises(StateError, match="spread"):
            session.sql(script)


@pytest.mark.usefixtures("repeated_calls")
def test_impure_and_failing_functions() -> None:
    calls: list[int] = []

    def counting(x: pa.Array) -> int:
        calls.append(1)
        return len(calls)

    class Failing:
        def eval(self, n: int) -> Iterator[tuple[int]]:
            yield (1 // n,)

    with deltic.Session() as session:
        session.sql(TABLE)
        session.register("counting", counting, int, aggregate=True)
        session.register("failing", Failing, returns="n INT")
        session.sql("CREATE MATERIALIZED VIEW v AS SELECT k, counting(x) AS n FROM t GROUP BY k")
        with pytest.raises(ImpureFunction), session.transaction() as tx:
            tx.insert("t", [{"id": 1, "k": 1, "s": "", "x": 1}])
        with pytest.raises(EvaluationError, match="raised ZeroDivisionError"):
            session.sql("CREATE MATERIALIZED VIEW w AS SELECT * FROM failing(0)")


ERRORS = [
    ("CREATE FUNCTION f(id INT) RETURNS TABLE RETURN SELECT id FROM t", "the parameter 'id' has the name of a column in the query"),
    ("CREATE FUNCTION f(a INT) RETURNS TABLE (y INT, z INT) RETURN SELECT x FROM t", "the column names do not fit the columns"),
    ("CREATE FUNCTION f(a INT) RETURNS TABLE RETURN SELECT nothing FROM t", "there is no column 'nothing'"),
    ("CREATE OR REPLACE FUNCTION above(a INT) RETURNS TABLE RETURN SELECT * FROM by_k(a)", "would call itself"),
    ("CREATE VIEW v AS SELECT * FROM above()", "above takes 1 to 2 arguments, found 0"),
    ("CREATE VIEW v AS SELECT * FROM t, above(t.id)", "an argument of above is not constant"),
    ("CREATE VIEW v AS SELECT * FROM t, LATERAL above(t.nothing)", "there is no column 't.nothing'"),
    ("CREATE VIEW v AS SELECT * FROM t, LATERAL above(t.id) AS a (b)", "the column names do not fit the columns"),
    ("CREATE VIEW v AS SELECT * FROM t, LATERAL by_k(t.id)", "a parameter in a subquery of FROM, .* is not supported in by_k"),
    (
        "CREATE FUNCTION top(a INT) RETURNS TABLE RETURN SELECT id FROM t WHERE x > a ORDER BY id LIMIT 1;"
        "CREATE VIEW v AS SELECT * FROM t, LATERAL top(t.id)",
        "LIMIT is not supported in top, which is called with columns",
    ),
    ("CREATE VIEW v AS SELECT above(1) FROM t", r"above\(\) is a table function, which is not allowed here"),
    ("CREATE VIEW v AS SELECT words(s) FROM t", r"words\(\) is a table function, which is not allowed here"),
    ("CREATE VIEW v AS SELECT * FROM spread(1)", r"spread\(\) is not a table function"),
    ("CREATE VIEW v AS SELECT spread(x, 1) FROM t", "spread takes 1 argument, found 2"),
    ("CREATE VIEW v AS SELECT id FROM t WHERE spread(x) > 1", "an aggregate is not allowed in WHERE"),
    ("CREATE VIEW v AS SELECT * FROM wordz('a')", "there is no function wordz"),
    ("DROP TABLE t", "table t is read by view"),
    ("DROP FUNCTION twice", "is called by"),
]


def test_errors() -> None:
    with define(deltic.Session()) as session:
        for script, message in ERRORS:
            with pytest.raises(DelticError, match=message):
                session.sql(script)


@pytest.mark.parametrize("returns", [None, "word", "word NOTHING", 7])
def test_return_types_of_table_functions(returns: Any) -> None:
    with deltic.Session() as session, pytest.raises((CircuitError, CatalogError)):
        session.register("words", Words, returns=returns)


class Latest:
    """The text of the greatest number, and how many rows there are: an aggregate by rows."""

    def __init__(self) -> None:
        self.rows, self.best = 0, (-1, "")

    def step(self, n: int | None, text: str | None) -> None:
        self.rows += 1
        self.best = max(self.best, (-1 if n is None else n, text or ""))

    def finish(self) -> str:
        return f"{self.best[1]}/{self.rows}"


def test_a_class_with_step_and_finish_is_an_aggregate() -> None:
    with deltic.Session() as session:
        session.register("latest", Latest, str)
        session.sql("CREATE TABLE t (id INT PRIMARY KEY, k INT, n INT, s STRING)")
        session.sql("CREATE MATERIALIZED VIEW v AS SELECT k, latest(n, s) AS s FROM t GROUP BY k")
        session.sql("CREATE MATERIALIZED VIEW w AS SELECT latest(n, s) FILTER (WHERE k > 1) AS s FROM t")
        with session.transaction() as tx:
            tx.insert("t", [dict(id=i, k=i % 2, n=None if i == 4 else i, s=f"s{i}") for i in range(5)])
        assert {tuple(row.values()) for row in session.view("v").rows()} == {(0, "s2/3"), (1, "s3/2")}
        with session.transaction() as tx:
            tx.delete("t", [3, 0])
        assert {tuple(row.values()) for row in session.view("v").rows()} == {(0, "s2/2"), (1, "s1/1")}
        assert session.view("w").rows() == [{"s": None}]


CALLS: list[tuple[str, int]] = []


class Recorded:
    """Records its calls, which an aggregate of a program must not do."""

    state = "total BIGINT, last STRUCT<n: INT, s: STRING>"

    def __init__(self) -> None:
        self.total, self.last = 0, (0, "")

    def step(self, n: int) -> None:
        CALLS.append(("step", n))
        self.total, self.last = self.total + n, (n, "added")

    def retract(self, n: int) -> None:
        CALLS.append(("retract", n))
        self.total, self.last = self.total - n, (n, "removed")

    def finish(self) -> str:
        return f"{self.total} {self.last[1]} {self.last[0]}"


def test_an_aggregate_that_takes_rows_back_is_called_for_the_change_alone(tmp_path: Path) -> None:
    def open_session() -> deltic.Session:
        session = deltic.Session(state=tmp_path / "state")
        session.register("recorded", Recorded, str)
        session.sql("CREATE TABLE t (k INT, n INT); CREATE MATERIALIZED VIEW v AS SELECT k, recorded(n) AS r FROM t GROUP BY k")
        return session

    with open_session() as session, session.transaction() as tx:
        tx.insert("t", [{"k": n % 2, "n": n} for n in range(1000)])
    CALLS.clear()
    with open_session() as session:
        with session.transaction() as tx:
            tx.insert("t", [{"k": 1, "n": 7}, {"k": 1, "n": 7}, {"k": 2, "n": 5}])
            tx.delete("t", [{"k": 1, "n": 1}])
        assert CALLS == [("step", 7), ("step", 7), ("retract", 1), ("step", 5)]
        assert {tuple(row.values()) for row in session.view("v").rows()} == {
            (0, "249500 added 998"),
            (1, "250013 removed 1"),
            (2, "5 added 5"),
        }
        with session.transaction() as tx:
            tx.delete("t", [{"k": 2, "n": 5}])
        assert len(session.view("v").rows()) == 2


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ({"retract": lambda self, n: None}, "has only one of retract and state"),
        ({"merge": lambda self, other: None}, "has only one of merge and state"),
        ({"state": "n INT"}, "has only one of retract or merge and state"),
        ({"retract": lambda self, n: None, "state": "n NOTHING"}, "invalid columns 'n NOTHING'"),
    ],
)
def test_a_state_of_an_aggregate_that_is_no_state_is_refused(members: dict[str, Any], message: str) -> None:
    kind = type("Wrong", (), {"step": lambda self, n: None, "finish": lambda self: 0, **members})
    with deltic.Session() as session, pytest.raises(CircuitError, match=message):
        session.register("wrong", kind, int)


def test_a_value_of_the_state_must_have_its_type() -> None:
    class Text(Mean):
        def step(self, x: int | None) -> None:
            self.n = "one"  # type: ignore[assignment]

        def finish(self) -> float | None:
            return None

    with deltic.Session() as session:
        session.register("text", Text, float)
        session.sql(TABLE + "CREATE MATERIALIZED VIEW v AS SELECT text(x) AS x FROM t")
        with pytest.raises(EvaluationError, match="expected: INT"), session.transaction() as tx:
            tx.insert("t", [{"id": 1, "k": 1, "s": "", "x": 1}])


def test_a_class_that_is_no_aggregate_is_refused() -> None:
    class Half:
        def step(self, n: int) -> None: ...

    with deltic.Session() as session, pytest.raises(CircuitError, match=r"half: the class .*Half is not an aggregate"):
        session.register("half", Half, str, aggregate=True)


LATERAL = {
    "above": (
        "(least INT, label STRING DEFAULT 'none') RETURNS TABLE (id BIGINT, tag STRING, n INT) RETURN "
        "SELECT id, concat(label, s), above.least FROM t WHERE x >= least",
        "SELECT q.g, a.id, a.tag, n FROM q, LATERAL above(lo, name) AS a",
    ),
    "total": (
        "(kk INT) RETURNS TABLE (total BIGINT, n BIGINT) RETURN SELECT sum(x), count(*) FROM t WHERE k = kk",
        "SELECT q.*, x.* FROM q, LATERAL total(g) AS x",
    ),
    "having": (
        "(kk INT) RETURNS TABLE RETURN SELECT count(DISTINCT s) AS n FROM t WHERE k = kk HAVING count(*) < 2",
        "SELECT g, n FROM q, LATERAL having(g)",
    ),
    "grouped": (
        "(least INT) RETURNS TABLE RETURN SELECT k, count(*) AS c FROM t WHERE x >= least GROUP BY k",
        "SELECT q.lo, x.* FROM q, LATERAL grouped(lo) AS x(kk, cc)",
    ),
    "texts": (
        "(kk INT) RETURNS TABLE (s STRING) RETURN SELECT DISTINCT s FROM t WHERE k <=> kk",
        "SELECT g, x.s FROM q, LATERAL texts(g) AS x",
    ),
    "both": ("(a INT) RETURNS TABLE (v INT) RETURN SELECT a UNION ALL SELECT a + 1", "SELECT g, v FROM q, LATERAL both(g)"),
    "others": (
        "(a INT) RETURNS TABLE (v INT) RETURN SELECT id FROM t EXCEPT SELECT id FROM t WHERE k = a",
        "SELECT g, v FROM q, LATERAL others(g)",
    ),
    "all_of": ("(a INT) RETURNS TABLE RETURN SELECT * FROM t WHERE k = a", "SELECT * FROM q, LATERAL all_of(g + 1) AS z"),
    "beside": (
        "(a INT) RETURNS TABLE RETURN SELECT t.id, u.id AS other FROM t LEFT JOIN t AS u ON t.id = u.id + 1 WHERE t.x > a",
        "SELECT g, z.* FROM q, LATERAL beside(g) AS z",
    ),
}
"""The rest of CREATE FUNCTION, and a query that calls the function for each row of q."""


@pytest.mark.slow
@pytest.mark.spark
def test_lateral_calls_are_those_of_spark(spark: SparkSession) -> None:
    ts = [(i, None if i == 5 else i % 3, None if i == 4 else "ab"[i % 2], None if i == 3 else 10 * i) for i in range(7)]
    qs = [(1, 20, "L"), (1, 20, "L"), (None, 40, None), (7, None, "x"), (0, 0, "y")]
    columns = {"t": "id INT, k INT, s STRING, x BIGINT", "q": "g INT, lo INT, name STRING"}
    other = spark.newSession()
    with deltic.Session() as session:
        for (name, types), rows in zip(columns.items(), (ts, qs), strict=True):
            other.createDataFrame(rows, types).createOrReplaceTempView(name)
            session.sql(f"CREATE TABLE {name} ({types})")
            with session.transaction() as tx:
                tx.insert(name, [dict(zip((part.split()[0] for part in types.split(", ")), row, strict=True)) for row in rows])
        for name, (rest, query) in LATERAL.items():
            session.sql(f"CREATE FUNCTION {name}{rest}; CREATE MATERIALIZED VIEW v_{name} AS {query}")
            other.sql(f"CREATE TEMPORARY FUNCTION {name}{rest}")
            frame, view = other.sql(query), session.view(f"v_{name}").to_arrow()
            assert Counter(map(tuple, frame.collect())) == Counter(tuple(row.values()) for row in view.to_pylist()), name
            assert frame.columns == view.column_names, name
            other.sql(f"DROP TEMPORARY FUNCTION {name}")
