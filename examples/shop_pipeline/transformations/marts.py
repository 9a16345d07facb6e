"""Numbers of the shop, in Python."""

from pyspark import pipelines as dp
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.window import Window

spark = SparkSession.active()


@dp.temporary_view
def sales() -> DataFrame:
    """The items of orders with what was paid for them."""
    items = spark.table("tpch.lineitem")
    return items.withColumn("paid", F.col("l_extendedprice") * (1 - F.col("l_discount")))


@dp.materialized_view(format="delta")
def order_totals() -> DataFrame:
    return spark.table("sales").groupBy("l_orderkey").agg(F.sum("paid").alias("paid"), F.count("*").alias("items"))


@dp.materialized_view(format="delta")
def customer_spend() -> DataFrame:
    orders, totals = spark.table("tpch.orders"), spark.table("order_totals")
    joined = orders.join(totals, orders["o_orderkey"] == totals["l_orderkey"])
    return joined.groupBy("o_custkey").agg(F.sum("paid").alias("spent"), F.count("*").alias("orders"), F.max("o_orderdate").alias("last"))


@dp.materialized_view(format="delta")
def nation_spend() -> DataFrame:
    spend = spark.table("customer_spend").alias("s")
    customers = spark.table("tpch.customer").alias("c")
    nations = spark.table("tpch.nation").alias("n")
    return (
        spend.join(customers, F.col("s.o_custkey") == F.col("c.c_custkey"))
        .join(nations, F.col("c.c_nationkey") == F.col("n.n_nationkey"))
        .groupBy("n.n_name")
        .agg(F.sum("s.spent").alias("spent"), F.count("*").alias("customers"))
    )


@dp.materialized_view(format="delta")
def monthly_revenue() -> DataFrame:
    month = F.date_format("l_shipdate", "yyyy-MM").alias("month")
    return spark.table("sales").groupBy(month).agg(F.sum("paid").alias("revenue"), F.avg("l_discount").alias("discount"))


@dp.materialized_view(format="delta")
def top_customers() -> DataFrame:
    return spark.table("customer_spend").select("o_custkey", "spent").orderBy(F.desc("spent"), "o_custkey").limit(100)


@dp.materialized_view(format="delta")
def newest_orders() -> DataFrame:
    newest = Window.partitionBy("o_custkey").orderBy(F.desc("o_orderdate"), F.desc("o_orderkey"))
    ranked = spark.table("tpch.orders").withColumn("rank", F.row_number().over(newest))
    return ranked.where("rank <= 3").select("o_custkey", "o_orderkey", "o_orderdate", "o_totalprice", "rank")


@dp.materialized_view(format="delta")
def late_orders() -> DataFrame:
    late = spark.table("tpch.lineitem").where(F.col("l_receiptdate") > F.col("l_commitdate"))
    return spark.table("tpch.orders").join(late, F.col("o_orderkey") == F.col("l_orderkey"), "left_semi").groupBy("o_orderpriority").count()


@dp.materialized_view(format="delta")
def visits_by_segment() -> DataFrame:
    visits, segments = spark.table("visits"), spark.table("segments")
    return (
        visits.join(segments, visits["customer"] == segments["id"], "left").groupBy("segment", "channel").agg(F.count("*").alias("visits"))
    )
