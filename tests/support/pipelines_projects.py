"""Declarative Pipelines projects for tests: files as users write them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from deltic.errors import QueryError
from deltic.schema import Field, Schema

INGEST = """\
from pyspark import pipelines as dp
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

spark = SparkSession.active()


@dp.table(comment="every order, as it came")
def raw_orders() -> DataFrame:
    schema = "id BIGINT, customer BIGINT, amount DECIMAL(10,2), day DATE"
    return spark.readStream.schema(schema).json("FOLDER/orders")


@dp.materialized_view
def customers() -> DataFrame:
    return spark.read.schema("id BIGINT, name STRING, region STRING").json("FOLDER/customers")


@dp.temporary_view
def big_orders() -> DataFrame:
    return spark.read.table("raw_orders").where(F.col("amount") >= 90)
"""

MARTS = """\
from pyspark import pipelines as dp
from pyspark.sql import functions as F


@dp.materialized_view(comment="orders and money by region", table_properties={"owner": "sales"})
def spend_by_region():
    orders = spark.read.table("raw_orders")
    people = spark.table("default.customers")
    return (
        orders.join(people, orders["customer"] == people["id"], "left")
        .groupBy(people.region)
        .agg(F.count("*").alias("orders"), F.sum(orders.amount).alias("amount"), F.max("day").alias("last"))
    )


@dp.materialized_view(name="top_customers", format="json", schema="name STRING, spent DECIMAL(20,2)")
def best():
    totals = spark.table("raw_orders").groupBy("customer").agg(F.sum("amount").alias("spent"))
    return (
        totals.alias("t")
        .join(spark.table("customers").alias("c"), F.col("t.customer") == F.col("c.id"))
        .select("c.name", "t.spent")
        .orderBy(F.desc("spent"), "name")
        .limit(3)
    )
"""

SQL = """\
-- daily numbers
SET shop.note = 'daily';
CREATE MATERIALIZED VIEW IF NOT EXISTS spark_catalog.default.daily_orders
(day DATE NOT NULL COMMENT 'of the order', orders BIGINT, amount DECIMAL(20, 2))
USING parquet
PARTITIONED BY (day)
COMMENT 'orders per day'
TBLPROPERTIES ('team' = 'sales', a.b = 1)
AS SELECT day, count(*) AS orders, sum(amount) AS amount FROM raw_orders GROUP BY day;

CREATE STREAMING TABLE pages;

CREATE FLOW web AS INSERT INTO pages BY NAME SELECT id, 'web' AS origin FROM STREAM raw_orders WHERE id % 2 = 0;

CREATE FLOW app AS INSERT INTO pages BY NAME SELECT 'app' AS origin, id FROM STREAM(raw_orders) WHERE id % 2 = 1;

CREATE MATERIALIZED VIEW origins AS SELECT origin, count(*) AS n FROM pages GROUP BY origin;

CREATE VIEW shop_days (d) AS SELECT day FROM daily_orders;

CREATE MATERIALIZED VIEW days AS SELECT count(*) AS n FROM shop_days;

CREATE MATERIALIZED VIEW big_by_customer AS
SELECT c.name, count(*) AS big FROM big_orders b JOIN customers c ON b.customer = c.id GROUP BY c.name;

CREATE MATERIALIZED VIEW marked AS SELECT name, reflect('java.lang.Math', 'abs', big) AS big FROM big_by_customer;

