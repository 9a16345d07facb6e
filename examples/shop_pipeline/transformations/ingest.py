"""Streams: visits of two channels in one table, changes of customers merged by key, and an export."""

from pyspark import pipelines as dp
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

spark = SparkSession.active()

dp.create_streaming_table("visits", format="delta", comment="visits of all channels")


@dp.append_flow(target="visits")
def web_visits() -> DataFrame:
    return spark.readStream.table("tpch.web_visits").withColumn("channel", F.lit("web"))


@dp.append_flow(target="visits")
def app_visits() -> DataFrame:
    return spark.readStream.table("tpch.app_visits").withColumn("channel", F.lit("app"))


@dp.table(format="delta")
def checkouts() -> DataFrame:
    return spark.readStream.table("visits").where(F.col("page") == "checkout")


@dp.table(format="delta")
def customer_events() -> DataFrame:
    return spark.readStream.table("tpch.customer_changes")


dp.create_streaming_table("segments", format="delta")
dp.create_auto_cdc_flow(
    target="segments",
    source="customer_events",
    keys=["id"],
    sequence_by=F.col("at"),
    apply_as_deletes=F.expr("deleted"),
    except_column_list=["deleted"],
)

dp.create_sink("exported_checkouts", "delta", {"path": "/tmp/shop_pipeline/exported_checkouts"})


@dp.append_flow(target="exported_checkouts")
def export_checkouts() -> DataFrame:
    return spark.readStream.table("checkouts")
