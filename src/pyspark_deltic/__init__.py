"""Where PySpark looks for the data source `deltic`: it registers the DefaultSource of each module `pyspark_…`, in every session."""

from deltic.runtimes.spark.datasource import DelticSource as DefaultSource

__all__ = ["DefaultSource"]
