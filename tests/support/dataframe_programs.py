# ruff: noqa: PLC3002, PLW0108  a program is one expression
"""Programs of DataFrames as notebooks have them, for Spark and for Deltic."""

from __future__ import annotations

import datetime
import random
from collections.abc import Callable, Mapping
from decimal import Decimal
from functools import cached_property, reduce
from typing import Any, Final

import pandas
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Window, functions, types

TABLES: Final = """
    CREATE TABLE orders (id BIGINT, customer BIGINT, amount DECIMAL(10,2), day DATE, note STRING, PRIMARY KEY (id));
    CREATE TABLE customers (id BIGINT, name STRING, region STRING, PRIMARY KEY (id));
    CREATE TABLE events (id BIGINT, customer BIGINT, ts TIMESTAMP, kind STRING, value DOUBLE, tags ARRAY<STRING>,
        info STRUCT<a: INT, b: STRING>, scores MAP<STRING, INT>, PRIMARY KEY (id));
"""
TYPES: Final = {
    "orders": "id BIGINT, customer BIGINT, amount DECIMAL(10,2), day DATE, note STRING",
    "customers": "id BIGINT, name STRING, region STRING",
    "events": "id BIGINT, customer BIGINT, ts TIMESTAMP, kind STRING, value DOUBLE, tags ARRAY<STRING>, info STRUCT<a: INT, b: STRING>, "
    "scores MAP<STRING, INT>",
}


def order(number: int, draw: random.Random) -> dict[str, Any]:
    amount = None if draw.random() < 0.05 else Decimal(draw.randrange(10_000)) / 100
    day = datetime.date(2024, 1, 1) + datetime.timedelta(draw.randrange(40))
    note = draw.choice([None, "a", "b", "a,b", "c c", " Ab "])
    return {"id": number, "customer": draw.randrange(12), "amount": amount, "day": day, "note": note}


def customer(number: int, draw: random.Random) -> dict[str, Any]:
    return {"id": number, "name": f"n{number}", "region": draw.choice(["north", "south", "east", None])}


def event(number: int, draw: random.Random) -> dict[str, Any]:
    moment = datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC) + datetime.timedelta(minutes=draw.randrange(5_000))
    return {
        "id": number,
        "customer": draw.randrange(12),
        "ts": moment,
        "kind": draw.choice(["view", "click", "buy"]),
        "value": draw.choice([None, 1.5, -2.25, 0.0, 10.0, float("nan")]),
        "tags": draw.choice([None, [], ["x"], ["x", "y"], ["z", None]]),
        "info": draw.choice([None, {"a": 1, "b": "p"}, {"a": None, "b": "q"}, {"a": 7, "b": None}]),
        "scores": draw.choice([None, {}, {"k": 1}, {"k": 2, "l": 3}]),
    }


MAKERS: Final[Mapping[str, Callable[[int, random.Random], dict[str, Any]]]] = {"orders": order, "customers": customer, "events": event}


class Notebook:
    """What a program is made of: the tables as DataFrames, and PySpark's modules."""

    def __init__(self, spark: Any) -> None:
        self.spark = spark

    @cached_property
    def orders(self) -> Any:
        return self.spark.table("orders")

    @cached_property
    def customers(self) -> Any:
        return self.spark.table("customers")

    @cached_property
    def events(self) -> Any:
        return self.spark.table("events")

    F, T, W = functions, types, Window


Made = Callable[[Notebook], Any]
PROGRAMS: Final[dict[str, Made]] = {}


def _all(**made: Made) -> None:
    PROGRAMS.update(made)


