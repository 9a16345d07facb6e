"""Test support: the rows of queries of TPC-H and TPC-DS that have no answer on those of tpc_rows.py as they are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from tpc_rows import Shape

_FEW_CUSTOMERS: Final = {name: (1, 2, 3) for name in ("ss_customer_sk", "cs_bill_customer_sk", "ws_bill_customer_sk")}
_GROWING: Final = {**_FEW_CUSTOMERS, "d_year": (2001, 2002)}
_ONE_WEEK: Final = {"d_week_seq": (5270,)}
_ONE_DAY: Final = {**_ONE_WEEK, "d_moy": (12,), **{name: (1, 2) for name in ("i_brand_id", "i_class_id", "i_category_id")}}
_ONE_PRICE: Final = {f"{each}_ext_sales_price": (100,) for each in ("ss", "cs", "ws")}
_FREQUENT: Final[Mapping[str, tuple[Any, ...]]] = {
    "ss_ticket_number": (1, 2),
    "ss_customer_sk": (1,),
    "ss_item_sk": tuple(range(1, 41)),
    "d_dom": (1, 2, 26),
    "d_year": (1999, 2000),
    "hd_buy_potential": (">10000", "unknown"),
    "hd_vehicle_count": (1, 2),
    "hd_dep_count": (4,),
    "s_county": ("Williamson County",),
}
_SPREAD: Final = {"inv_warehouse_sk": (1,), "inv_quantity_on_hand": (1, 1, 1, 900), "d_moy": (1, 2), "d_year": (2001,)}
_RETURNED: Final = {name: (20000, 30000) for name in ("sr_return_amt", "cr_return_amount", "wr_return_amt")} | {
    "d_moy": (12,),
    "d_year": (2001,),
}
_MONTHLY: Final = {
    **{name: ("a",) for name in ("i_category", "i_brand", "s_store_name", "s_company_name", "cc_name")},
    "d_moy": (1, 2, 3, 4),
    "d_year": (1999,),
}
_ONE_COUNTRY: Final = {
    "c_birth_country": ("UNITED STATES",),
    "ca_country": ("United States",),
    "s_zip": ("12345",),
    "ca_zip": ("12345", "23456"),
    "i_color": ("pale", "peach", "chiffon"),
    "s_market_id": (8,),
    "ss_customer_sk": (1, 2, 3, 4),
    "c_current_addr_sk": (1, 2, 3),
}
_TWO_YEARS: Final = {
    "d_year": (1999, 2000),
    "i_current_price": (66, 70),
    "ss_store_sk": (1,),
    "cs_ext_list_price": (100,),
    "cr_refunded_cash": (1,),
    "cr_reversed_charge": (1,),
    "cr_store_credit": (1,),
}
_UNRETURNED: Final = {**_FEW_CUSTOMERS, "d_year": (2000,), "sr_ticket_number": (900,), "cr_order_number": (900,), "wr_order_number": (900,)}

SHAPES: Final[Mapping[tuple[str, str], Shape]] = {
    ("tpch", "q18"): Shape(values={"l_quantity": (50, 200)}),
    ("tpch", "q22"): Shape(values={"o_custkey": tuple(range(1, 9))}),
    ("tpcds", "q4"): Shape(values=_GROWING),
    ("tpcds", "q6"): Shape(values={"d_month_seq": (1200,)}),
    ("tpcds", "q8"): Shape(values={"ca_zip": ("24128", "24206"), "c_preferred_cust_flag": ("Y",), "s_zip": ("24128", "24206")}),
    ("tpcds", "q11"): Shape(values=_GROWING),
    ("tpcds", "q13"): Shape(
        values={
            "cd_marital_status": ("M", "S"),
            "cd_education_status": ("Advanced Degree", "College"),
            "hd_dep_count": (3, 1),
            "ss_sales_price": (100,),
            "ss_net_profit": (150, 160),
            "ca_country": ("United States",),
            "d_year": (2001,),
        }
    ),
    ("tpcds", "q14b"): Shape(days=True, values={**_ONE_DAY, "d_year": (1999, 2000)}),
    ("tpcds", "q24a"): Shape(values=_ONE_COUNTRY),
    ("tpcds", "q24b"): Shape(values=_ONE_COUNTRY),
    ("tpcds", "q29"): Shape(values=_FEW_CUSTOMERS),
    ("tpcds", "q31"): Shape(values={"ca_county": ("a", "b", "c", "d"), "d_qoy": (1, 2, 3), "d_year": (2000,)}),
    ("tpcds", "q34"): Shape(others=40, values=_FREQUENT),
    ("tpcds", "q39a"): Shape(values=_SPREAD),
    ("tpcds", "q39b"): Shape(values=_SPREAD),
    ("tpcds", "q41"): Shape(
        values={
            "i_manufact": ("m",),
            "i_category": ("Women",),
            "i_color": ("powder", "khaki"),
            "i_units": ("Ounce", "Oz"),
            "i_size": ("medium", "extra large"),
        }
    ),
    ("tpcds", "q47"): Shape(values=_MONTHLY),
    ("tpcds", "q49"): Shape(values=_RETURNED),
    ("tpcds", "q54"): Shape(
        values={
            **_FEW_CUSTOMERS,
            **{name: ("a",) for name in ("ca_county", "s_county", "ca_state", "s_state")},
            "d_year": (1998, 1999),
            "d_moy": (12, 1),
        },
        months=True,
    ),
    ("tpcds", "q58"): Shape(facts=30, days=True, values={**_ONE_WEEK, **_ONE_PRICE}),
    ("tpcds", "q59"): Shape(values={"ss_store_sk": (1, 2), "d_week_seq": (5270, 5322)}),
    ("tpcds", "q61"): Shape(
        values={
            "d_year": (1998,),
            "d_moy": (11,),
            "ca_gmt_offset": (-5,),
            "s_gmt_offset": (-5,),
            "i_category": ("Jewelry", "Books"),
        }
    ),
    ("tpcds", "q64"): Shape(values=_TWO_YEARS),
    ("tpcds", "q65"): Shape(facts=40, values={"ss_sales_price": (1, 200, 300), "d_month_seq": (1176,)}),
    ("tpcds", "q69"): Shape(values={"ws_bill_customer_sk": (1, 2, 3), "cs_ship_customer_sk": (1, 2, 3)}),
    ("tpcds", "q78"): Shape(values=_UNRETURNED),
    ("tpcds", "q84"): Shape(facts=30),
    ("tpcds", "q85"): Shape(
        values={
            "cd_marital_status": ("M", "S"),
            "cd_education_status": ("Advanced Degree", "College"),
            "ws_sales_price": (100,),
            "ws_net_profit": (150, 160),
            "ca_country": ("United States",),
            "d_year": (2000,),
        }
    ),
    ("tpcds", "q94"): Shape(values={"wr_order_number": (900,)}),
    ("tpcds_2_7", "q6"): Shape(values={"d_month_seq": (1200,)}),
    ("tpcds_2_7", "q11"): Shape(values=_GROWING),
    ("tpcds_2_7", "q14"): Shape(days=True, values={**_ONE_DAY, "d_year": (1998, 1999)}),
    ("tpcds_2_7", "q24"): Shape(values=_ONE_COUNTRY),
    ("tpcds_2_7", "q34"): Shape(others=40, values=_FREQUENT),
    ("tpcds_2_7", "q49"): Shape(values=_RETURNED),
    ("tpcds_2_7", "q64"): Shape(values=_TWO_YEARS),
    ("tpcds_2_7", "q78"): Shape(values=_UNRETURNED),
}
"""By suite and query."""


def shape_of(suite: str, name: str) -> Shape:
    return SHAPES.get((suite, name), Shape())