CREATE MATERIALIZED VIEW after_marked AS SELECT big, count(*) AS names FROM marked GROUP BY big;
"""

SPEC = """\
name: shop
storage: file://FOLDER/storage
libraries:
  - glob:
      include: transformations/**
"""


def shop(folder: Path) -> Path:
    """Writes a project of a streaming table, views in Python and SQL, and one that Deltic refuses; returns its spec."""
    files = {
        "spark-pipeline.yml": SPEC,
        "transformations/ingest.py": INGEST,
        "transformations/marts.py": MARTS,
        "transformations/marts.sql": SQL,
    }
    return written(folder, files)


def written(folder: Path, files: dict[str, str]) -> Path:
    """Writes the files, in which FOLDER stands for the folder; returns the project's spec."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text.replace("FOLDER", str(folder)))
    return folder / "spark-pipeline.yml"


GUIDE_PYTHON = """\
from pyspark import pipelines as dp
from pyspark.sql import DataFrame
from pyspark.sql.functions import col


@dp.materialized_view
def basic_mv() -> DataFrame:
    return spark.table("trips")


@dp.materialized_view(name="trips_mv")
def renamed_mv() -> DataFrame:
    return spark.table("trips")


@dp.temporary_view
def basic_tv() -> DataFrame:
    return spark.table("trips")


@dp.table
def basic_st() -> DataFrame:
    return spark.readStream.table("trips")


@dp.table
def orders() -> DataFrame:
    return spark.readStream.table("orders_source")


@dp.materialized_view
def customers() -> DataFrame:
    return spark.read.format("csv").option("header", True).load("FOLDER/customers")


@dp.materialized_view
def customer_orders() -> DataFrame:
    return (
        spark.table("orders")
        .join(spark.table("customers"), "customer_id")
        .select(
            "customer_id",
            "order_number",
            "state",
            col("order_datetime").cast("int").cast("timestamp").cast("date").alias("order_date"),
        )
    )


@dp.materialized_view
def daily_orders_by_state() -> DataFrame:
    return spark.table("customer_orders").groupBy("state", "order_date").count().withColumnRenamed("count", "order_count")


dp.create_streaming_table("customers_us")


@dp.append_flow(target="customers_us")
def append_customers_us_west() -> DataFrame:
    return spark.readStream.table("customers_us_west")


@dp.append_flow(target="customers_us")
def append_customers_us_east() -> DataFrame:
    return spark.readStream.table("customers_us_east")
"""
GUIDE_LOOP = """\
from pyspark import pipelines as dp
from pyspark.sql.functions import col, collect_list

customers = spark.read.table("customer_ids").select(collect_list("id")).collect()[0][0]

for customer in customers:

    @dp.materialized_view(name=f"orders_of_{customer}")
    def orders_of_customer(customer_filter=customer):
        return spark.table("orders").filter(col("customer_id") == customer_filter)
"""
GUIDE_SQL = """\
CREATE MATERIALIZED VIEW sql_mv AS SELECT * FROM trips;

CREATE TEMPORARY VIEW sql_tv AS SELECT * FROM trips;

CREATE STREAMING TABLE sql_st AS SELECT * FROM STREAM trips;

CREATE MATERIALIZED VIEW sql_customer_orders AS
SELECT c.customer_id, o.order_number, c.state, date(timestamp(int(o.order_datetime))) order_date
FROM orders o
INNER JOIN customers c
ON o.customer_id = c.customer_id;

CREATE MATERIALIZED VIEW sql_daily_orders_by_state
AS SELECT state, order_date, count(*) AS order_count
FROM sql_customer_orders
GROUP BY state, order_date;

CREATE STREAMING TABLE sql_customers_us;

CREATE FLOW sql_append_customers_us_west
AS INSERT INTO sql_customers_us BY NAME
SELECT * FROM STREAM(customers_us_west);

CREATE FLOW sql_append_customers_us_east
AS INSERT INTO sql_customers_us BY NAME
SELECT * FROM STREAM(customers_us_east);
"""


def guide(folder: Path, *, loop: bool = False) -> Path:
    """Writes the examples of Spark's guide to Declarative Pipelines as one project; returns its spec.

    loop: also that of tables in a loop, which reads a table while it is loaded.
    """
    files = {"spark-pipeline.yml": SPEC, "transformations/a.py": GUIDE_PYTHON, "transformations/b.sql": GUIDE_SQL}
    return written(folder, files | ({"transformations/c.py": GUIDE_LOOP} if loop else {}))


class NoSpark:
    """Answers for a Spark: one schema for all relations that it is asked about, or none."""

    def __init__(self, *fields: Field) -> None:
        self.fields, self.questions = fields, 0
        self.meanings: dict[str, str] = {}

    def schema(self, message: Any, names: Any, settings: Mapping[str, str]) -> Schema:
        self.questions += 1
        if not self.fields:
            raise QueryError("Spark: [TABLE_OR_VIEW_NOT_FOUND] there is no such table")
        return Schema(self.fields)

    def settings(self) -> Mapping[str, str]:
        return self.meanings


def planned(spec: Path, spark: NoSpark | None = None) -> Any:
    from deltic.frontends.dataframes import Frames  # noqa: PLC0415  needs the extra
    from deltic.projects import load, plan_project  # noqa: PLC0415  needs the extra

    frames = Frames(lambda: None)  # type: ignore[arg-type, return-value]
    return plan_project(load(spec, frames), spark or NoSpark(), offline=True)