_all(
    # filters
    filter_by_attribute=lambda n: (lambda d: d.filter((d.amount > 50) & d["customer"].isin(1, 2, 3)))(n.orders),
    filter_by_text=lambda n: n.orders.where("amount > 50 and day >= date'2024-01-05'"),
    filter_by_column=lambda n: n.orders.where(n.F.col("amount") >= Decimal("12.50")),
    filter_or=lambda n: n.orders.where((n.F.col("note") == "a") | n.F.col("note").isNull()),
    filter_not=lambda n: n.orders.where(~n.F.col("note").isin("a", "b")),
    filter_between=lambda n: n.orders.where(n.F.col("amount").between(10, 40)),
    filter_like=lambda n: n.orders.where(n.F.col("note").like("a%")),
    filter_ilike=lambda n: n.orders.where(n.F.col("note").ilike("%AB%")),
    filter_rlike=lambda n: n.orders.where(n.F.col("note").rlike("^[ab],")),
    filter_contains=lambda n: n.orders.where(n.F.col("note").contains(",") | n.F.col("note").startswith("c")),
    filter_endswith=lambda n: n.orders.where(n.F.col("note").endswith("b")),
    filter_null_safe=lambda n: n.orders.where(n.F.col("note").eqNullSafe(None)),
    filter_date=lambda n: n.orders.where(n.F.col("day") > datetime.date(2024, 1, 20)),
    filter_timestamp=lambda n: n.events.where(n.F.col("ts") >= n.F.lit(datetime.datetime(2024, 1, 2, tzinfo=datetime.UTC))),
    filter_dropped_column=lambda n: (lambda d: d.select("id").filter(d["amount"] > 50))(n.orders),
    filter_twice=lambda n: n.orders.where("amount > 10").where("amount < 60").where(n.F.col("customer") != 3),
    filter_false=lambda n: n.orders.where(n.F.lit(False)),
    filter_on_function=lambda n: n.orders.where(n.F.length("note") > 1),
    filter_on_field=lambda n: n.events.where(n.F.col("info.a") > 1),
    filter_array_contains=lambda n: n.events.where(n.F.array_contains("tags", "x")),
    # projections
    select_names=lambda n: n.orders.select("id", "amount"),
    select_star=lambda n: n.customers.select("*"),
    select_star_and_more=lambda n: n.customers.select("*", n.F.lit("x").alias("k"), n.F.expr("id % 3 as third")),
    select_mixed=lambda n: n.orders.select("id", (n.F.col("amount") * 2).alias("twice"), n.F.upper("note").alias("u")),
    select_cast=lambda n: n.orders.select(n.F.col("amount").cast("double"), n.F.col("id").cast("string").alias("text")),
    select_cast_type=lambda n: n.orders.select(n.F.col("id").cast(n.T.DoubleType()).alias("d")),
    select_unnamed=lambda n: n.orders.select(n.F.col("id") + 1, n.F.length("note"), n.F.lit(3)),
    select_expr=lambda n: n.orders.selectExpr("id", "amount * 2 as twice", "upper(note)"),
    select_list=lambda n: n.orders.select([n.F.col(c) for c in ("id", "note")]),
    select_regex=lambda n: n.orders.select(n.orders.colRegex("`(id|amount)`")),
    select_same_twice=lambda n: n.orders.select(n.F.col("id"), n.F.col("id").alias("again")),
    select_field=lambda n: n.events.select("id", "info.a", n.F.col("info").getField("b").alias("b")),
    select_element=lambda n: n.events.select("id", n.F.get("tags", 0).alias("first"), n.F.array("id", "id").getItem(1).alias("second")),
    select_key=lambda n: n.events.select("id", n.F.col("scores")["k"].alias("k")),
    select_struct=lambda n: n.orders.select("id", n.F.struct("customer", "day").alias("s")),
    select_struct_named=lambda n: n.orders.select("id", n.F.struct(n.F.col("customer").alias("c"), n.F.lit(1).alias("one")).alias("s")),
    select_array=lambda n: n.orders.select("id", n.F.array("id", "customer").alias("pair")),
    select_map=lambda n: n.orders.select("id", n.F.create_map(n.F.lit("c"), "customer").alias("m")).select("id", n.F.col("m")["c"]),
    when_otherwise=lambda n: n.orders.select(
        "id", n.F.when(n.F.col("amount") > 66, "high").when(n.F.col("amount") > 33, "mid").otherwise("low").alias("band")
    ),
    when_without_otherwise=lambda n: n.orders.select("id", n.F.when(n.F.col("amount") > 50, n.F.col("note")).alias("n")),
    coalesce=lambda n: n.orders.select("id", n.F.coalesce("note", n.F.lit("-")).alias("n")),
    nullif_nvl=lambda n: n.orders.select("id", n.F.nullif("note", n.F.lit("a")).alias("x"), n.F.nvl("note", n.F.lit("z")).alias("y")),
    concat=lambda n: n.orders.select(n.F.concat(n.F.lit("a"), n.F.col("id").cast("string")).alias("k"), n.F.concat_ws("-", "note", "note")),
    strings=lambda n: n.orders.select(
        "id", n.F.substring("note", 1, 2).alias("a"), n.F.trim("note").alias("b"), n.F.regexp_replace("note", "a", "b").alias("c")
    ),
    strings_more=lambda n: n.orders.select(
        "id",
        n.F.lower("note").alias("l"),
        n.F.initcap("note").alias("i"),
        n.F.lpad("note", 5, "*").alias("p"),
        n.F.reverse("note").alias("r"),
    ),
    substr_method=lambda n: n.orders.select("id", n.F.col("note").substr(1, 1).alias("s")),
    split_part=lambda n: n.orders.select("id", n.F.split("note", ",").alias("parts"), n.F.size(n.F.split("note", ",")).alias("many")),
    format_string=lambda n: n.orders.select(n.F.format_string("%d-%s", "id", "note").alias("f")),
    dates=lambda n: n.orders.select("id", n.F.year("day").alias("y"), n.F.month("day").alias("m"), n.F.dayofweek("day").alias("w")),
    date_add=lambda n: n.orders.select(
        "id", n.F.date_add("day", 1).alias("next"), n.F.datediff(n.F.lit("2024-03-01"), "day").alias("left")
    ),
    date_trunc=lambda n: n.orders.select("id", n.F.trunc("day", "month").alias("m"), n.F.last_day("day").alias("l")),
    date_format=lambda n: n.orders.select("id", n.F.date_format("day", "yyyy-MM").alias("m")),
    timestamps=lambda n: n.events.select(
        "id", n.F.hour("ts").alias("h"), n.F.date_trunc("hour", "ts").alias("t"), n.F.to_date("ts").alias("d")
    ),
    unix_time=lambda n: n.events.select("id", n.F.unix_timestamp("ts").alias("u")),
    numbers=lambda n: n.orders.select(
        "id", n.F.round("amount", 0).alias("r"), n.F.abs(n.F.col("id") - 100).alias("a"), n.F.floor("amount")
    ),
    division=lambda n: n.orders.select("id", n.F.col("amount") / 3, n.F.col("id") % 7),
    negation=lambda n: n.orders.select("id", -n.F.col("amount"), ~(n.F.col("id") > 3)),
    powers=lambda n: n.orders.select("id", n.F.pow(n.F.col("id"), 2).alias("p"), n.F.sqrt("id").alias("s")),
    bitwise=lambda n: n.orders.select("id", n.F.col("id").bitwiseAND(3).alias("b"), n.F.col("id").bitwiseXOR(5)),
    greatest=lambda n: n.orders.select("id", n.F.greatest("id", "customer").alias("g"), n.F.least("id", "customer").alias("l")),
    hashes=lambda n: n.orders.select("id", n.F.md5(n.F.col("note").cast("binary")).alias("m"), n.F.xxhash64("id", "note").alias("x")),
    json=lambda n: n.events.select("id", n.F.to_json("info").alias("j")),
    json_back=lambda n: n.events.select("id", n.F.from_json(n.F.to_json("info"), "a INT, b STRING").alias("s")),
    arrays=lambda n: n.events.select(
        "id", n.F.size("tags").alias("n"), n.F.sort_array("tags").alias("s"), n.F.array_join("tags", "+").alias("j")
    ),
    transform=lambda n: n.events.select("id", n.F.transform("tags", lambda x: n.F.upper(x)).alias("u")),
    transform_with_index=lambda n: n.events.select("id", n.F.transform("tags", lambda x, i: n.F.concat(x, i.cast("string"))).alias("u")),
    filter_array=lambda n: n.events.select("id", n.F.filter("tags", lambda x: x != "x").alias("f")),
    exists_array=lambda n: n.events.select("id", n.F.exists("tags", lambda x: x == "x").alias("e")),
    aggregate_array=lambda n: n.events.select(
        "id", n.F.aggregate(n.F.array(n.F.lit(1), n.F.lit(2)), n.F.lit(0), lambda acc, x: acc + x).alias("s")
    ),
    map_parts=lambda n: n.events.select(
        "id", n.F.sort_array(n.F.map_keys("scores")).alias("k"), n.F.sort_array(n.F.map_values("scores")).alias("v")
    ),
    nan=lambda n: n.events.select("id", n.F.isnan("value").alias("n"), n.F.nanvl("value", n.F.lit(0.0)).alias("v")),
    literals=lambda n: n.customers.select(
        n.F.lit(1), n.F.lit(2.5).alias("d"), n.F.lit("s").alias("s"), n.F.lit(True).alias("b"), n.F.lit(None).cast("int").alias("n")
    ),
    literal_values=lambda n: n.customers.select(
        n.F.lit(Decimal("1.50")).alias("d"),
        n.F.lit(datetime.date(2024, 2, 29)).alias("day"),
        n.F.lit(datetime.datetime(2024, 2, 29, 1, 2, 3, tzinfo=datetime.UTC)).alias("ts"),
        n.F.lit(datetime.timedelta(days=1, hours=2)).alias("i"),
        n.F.lit([1, 2]).alias("a"),
    ),
    # columns
    with_column=lambda n: n.orders.withColumn("double", n.F.col("amount") * 2),
    with_column_replaced=lambda n: n.orders.withColumn("amount", n.F.col("amount") + 1),
    with_columns=lambda n: n.orders.withColumns({"a": n.F.col("id") + 1, "b": n.F.coalesce("note", n.F.lit("none"))}).drop("note", "day"),
    with_column_chain=lambda n: n.orders.withColumn("x", n.F.col("id") + 1).withColumn("y", n.F.col("x") * 2).withColumn("x", n.F.col("y")),
    renamed=lambda n: n.orders.withColumnRenamed("amount", "price").where("price > 20"),
    renamed_many=lambda n: n.orders.withColumnsRenamed({"id": "key", "note": "text", "absent": "x"}),
    renamed_in_turn=lambda n: n.orders.withColumnsRenamed({"id": "key", "KEY": "number", "number": "n"}),
    to_df=lambda n: n.customers.toDF("a", "b", "c").where("c = 'north'"),
    drop=lambda n: n.orders.drop("note", "absent"),
    drop_column=lambda n: (lambda d: d.drop(d.note))(n.orders),
    to_schema=lambda n: n.orders.select("id", "customer").to(
        n.T.StructType([n.T.StructField("customer", n.T.LongType()), n.T.StructField("id", n.T.DoubleType())])
    ),
    loop_over_columns=lambda n: _upper_names(n.customers),
    schema_driven=lambda n: n.orders.select(
        [n.F.max(f.name).alias(f.name) for f in n.orders.schema.fields if f.dataType.simpleString().startswith(("bigint", "decimal"))]
    ),
    alias_of_frame=lambda n: n.orders.alias("o").select("o.id", n.F.col("o.amount")).where("o.id > 10"),
    transform_method=lambda n: n.orders.transform(lambda d: d.where("amount < 20")).select("id"),
    # missing values
    dropna=lambda n: n.orders.dropna(),
    dropna_subset=lambda n: n.orders.na.drop(subset=["note"]),
    dropna_how=lambda n: n.orders.na.drop(how="all"),
    dropna_thresh=lambda n: n.events.select("id", "value", "kind").na.drop(thresh=3),
    fillna_number=lambda n: n.orders.fillna(0),
    fillna_text=lambda n: n.orders.fillna("none", subset=["note"]),
    fillna_dict=lambda n: n.orders.na.fill({"note": "none", "amount": 1}),
    fillna_dict_types=lambda n: n.events.select(
        "id", "value", n.F.nullif("customer", "id").alias("c"), n.F.col("info.b").alias("b")
    ).fillna({"value": True, "c": "7", "b": 1.5}),
    fillna_float=lambda n: n.events.select("id", "value").fillna(0.5),
    replace=lambda n: n.orders.replace("a", "A", subset=["note"]),
    replace_many=lambda n: n.orders.select("id", "note").replace({"a": "x", "b": "y"}),
    # joins
    join_by_name=lambda n: n.orders.withColumnRenamed("customer", "cid").join(n.customers.withColumnRenamed("id", "cid"), "cid"),
    join_by_names=lambda n: n.orders.join(n.events.select("id", "customer", "kind"), ["id", "customer"]),
    join_left=lambda n: _join(n, "left"),
    join_right=lambda n: _join(n, "right"),
    join_full=lambda n: _join(n, "full"),
    join_inner=lambda n: _join(n, "inner"),
    join_semi=lambda n: (lambda a, b: a.join(b, a.id == b.customer, "left_semi"))(n.customers, n.orders),
    join_anti=lambda n: (lambda a, b: a.join(b.where("amount > 90"), a.id == b.customer, "left_anti"))(n.customers, n.orders),
    join_full_by_name=lambda n: (
        n.orders.select(n.F.col("customer").alias("k"), "amount")
        .groupBy("k")
        .agg(n.F.max("amount").alias("m"))
        .join(n.customers.select(n.F.col("id").alias("k"), "name"), "k", "full")
    ),
    join_right_by_name=lambda n: n.orders.select("id", "note").join(n.customers, "id", "right"),
    join_semi_by_name=lambda n: n.customers.join(n.orders.select("id"), "id", "semi"),
    join_cross=lambda n: n.customers.select("region").distinct().crossJoin(n.spark.range(3)),
    join_condition=lambda n: (lambda a, b: a.join(b, (a.customer == b.id) & (a.amount > 20)).select(a.id, b.name))(n.orders, n.customers),
    join_inequality=lambda n: (lambda a, b: a.join(b, (a.customer == b.id) & (a.id > b.id)).select(a.id, b.region))(n.orders, n.customers),
    join_aliases=lambda n: (
        n.orders.alias("o")
        .join(n.customers.alias("c"), n.F.col("o.customer") == n.F.col("c.id"))
        .select("o.id", "c.name", n.F.col("c.region"))
    ),
    join_self=lambda n: (
        n.orders.alias("a")
        .join(n.orders.alias("b"), (n.F.col("a.customer") == n.F.col("b.customer")) & (n.F.col("a.id") < n.F.col("b.id")))
        .select(n.F.col("a.id").alias("x"), n.F.col("b.id").alias("y"))
    ),
    join_three=lambda n: (
        n.orders.join(n.customers, n.orders.customer == n.customers.id)
        .drop(n.customers.id)
        .join(n.events.select(n.F.col("customer").alias("who"), "kind"), n.F.col("customer") == n.F.col("who"))
        .groupBy("region", "kind")
        .count()
    ),
    join_where=lambda n: (lambda a, b: a.crossJoin(b.withColumnRenamed("id", "cid")).where("customer = cid").select("id", "name"))(
        n.orders, n.customers
    ),
    join_then_group=lambda n: (lambda a, b: a.join(b, a.customer == b.id).groupBy(b.region).agg(n.F.sum(a.amount).alias("s")))(
        n.orders, n.customers
    ),
    join_of_groups=lambda n: (
        n.orders.groupBy("customer").agg(n.F.sum("amount").alias("spent")).join(n.events.groupBy("customer").count(), "customer", "left")
    ),
    join_null_safe=lambda n: (
        n.customers.alias("a")
        .join(n.customers.alias("b"), n.F.col("a.region").eqNullSafe(n.F.col("b.region")))
        .select(n.F.col("a.id").alias("x"), n.F.col("b.id").alias("y"))
    ),
    broadcast=lambda n: n.orders.join(n.F.broadcast(n.customers.withColumnRenamed("id", "customer")), "customer").select("id", "name"),
    # groups
    group_agg=lambda n: n.orders.groupBy("customer").agg(
        n.F.count("*").alias("n"),
        n.F.sum("amount").alias("s"),
        n.F.min("day").alias("first"),
        n.F.avg("amount").alias("a"),
        n.F.countDistinct("day").alias("days"),
    ),
    group_count=lambda n: n.orders.groupBy("day").count(),
    group_sum=lambda n: n.orders.groupBy("customer").sum("amount"),
    group_max_of_all=lambda n: n.orders.groupBy("customer").max("amount", "id"),
    group_dict=lambda n: n.orders.groupBy("customer").agg({"amount": "max", "id": "count"}),
    group_expression=lambda n: n.orders.groupBy((n.F.col("id") % 5).alias("m"), n.F.year("day").alias("y")).agg(
        n.F.sum(n.F.when(n.F.col("amount") > 50, 1).otherwise(0)).alias("big")
    ),
    group_unnamed=lambda n: n.orders.groupBy(n.F.month("day")).agg(n.F.max("amount"), n.F.count(n.F.lit(1))),
    group_two=lambda n: n.orders.groupBy("customer", "note").agg(n.F.count("id").alias("n")),
    group_having=lambda n: n.orders.groupBy("customer").agg(n.F.sum("amount").alias("s")).filter("s > 100").orderBy("customer"),
    group_of_group=lambda n: (
        n.orders.groupBy("customer").agg(n.F.sum("amount").alias("s")).agg(n.F.max("s").alias("m"), n.F.avg("s").alias("a"))
    ),
    global_agg=lambda n: n.orders.agg(n.F.count(n.F.lit(1)).alias("n"), n.F.max("amount")),
    global_select=lambda n: n.orders.select(n.F.min("amount").alias("lo"), n.F.max("amount").alias("hi")),
    group_distinct=lambda n: n.orders.groupBy("customer").agg(n.F.sum_distinct("amount").alias("s")),
    group_mean=lambda n: n.orders.groupBy("customer").mean("id"),
    group_stddev=lambda n: n.orders.groupBy("customer").agg(
        n.F.round(n.F.stddev("amount"), 6).alias("s"), n.F.round(n.F.var_pop("amount"), 6)
    ),
    group_collect=lambda n: n.orders.groupBy("customer").agg(n.F.sort_array(n.F.collect_list("id")).alias("ids")),
    group_collect_set=lambda n: n.orders.groupBy("customer").agg(n.F.sort_array(n.F.collect_set("note")).alias("notes")),
    group_bool=lambda n: n.orders.groupBy("customer").agg(
        n.F.bool_and(n.F.col("amount") > 5).alias("all"), n.F.count_if(n.F.col("id") > 50)
    ),
    group_max_by=lambda n: n.orders.groupBy("customer").agg(n.F.max_by("id", n.F.struct("amount", "id")).alias("best")),
    group_approx=lambda n: n.events.groupBy("customer").agg(n.F.approx_count_distinct("kind").alias("d")),
    group_percentile=lambda n: n.orders.groupBy("customer").agg(n.F.percentile("id", 0.5).alias("p"), n.F.median("id").alias("m")),
    group_compound=lambda n: n.orders.groupBy("customer").agg((n.F.sum("amount") / n.F.count("*")).alias("mean")),
    group_by_nothing_count=lambda n: n.orders.groupBy().count(),
    group_by_field=lambda n: n.events.groupBy("info.b").count(),
    group_then_join=lambda n: (
        n.orders.groupBy("customer")
        .agg(n.F.count("*").alias("n"))
        .join(n.customers, n.F.col("customer") == n.F.col("id"))
        .select("name", "n")
    ),
    distinct=lambda n: n.orders.select("customer", "day").distinct(),
    drop_duplicates=lambda n: n.orders.select("customer", "day").dropDuplicates(),
    drop_duplicates_keys=lambda n: n.orders.select("customer", "note").dropDuplicates(["customer", "note"]),
    count_distinct_pairs=lambda n: n.orders.agg(n.F.count_distinct("customer", "day").alias("n")),
    pivot=lambda n: n.orders.groupBy("customer").pivot("note", ["a", "b"]).agg(n.F.sum("amount")),
    pivot_count=lambda n: n.orders.groupBy("customer").pivot("note", ["a", "c c"]).count(),
    pivot_two=lambda n: n.orders.groupBy("customer").pivot("note", ["a", "b"]).agg(n.F.sum("amount").alias("s"), n.F.max("id").alias("m")),
    unpivot=lambda n: n.customers.unpivot("id", ["name", "region"], "k", "v"),
    melt_all=lambda n: n.customers.select("id", "name", "region").melt(["id"], None, "k", "v"),
    unpivot_types=lambda n: n.orders.unpivot("note", ["id", "amount", n.F.col("customer").cast("double").alias("c")], "k", "v"),
    # order
    top=lambda n: n.orders.orderBy(n.F.desc("amount"), "id").limit(5),
    top_select=lambda n: n.orders.orderBy(n.F.desc("amount"), "id").select("id", "amount").limit(4),
    top_nulls=lambda n: n.orders.orderBy(n.F.asc_nulls_last("note"), n.F.col("id").desc()).limit(6).select("id"),
    top_expression=lambda n: n.orders.orderBy((n.F.col("id") % 7).desc(), "id").limit(5),
    top_dropped=lambda n: n.orders.select("id").orderBy(n.orders.amount.desc_nulls_last(), "id").limit(5),
    top_of_groups=lambda n: n.orders.groupBy("customer").agg(n.F.sum("amount").alias("s")).orderBy(n.F.desc("s"), "customer").limit(3),
    top_offset=lambda n: n.orders.orderBy(n.F.desc("amount"), "id").offset(2).limit(3),
    offset_alone=lambda n: n.orders.orderBy("id").offset(150).select("id"),
    order_alone=lambda n: n.orders.orderBy("amount").select("id"),
    sort_ascending=lambda n: n.orders.sort(n.F.col("id").asc()).limit(2),
    # sets
    union=lambda n: n.orders.where("id < 10").union(n.orders.where("id > 190")),
    union_types=lambda n: n.orders.select("id").union(n.orders.select("amount")),
    union_by_name=lambda n: n.orders.select("id", "amount").unionByName(
        n.orders.select(n.F.col("amount"), n.F.col("customer").alias("id"))
    ),
    union_by_name_missing=lambda n: n.orders.select("id", "amount").unionByName(
        n.customers.select("id", n.F.lit(1).alias("extra")), allowMissingColumns=True
    ),
    union_by_name_structs=lambda n: n.events.select("id", "info").unionByName(
        n.orders.select("id", n.F.struct(n.F.col("note").alias("B"), "customer", n.F.col("id").alias("a")).alias("info")),
        allowMissingColumns=True,
    ),
    union_by_name_order=lambda n: n.events.select("info").unionByName(
        n.orders.select(n.F.struct(n.F.col("note").alias("b"), n.F.lit(1).alias("a")).alias("info"))
    ),
    intersect=lambda n: n.orders.select("customer").intersect(n.customers.select("id")),
    intersect_all=lambda n: n.orders.select("customer").intersectAll(n.events.select("customer")),
    subtract=lambda n: n.customers.select("id").subtract(n.orders.select("customer")),
    except_all=lambda n: n.orders.select("customer").exceptAll(n.events.select("customer")),
    # rows from elsewhere
    created=lambda n: n.orders.join(n.spark.createDataFrame([(1, "gold"), (2, "silver")], ["customer", "tier"]), "customer", "left").select(
        "id", "tier"
    ),
    created_ddl=lambda n: n.spark.createDataFrame([(1, "x", None), (2, None, 2.5)], "a INT, b STRING, c DOUBLE"),
    created_nested=lambda n: n.spark.createDataFrame([([1, 2], {"a": 1})], "xs ARRAY<INT>, m MAP<STRING, INT>"),
    created_values=lambda n: n.spark.createDataFrame(
        [(Decimal("1.25"), datetime.date(2024, 1, 2), True, bytearray(b"x"))], "d DECIMAL(5,2), day DATE, b BOOLEAN, x BINARY"
    ),
    created_empty=lambda n: n.spark.createDataFrame([], "a INT, b STRING"),
    range=lambda n: n.spark.range(5),
    range_step=lambda n: n.spark.range(1, 20, 3).where("id > 5"),
    sql_text=lambda n: n.spark.sql("SELECT region, count(*) AS n FROM customers GROUP BY region").where("n > 1"),
    sql_frame=lambda n: n.spark.sql("SELECT region, count(*) AS n FROM {x} GROUP BY region", x=n.customers.where("id > 3")),
    sql_of_joined=lambda n: n.spark.sql(
        "SELECT o.id, c.name FROM {o} AS o JOIN customers AS c ON o.customer = c.id", o=n.orders.where("amount > 50")
    ),
    # rows of rows
    explode=lambda n: n.events.select("id", n.F.explode("tags").alias("tag")),
    explode_unnamed=lambda n: n.events.select("id", n.F.explode("tags")),
    explode_outer=lambda n: n.events.select("id", n.F.explode_outer("tags").alias("tag")),
    posexplode=lambda n: n.events.select("id", n.F.posexplode("tags").alias("i", "tag")),
    explode_map=lambda n: n.events.select("id", n.F.explode("scores").alias("k", "v")),
    explode_split=lambda n: n.orders.select("id", n.F.explode(n.F.split(n.F.col("note"), ",")).alias("w")),
    explode_count=lambda n: n.events.select(n.F.explode("tags").alias("tag")).groupBy("tag").count().orderBy("tag"),
    inline=lambda n: n.events.select("id", n.F.inline(n.F.array("info"))).where("id > 100"),
    # functions in Python
    udf=lambda n: n.orders.select("id", n.F.udf(lambda text: text and text.upper() + "!", "string")("note").alias("u")),
    udf_type=lambda n: n.orders.select(
        "id", n.F.udf(lambda text: text and text.upper() + "!", n.T.StringType())(n.F.col("note")).alias("u")
    ),
    udf_two=lambda n: n.orders.where(n.F.udf(lambda a, b: a > 10 * b, "boolean")("id", "customer")),
    # what changes nothing
    hints=lambda n: n.orders.hint("broadcast").repartition(3).coalesce(1).select("id"),
    repartition_by=lambda n: n.orders.repartition(2, "customer").select("id"),
    cached=lambda n: n.orders.cache().select("id"),
    is_streaming=lambda n: n.orders.where(n.F.lit(n.orders.isStreaming)),
    print_schema=lambda n: (n.orders.printSchema(), n.orders.select("id"))[1],
    # windows of rows and of time, subqueries, grouping sets
    window_rank=lambda n: (
        n.orders.withColumn("r", n.F.row_number().over(n.W.partitionBy("customer").orderBy(n.F.desc("amount"), "id")))
        .where("r = 1")
        .select("id", "customer")
    ),
    window_sum=lambda n: n.orders.select("id", n.F.sum("amount").over(n.W.partitionBy("customer")).alias("total")),
    window_lag=lambda n: n.orders.select("id", n.F.lag("id", 1).over(n.W.partitionBy("customer").orderBy("day", "id")).alias("before")),
    window_dense=lambda n: n.orders.select("id", n.F.dense_rank().over(n.W.partitionBy("customer").orderBy("day")).alias("r")),
    scalar_subquery=lambda n: n.orders.where(n.F.col("amount") > n.orders.agg(n.F.avg("amount")).scalar()),
    exists_subquery=lambda n: n.customers.where(n.orders.where(n.F.col("customer") == n.F.col("customers.id").outer()).exists()),
    window_running=lambda n: n.orders.select("id", n.F.sum("amount").over(n.W.partitionBy("customer").orderBy("id")).alias("so_far")),
    window_rows=lambda n: n.orders.select(
        "id", n.F.avg("amount").over(n.W.partitionBy("customer").orderBy("day", "id").rowsBetween(-2, n.W.currentRow)).alias("mean")
    ),
    window_range=lambda n: n.orders.select(
        "id", n.F.count("*").over(n.W.orderBy(n.F.col("id").cast("int")).rangeBetween(-3, 3)).alias("near")
    ),
    window_unbounded=lambda n: n.orders.select(
        "id",
        n.F.max("amount")
        .over(n.W.partitionBy("customer").orderBy("id").rowsBetween(n.W.unboundedPreceding, n.W.unboundedFollowing))
        .alias("most"),
    ),
    window_lead_default=lambda n: n.orders.withColumn("next", n.F.lead("id", 2, -1).over(n.W.orderBy("id"))).select("id", "next"),
    window_first=lambda n: n.orders.select(
        "id", n.F.first("note", ignorenulls=True).over(n.W.partitionBy("customer").orderBy("id").rowsBetween(-1, 1)).alias("note")
    ),
    window_shares=lambda n: n.orders.select(
        "id",
        n.F.percent_rank().over(n.W.orderBy("amount")).alias("p"),
        n.F.cume_dist().over(n.W.orderBy("amount")).alias("c"),
        n.F.ntile(3).over(n.W.orderBy("amount", "id")).alias("t"),
    ),
    window_over_groups=lambda n: (
        n.orders.groupBy("customer")
        .agg(n.F.sum("amount").alias("s"))
        .select("customer", n.F.rank().over(n.W.orderBy(n.F.desc("s"))).alias("place"))
    ),
    window_share=lambda n: n.orders.select(
        "id", (n.F.col("amount") / n.F.sum("amount").over(n.W.partitionBy("customer"))).cast("double").alias("share")
    ),
    scalar_in_select=lambda n: n.customers.alias("c").select(
        "id", n.orders.where(n.F.col("customer") == n.F.col("c.id").outer()).select(n.F.count("*")).scalar().alias("orders")
    ),
    not_exists=lambda n: n.customers.alias("c").where(
        ~n.orders.where((n.F.col("customer") == n.F.col("c.id").outer()) & (n.F.col("amount") > 20)).exists()
    ),
    lateral_join=lambda n: (
        n.customers.alias("c")
        .lateralJoin(n.orders.where(n.F.col("customer") == n.F.col("c.id").outer()).orderBy(n.F.desc("amount"), "id").limit(2).alias("o"))
        .select("c.id", "o.amount")
    ),
    lateral_left_join=lambda n: (
        n.customers.alias("c")
        .lateralJoin(
            n.orders.where(n.F.col("customer") == n.F.col("c.id").outer()).select(n.F.max("amount").alias("most")),
            n.F.col("most") > 20,
            "left",
        )
        .select("c.id", "most")
    ),
    nearest_by=lambda n: (
        n.customers.alias("c")
        .nearestByJoin(n.orders.alias("o"), n.F.abs(n.F.col("c.id") * 7 - n.F.col("o.id")), 2, "exact", "distance")
        .select("c.id", n.F.col("o.id").alias("order"))
    ),
    nearest_by_left=lambda n: (
        n.customers.alias("c")
        .nearestByJoin(
            n.orders.where("id % 2 = 0").alias("o"),
            n.F.when(n.F.col("c.id") > 3, n.F.col("o.id")),
            1,
            "approx",
            "similarity",
            joinType="leftouter",
        )
        .select("c.id", n.F.col("o.id").alias("order"))
    ),
    in_subquery=lambda n: n.orders.where(n.F.col("customer").isin(n.customers.where("region = 'north'").select("id"))).select("id"),
    grouping_sets=lambda n: n.orders.groupingSets([["customer"], ["note"], []], "customer", "note").agg(
        n.F.count("*").alias("n"), n.F.grouping_id().alias("g")
    ),
    rollup=lambda n: n.orders.rollup("customer", "note").count(),
    cube=lambda n: n.orders.cube("customer", "note").agg(n.F.sum("amount").alias("s")),
    time_window=lambda n: n.events.groupBy(n.F.window("ts", "1 day")).count().select("window.start", "count"),
    limit_alone=lambda n: n.spark.range(5).limit(5),
    # as users write them elsewhere
    select_other_case=lambda n: n.orders.select("ID", n.F.col("Amount"), n.orders["Note"]),
    group_other_case=lambda n: n.orders.groupBy("Customer").agg(n.F.max("ID")),
    star_of_struct=lambda n: n.events.select("id", "info.*").where(n.F.col("a") > 1),
    star_of_parsed=lambda n: n.events.select("id", n.F.from_json(n.F.to_json("info"), "a INT, b STRING").alias("s")).select("s.*", "id"),
    with_field=lambda n: n.events.select(
        "id", n.F.col("info").withField("c", n.F.col("customer")).withField("A", n.F.col("id")).alias("i")
    ),
    with_field_nested=lambda n: n.events.select("id", n.F.struct("info").withField("info.b", n.F.lit("x")).alias("s")).select("s.info.b"),
    with_field_of_elements=lambda n: n.events.select(
        "id", n.F.transform(n.F.array("info"), lambda s: s.withField("b", n.F.upper(s["b"]))).alias("xs")
    ),
    with_field_unnamed=lambda n: n.events.select(
        "id", n.F.col("info").withField("a", n.F.col("customer")), n.F.col("info").dropFields("b")
    ),
    drop_fields=lambda n: n.events.withColumn("info", n.F.col("info").dropFields("a", "absent")).select("id", "info"),
    window_nth=lambda n: n.orders.select("id", n.F.nth_value("id", 2).over(n.W.partitionBy("customer").orderBy("id")).alias("second")),
    window_nth_not_null=lambda n: n.orders.select(
        "id", n.F.nth_value("note", 2, ignoreNulls=True).over(n.W.partitionBy("customer").orderBy("id")).alias("second")
    ),
    window_last_not_null=lambda n: n.orders.select("id", n.F.last("note", True).over(n.W.partitionBy("customer").orderBy("id")).alias("n")),
    sessions=lambda n: _sessions(n, n.W.partitionBy("customer").orderBy("ts", "id")),
    isin_nothing=lambda n: n.orders.where(n.F.col("id").isin([]) | n.F.col("note").isNull()).select("id"),
    sql_named_values=lambda n: n.spark.sql(
        "SELECT id FROM orders WHERE amount > :least AND day >= :day", args={"least": 50, "day": datetime.date(2024, 1, 9)}
    ),
    sql_values_in_order=lambda n: n.spark.sql("SELECT id FROM orders WHERE amount > ? AND note = ?", args=[50.5, "a"]),
    sql_values_of_columns=lambda n: n.spark.sql(
        "SELECT id FROM orders WHERE array_contains(:some, customer)", args={"some": n.F.array(n.F.lit(1), n.F.lit(3))}
    ),
    sql_values_and_frame=lambda n: n.spark.sql("SELECT id FROM {t} WHERE note = {x}", t=n.orders, x="a"),
    sql_star_except=lambda n: n.spark.sql("SELECT * EXCEPT (note) FROM orders"),
    temporary_view=lambda n: _as_view(n, "big_orders", n.orders.where("amount > 50"))("big_orders").select("id"),
    temporary_view_in_sql=lambda n: (
        _as_view(n, "Groups", n.orders.groupBy("customer").count()),
        n.spark.sql("SELECT name, count FROM groups JOIN customers ON customer = id"),
    )[1],
    temporary_view_over_another=lambda n: (
        _as_view(n, "first_step", n.orders.where("amount > 10")),
        _as_view(n, "second_step", n.spark.sql("SELECT id, customer FROM first_step WHERE customer > 2")),
        n.spark.table("second_step").join(n.spark.table("first_step").select("id", "note"), "id"),
    )[2],
    udf_by_name=lambda n: n.orders.select("id", n.F.udf(lambda a, b: a - b, "bigint")(b=n.F.col("id"), a=n.F.col("customer")).alias("d")),
    udf_of_struct=lambda n: n.events.select("id", n.F.udf(lambda s: s and s.b, "string")("info").alias("b")),
    udf_to_struct=lambda n: n.orders.select("id", n.F.udf(lambda x: (x, str(x)), "struct<a:bigint,b:string>")("id").alias("s")).select(
        "s.b"
    ),
    udf_exploded=lambda n: n.orders.select("id", n.F.explode(n.F.udf(lambda x: [x, x + 1], "array<bigint>")("id")).alias("e")),
    udf_in_sum=lambda n: n.orders.groupBy("customer").agg(n.F.sum(n.F.udf(lambda x: x % 3, "bigint")("id")).alias("s")),
    udf_pandas=lambda n: n.orders.select("id", _functions(n)["upper"]("note").alias("u")),
    udf_pandas_of_group=lambda n: n.orders.groupBy("customer").agg(_functions(n)["largest"]("id").alias("m")),
    udf_arrow=lambda n: n.orders.select("id", _functions(n)["following"]("id").alias("u")),
    union_of_loop=lambda n: reduce(
        lambda a, b: a.unionByName(b), [n.orders.where(n.F.col("customer") == i).select("id", n.F.lit(i).alias("k")) for i in range(4)]
    ),
    or_of_loop=lambda n: n.orders.where(reduce(lambda a, b: a | b, [n.F.col("customer") == i for i in (1, 3, 5)])),
    nulls_by_column=lambda n: n.orders.select([n.F.count(n.F.when(n.F.col(c).isNull(), c)).alias(c) for c in n.orders.columns]),
    columns_by_type=lambda n: n.orders.select([c for c, t in n.orders.dtypes if t.startswith("decimal") or t == "date"]),
    frame_items=lambda n: n.orders[["id", "note"]].where(n.orders["note"].isNotNull()),
    frame_condition=lambda n: n.orders[n.orders.amount > 50].select(n.orders[0], n.orders[1]),
    lateral_names=lambda n: n.orders.selectExpr("id + 1 AS x", "x * 2 AS y"),
    stacked=lambda n: n.customers.selectExpr("id", "stack(2, 'name', name, 'region', region) AS (k, v)"),
    last_of_group=lambda n: n.orders.groupBy("customer").agg(n.F.max(n.F.struct("day", "id")).alias("last")).select("customer", "last.id"),
    join_of_self_group=lambda n: (
        n.orders.join(n.orders.groupBy("customer").agg(n.F.max("amount").alias("m")), "customer").where("amount = m").select("id", "m")
    ),
    join_list=lambda n: (lambda a, b: a.join(b, [a.customer == b.id, a.id > b.id], "left").select(a["*"], b["name"]))(
        n.orders, n.customers
    ),
    session_windows=lambda n: (
        n.events.groupBy(n.F.session_window("ts", "30 minutes"), "customer").count().select("session_window.start", "customer", "count")
    ),
    sliding_windows=lambda n: (
        n.events.groupBy(n.F.window("ts", "12 hours", "6 hours"), "kind").count().select("window.end", "kind", "count")
    ),
    variant=lambda n: n.events.select("id", n.F.variant_get(n.F.parse_json(n.F.to_json("info")), "$.a", "int").alias("a")),
    created_of_dicts=lambda n: n.spark.createDataFrame([{"a": 1, "b": "x"}, {"a": 2, "b": None}]),
    created_of_pandas=lambda n: n.spark.createDataFrame(pandas.DataFrame({"a": [1, 2], "b": ["x", "y"]})),
    created_of_arrow=lambda n: n.spark.createDataFrame(pa.table({"a": [1, 2], "b": ["x", None]})),
    setting=lambda n: (n.spark.conf.set("spark.sql.shuffle.partitions", "2"), n.orders.select("id"))[1],
)


