"""The options of the data source `deltic`, as a read and as the catalog gives them."""

from __future__ import annotations

import pytest

from deltic.errors import SetupError

pytest.importorskip("pyspark")


def test_a_table_of_the_catalog_has_its_options_among_its_properties() -> None:
    from deltic.runtimes.spark.read_options import ReadOptions  # noqa: PLC0415  needs the extra

    properties = {"location": "file:/data/a%20b", "option.view": "v", "view": "v", "owner": "ann", "provider": "deltic"}
    options = ReadOptions.of(properties)
    assert (options.root, options.view) == ("/data/a b", "v")
    assert dict(options.given) == {"path": "/data/a b", "view": "v"}
    assert ReadOptions.of(options.given) == options
    with pytest.raises(SetupError, match="no option owner"):
        ReadOptions.of({"path": "p", "view": "v", "owner": "ann"})


def test_declared_columns_of_a_table_are_refused() -> None:
    from pyspark.sql.types import LongType, StructType  # noqa: PLC0415  needs the extra

    from deltic.runtimes.spark.datasource import FORMAT, DelticSource  # noqa: PLC0415  needs the extra

    declared = StructType().add("a", LongType())
    with pytest.raises(SetupError, match="were declared"):
        DelticSource({}).reader(declared)
    carried = StructType().add("a", LongType(), True, {FORMAT: {"view": "v", "path": "p"}})
    assert DelticSource({})._options(carried).view == "v"
