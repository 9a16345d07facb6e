"""Test support: the queries of TPC-H with subqueries, as Spark's tests have them, and small random data on which they have answers."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from decimal import Decimal
from random import Random
from typing import Any

TABLES = {
    "region": "r_regionkey BIGINT NOT NULL, r_name STRING",
    "nation": "n_nationkey BIGINT NOT NULL, n_name STRING, n_regionkey BIGINT NOT NULL",
    "supplier": "s_suppkey BIGINT NOT NULL, s_name STRING, s_address STRING, s_nationkey BIGINT NOT NULL, s_phone STRING, "
    "s_acctbal DECIMAL(15, 2), s_comment STRING",
    "customer": "c_custkey BIGINT NOT NULL, c_name STRING, c_phone STRING, c_acctbal DECIMAL(15, 2)",
    "part": "p_partkey BIGINT NOT NULL, p_name STRING, p_mfgr STRING, p_brand STRING, p_type STRING, p_size INT, p_container STRING",
    "partsupp": "ps_partkey BIGINT NOT NULL, ps_suppkey BIGINT NOT NULL, ps_availqty INT, ps_supplycost DECIMAL(15, 2)",
    "orders": "o_orderkey BIGINT NOT NULL, o_custkey BIGINT NOT NULL, o_orderstatus STRING, o_totalprice DECIMAL(15, 2), o_orderdate DATE, "
    "o_orderpriority STRING",
    "lineitem": "l_orderkey BIGINT NOT NULL, l_partkey BIGINT NOT NULL, l_suppkey BIGINT NOT NULL, l_quantity DECIMAL(15, 2), "
    "l_extendedprice DECIMAL(15, 2), l_discount DECIMAL(15, 2), l_shipdate DATE, l_commitdate DATE, l_receiptdate DATE",
}

QUERIES = {
    "q2": """
        select s_acctbal, s_name, n_name, p_partkey, p_mfgr, s_address, s_phone, s_comment
        from part, supplier, partsupp, nation, region
        where p_partkey = ps_partkey and s_suppkey = ps_suppkey and p_size = 15 and p_type like '%BRASS' and s_nationkey = n_nationkey
            and n_regionkey = r_regionkey and r_name = 'EUROPE'
            and ps_supplycost = (
                select min(ps_supplycost) from partsupp, supplier, nation, region
                where p_partkey = ps_partkey and s_suppkey = ps_suppkey and s_nationkey = n_nationkey and n_regionkey = r_regionkey
                    and r_name = 'EUROPE')
        order by s_acctbal desc, n_name, s_name, p_partkey limit 100""",
    "q4": """
        select o_orderpriority, count(*) as order_count from orders
        where o_orderdate >= date '1993-07-01' and o_orderdate < date '1993-07-01' + interval '3' month
            and exists (select * from lineitem where l_orderkey = o_orderkey and l_commitdate < l_receiptdate)
        group by o_orderpriority order by o_orderpriority""",
    "q11": """
        select ps_partkey, sum(ps_supplycost * ps_availqty) as value from partsupp, supplier, nation
        where ps_suppkey = s_suppkey and s_nationkey = n_nationkey and n_name = 'GERMANY'
        group by ps_partkey
        having sum(ps_supplycost * ps_availqty) > (
            select sum(ps_supplycost * ps_availqty) * 0.2000000000 from partsupp, supplier, nation
            where ps_suppkey = s_suppkey and s_nationkey = n_nationkey and n_name = 'GERMANY')
        order by value desc""",
    "q15": """
        with revenue0 as (
            select l_suppkey as supplier_no, sum(l_extendedprice * (1 - l_discount)) as total_revenue from lineitem
            where l_shipdate >= date '1996-01-01' and l_shipdate < date '1996-01-01' + interval '3' month
            group by l_suppkey)
        select s_suppkey, s_name, s_address, s_phone, total_revenue from supplier, revenue0
        where s_suppkey = supplier_no and total_revenue = (select max(total_revenue) from revenue0)
        order by s_suppkey""",
    "q16": """
        select p_brand, p_type, p_size, count(distinct ps_suppkey) as supplier_cnt from partsupp, part
        where p_partkey = ps_partkey and p_brand <> 'Brand#45' and p_type not like 'MEDIUM POLISHED%'
            and p_size in (49, 14, 23, 45, 19, 3, 36, 9)
            and ps_suppkey not in (select s_suppkey from supplier where s_comment like '%Customer%Complaints%')
        group by p_brand, p_type, p_size order by supplier_cnt desc, p_brand, p_type, p_size""",
    "q17": """
        select sum(l_extendedprice) / 7.0 as avg_yearly from lineitem, part
        where p_partkey = l_partkey and p_brand = 'Brand#23' and p_container = 'MED BOX'
            and l_quantity < (select 0.2 * avg(l_quantity) from lineitem where l_partkey = p_partkey)""",
    "q18": """
        select c_name, c_custkey, o_orderkey, o_orderdate, o_totalprice, sum(l_quantity) from customer, orders, lineitem
        where o_orderkey in (select l_orderkey from lineitem group by l_orderkey having sum(l_quantity) > 100)
            and c_custkey = o_custkey and o_orderkey = l_orderkey
        group by c_name, c_custkey, o_orderkey, o_orderdate, o_totalprice
        order by o_totalprice desc, o_orderdate limit 100""",
    "q20": """
        select s_name, s_address from supplier, nation
        where s_suppkey in (
                select ps_suppkey from partsupp
                where ps_partkey in (select p_partkey from part where p_name like 'forest%')
                    and ps_availqty > (
                        select 0.5 * sum(l_quantity) from lineitem
                        where l_partkey = ps_partkey and l_suppkey = ps_suppkey and l_shipdate >= date '1994-01-01'
                            and l_shipdate < date '1994-01-01' + interval '1' year))
            and s_nationkey = n_nationkey and n_name = 'CANADA'
        order by s_name""",
    "q21": """
        select s_name, count(*) as numwait from supplier, lineitem l1, orders, nation
        where s_suppkey = l1.l_suppkey and o_orderkey = l1.l_orderkey and o_orderstatus = 'F' and l1.l_receiptdate > l1.l_commitdate
            and exists (select * from lineitem l2 where l2.l_orderkey = l1.l_orderkey and l2.l_suppkey <> l1.l_suppkey)
            and not exists (
                select * from lineitem l3
                where l3.l_orderkey = l1.l_orderkey and l3.l_suppkey <> l1.l_suppkey and l3.l_receiptdate > l3.l_commitdate)
            and s_nationkey = n_nationkey and n_name = 'SAUDI ARABIA'
        group by s_name order by numwait desc, s_name limit 100""",
    "q22": """
        select cntrycode, count(*) as numcust, sum(c_acctbal) as totacctbal
        from (
            select substring(c_phone, 1, 2) as cntrycode, c_acctbal from customer
            where substring(c_phone, 1, 2) in ('13', '31', '23', '29', '30', '18', '17')
                and c_acctbal > (
                    select avg(c_acctbal) from customer
                    where c_acctbal > 0.00 and substring(c_phone, 1, 2) in ('13', '31', '23', '29', '30', '18', '17'))
                and not exists (select * from orders where o_custkey = c_custkey)) as custsale
        group by cntrycode order by cntrycode""",
}
"""By number. Changed: the limits of q11 and q18, so that some groups of small data are below them and some above."""

NATIONS = ("GERMANY", "CANADA", "SAUDI ARABIA", "FRANCE", "JAPAN")
SUPPLIERS, CUSTOMERS, PARTS, ORDERS = 8, 12, 10, 16
Row = tuple[Any, ...]


def _day(rng: Random, year: int, months: tuple[int, int]) -> datetime.date:
    return datetime.date(year, rng.randint(*months), rng.randint(1, 28))


def _money(rng: Random, most: int) -> Decimal:
    return Decimal(rng.randrange(100, most * 100)) / 100


def random_row(rng: Random, table: str, key: int) -> Row:
    """A row of the table, with this key if it has one column as its key."""
    match table:
        case "region":
            return key, ("EUROPE", "ASIA")[key % 2]
        case "nation":
            return key, NATIONS[key % len(NATIONS)], key % 2
        case "supplier":
            comment = rng.choice(("fine", "Customer so Complaints"))
            return key, f"supplier {key}", "street", key % 5, f"{key}", _money(rng, 900), comment
        case "customer":
            return key, f"customer {key}", f"{rng.choice((13, 31, 17, 44))}-123", _money(rng, 900) - 300
        case "part":
            name, brand = rng.choice(("forest green", "red")), rng.choice(("Brand#23", "Brand#45"))
            type_ = rng.choice(("LARGE BRASS", "MEDIUM POLISHED TIN"))
            return key, name, "maker", brand, type_, rng.choice((15, 49, 3)), rng.choice(("MED BOX", "JUMBO"))
        case "partsupp":
            return key % PARTS, key // PARTS, rng.randrange(1, 60), _money(rng, 30)
        case "orders":
            price, day = _money(rng, 5000), _day(rng, 1993, (5, 11))
            return key, rng.randrange(CUSTOMERS), rng.choice("FFO"), price, day, rng.choice(("1-URGENT", "5-LOW"))
        case _:
            ship = _day(rng, rng.choice((1994, 1996)), (1, 6))
            days = [ship + datetime.timedelta(days=rng.randrange(40)) for _ in range(2)]
            line = rng.randrange(ORDERS), rng.randrange(PARTS), rng.randrange(SUPPLIERS), Decimal(rng.choice((1, 2, 40, 50)))
            return *line, _money(rng, 900), Decimal(rng.randrange(10)) / 100, ship, *days


SIZES = {
    "region": 2,
    "nation": 5,
    "supplier": SUPPLIERS,
    "customer": CUSTOMERS,
    "part": PARTS,
    "partsupp": PARTS * SUPPLIERS,
    "orders": ORDERS,
    "lineitem": 60,
}


def refreshes(rng: Random, count: int) -> Iterator[dict[str, tuple[list[Row], list[Row]]]]:
    """(the rows that are added, those that are removed) of each table: a load, then changes of a few rows."""
    content = {table: [random_row(rng, table, key) for key in range(size)] for table, size in SIZES.items()}
    yield {table: (list(rows), []) for table, rows in content.items()}
    for _ in range(count):
        changes: dict[str, tuple[list[Row], list[Row]]] = {}
        for table, rows in content.items():
            places = rng.sample(range(len(rows)), 0 if table in ("region", "nation") else 3)
            removed = [rows[i] for i in places]
            added = [random_row(rng, table, place) for place in places]
            for i, row in zip(places, added, strict=True):
                rows[i] = row
            changes[table] = added, removed
        yield changes