def _as_view(n: Notebook, name: str, frame: Any) -> Callable[[str], Any]:
    frame.createOrReplaceTempView(name)
    return n.spark.table  # type: ignore[no-any-return]


def _sessions(n: Notebook, window: Any) -> Any:
    """Events of a customer within half an hour of the one before."""
    before = n.F.unix_timestamp(n.F.lag("ts").over(window))
    begins = n.events.withColumn("begins", n.F.coalesce((n.F.unix_timestamp("ts") - before > 1_800).cast("int"), n.F.lit(1)))
    numbered = begins.withColumn("session", n.F.sum("begins").over(window))
    return numbered.groupBy("customer", "session").agg(n.F.count("*").alias("events"), n.F.min("ts").alias("start"))


def _functions(n: Notebook) -> dict[str, Any]:
    """As a notebook has them: Spark's workers cannot import this module."""

    @n.F.pandas_udf("string")
    def upper(texts: pandas.Series) -> pandas.Series:
        return texts.str.upper()

    @n.F.pandas_udf("bigint")
    def largest(numbers: pandas.Series) -> int:
        return int(numbers.max())

    @n.F.arrow_udf("bigint")
    def following(numbers: pa.Array) -> pa.Array:
        return pc.add(numbers, 1)

    return {"upper": upper, "largest": largest, "following": following}


def _upper_names(frame: Any) -> Any:
    for name in frame.columns:
        frame = frame.withColumnRenamed(name, name.upper())
    return frame


def _join(n: Notebook, how: str) -> Any:
    left, right = n.orders, n.customers
    return left.join(right, left["customer"] == right["id"], how).select(left.id, right.name, right["region"])


EXPECTED_REFUSALS: Final[frozenset[str]] = frozenset()
"""Programs that are not supported yet."""
