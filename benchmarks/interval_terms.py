"""Terms of intervals over the columns of `function_samples`, by what they are about."""

# ruff: noqa: E501  data
from __future__ import annotations

from typing import Final

_DAY_TIME: Final = (
    "make_dt_interval(t, h, 0, p)",
    "make_dt_interval(0, t, h)",
    "(d - e)",
    "(ts - tt)",
    "CAST(t AS INTERVAL HOUR)",
    "INTERVAL '1 02:03:04.5' DAY TO SECOND",
)
_MONTHS: Final = ("make_ym_interval(t, h)", "CAST(i AS INTERVAL MONTH)", "CAST(t AS INTERVAL YEAR)", "INTERVAL '-1-2' YEAR TO MONTH")
_SPAN_TYPES: Final = (
    "DAY",
    "DAY TO HOUR",
    "DAY TO MINUTE",
    "DAY TO SECOND",
    "HOUR",
    "HOUR TO MINUTE",
    "HOUR TO SECOND",
    "MINUTE",
    "MINUTE TO SECOND",
    "SECOND",
)
_SPAN_TEXTS: Final = (
    "1",
    "-1",
    "+1",
    " 1 ",
    "1.5",
    "1 2",
    "1 02",
    "-1 02:03",
    "1 2:3:4",
    "1 02:03:04.5",
    "1 02:03:04.123456789",
    "1 24",
    "02:03",
    "02:60",
    "100:03",
    "02:03:04",
    "100:03:04.5",
    "1000:03.5",
    "60",
    "1:60",
    "1  2",
    "- 1",
    "1T2",
    "",
    "x",
    "1.",
    ".5",
    "1 2:3:4.1234567890",
    "106751991",
    "2562047788",
    "9223372036854",
    "INTERVAL '1' DAY",
    "interval '1'  day",
    "INTERVAL -'1' DAY",
    "INTERVAL -'-1' DAY",
    "INTERVAL '1 2:3' DAY TO MINUTE",
    "INTERVAL '1.5' SECOND",
    "INTERVAL'1'DAY",
    "INTERVAL '1' HOUR",
    "1-2",
    "-1-2",
    "1-12",
    "0-11",
    "178956970-7",
    "178956970-8",
    "INTERVAL '1-2' YEAR TO MONTH",
    "2147483647",
    "2147483648",
)
INTERVALS: Final = {
    "struct": ["struct(i AS a, s AS `b c`)", "struct(i AS a, j, i + 1)", "struct(struct(d AS x) AS y).y.x"],
    "time_bucket": [f"time_bucket(INTERVAL {size}, {moment})" for size in ("15 MINUTES", "7 DAYS", "'1.5' SECOND", "1 MONTH", "5 MONTHS", "3 YEARS", "1000 YEARS")
        for moment in ("ts", "CAST(tt AS TIMESTAMP_NTZ)", "ts, TIMESTAMP '2024-01-31 10:00:00'", "NULL")] + ["time_bucket(CAST(NULL AS INTERVAL DAY), ts)",
        "time_bucket(INTERVAL 1 DAY, ts, NULL)", "time_bucket(INTERVAL 1 MONTH, CAST(ts AS TIMESTAMP_NTZ), TIMESTAMP_NTZ '2020-02-29 00:00:00')"],
    "convert_timezone": [f"convert_timezone({zones}, {moment})" for zones in ("'Europe/Paris'", "'Europe/Paris', 'America/New_York'", "'UTC', 'Europe/Paris'", "'+05:30', 'UTC'", "NULL, 'UTC'",
        "'Nowhere', 'UTC'", "a") for moment in ("ts", "CAST(tt AS TIMESTAMP_NTZ)", "d", "NULL")] + ["convert_timezone('Europe/Paris', '2021-03-28 02:30:00')"],
    "make_timestamp_ntz": ["make_timestamp_ntz(2024, t, h, 1, 2, p)", "make_timestamp_ntz(h, 2, 29, t, 59, 60)", "make_timestamp_ntz(2024, 1, 1, 0, 0, u)", "make_timestamp_ntz(NULL, 1, 1, 0, 0, 0)"],
    "try_make_timestamp_ntz": ["try_make_timestamp_ntz(2024, t, h, 1, 2, p)", "try_make_timestamp_ntz(2023, 2, 29, t, 59, 60)", "try_make_timestamp_ntz(2024, 1, 1, 0, 0, t)"],
    "to_timestamp_ntz": ["to_timestamp_ntz(k)", "to_timestamp_ntz(ts)", "to_timestamp_ntz(d)", "to_timestamp_ntz('2024-01-31', 'yyyy-MM-dd')", "to_timestamp_ntz(k, 'yyyy-MM-dd HH:mm:ss')",
        "to_timestamp_ntz(k, NULL)", "to_timestamp_ntz(d, 'yyyy')"],
    "make_dt_interval": [*_DAY_TIME[:2], "make_dt_interval()", "make_dt_interval(t)", "make_dt_interval(i)", "make_dt_interval(i, j, i, r)", "make_dt_interval(u)",
        "make_dt_interval(1, 2, 3, x)", "make_dt_interval(NULL, 1)", "make_dt_interval(0, 0, 0, 4.5678912)"],
    "make_ym_interval": [*_MONTHS[:1], "make_ym_interval()", "make_ym_interval(t)", "make_ym_interval(i, j)", "make_ym_interval(p, x)", "make_ym_interval(NULL)"],
    "interval + interval": [f"{a} {o} {b}" for o in "+-" for values in (_DAY_TIME, _MONTHS) for a in values for b in (*values, "NULL")],
    "interval with number": [f"{a} {o} {b}" for a in (*_DAY_TIME, *_MONTHS) for o, numbers in (("*", "t h l p r w x f 2 NULL 0.5"), ("/", "t h l p w x f 2 NULL 0.3"))
        for b in numbers.split()] + [f"t * {_DAY_TIME[0]}", f"x * {_MONTHS[0]}", "INTERVAL '5' MONTH / 2", "INTERVAL '-5' MONTH / 2"],
    "interval, one": [f"{f}({a})" for f in ("-", "abs", "sign", "positive", "typeof", "hash", "xxhash64", "string", "length") for a in (*_DAY_TIME, *_MONTHS)],
    "moment with interval": [f"{m} {o} {a}" for m in ("d", "ts", "CAST(ts AS TIMESTAMP_NTZ)") for o in "+-" for a in (*_DAY_TIME, *_MONTHS)]
        + [f"{a} + {m}" for m in ("d", "ts") for a in ("INTERVAL 3 DAYS", "INTERVAL 1 WEEK", "INTERVAL '1' MONTH", "INTERVAL 2 HOURS")],
    "moment - moment": [f"{a} - {b}" for a in ("d", "ts", "CAST(ts AS TIMESTAMP_NTZ)") for b in ("e", "tt", "CAST(tt AS TIMESTAMP_NTZ)", "NULL")]
        + ["NULL - d", "d - '2020-01-01'", "'2020-01-01 10:00:00' - ts"],
    "interval compared": [f"{a} {o} {b}" for o in ("=", "<", ">=", "<=>") for a, b in ((_DAY_TIME[0], _DAY_TIME[1]), (_DAY_TIME[2], _DAY_TIME[4]), (_MONTHS[0], _MONTHS[2]), (_MONTHS[1], "NULL"))]
        + [f"{f}({a}, {b})" for f in ("coalesce", "greatest", "least", "nullif", "nvl") for a, b in ((_DAY_TIME[2], _DAY_TIME[4]), (_MONTHS[1], _MONTHS[2]))]
        + [f"{_DAY_TIME[4]} IN (INTERVAL '1' DAY, INTERVAL '1' HOUR)", f"{_DAY_TIME[4]} BETWEEN INTERVAL '-1' DAY AND INTERVAL '1' DAY",
        f"CASE WHEN b THEN {_DAY_TIME[2]} ELSE {_DAY_TIME[4]} END", f"{_DAY_TIME[0]} DIV {_DAY_TIME[1]}", f"{_MONTHS[1]} DIV {_MONTHS[2]}", "array(INTERVAL '1' DAY, INTERVAL '1' HOUR)[0]"],
    "interval cast": [f"CAST({a} AS {t})" for a in _DAY_TIME for t in ("TINYINT", "SMALLINT", "INT", "BIGINT", "DECIMAL(10,2)", "DECIMAL(38,10)", "STRING",
            *(f"INTERVAL {t}" for t in _SPAN_TYPES))]
        + [f"CAST({a} AS {t})" for a in _MONTHS for t in ("TINYINT", "SMALLINT", "INT", "BIGINT", "DECIMAL(5,1)", "STRING", "INTERVAL YEAR", "INTERVAL MONTH", "INTERVAL YEAR TO MONTH")]
        + [f"{c}({v} AS INTERVAL {t})" for c in ("CAST", "TRY_CAST") for v in ["t", "i", "l", "p", "r"] for t in (*_SPAN_TYPES, "YEAR", "MONTH", "YEAR TO MONTH")],
    "interval parsed": [f"TRY_CAST('{v}' AS INTERVAL {t})" for t in (*_SPAN_TYPES, "YEAR", "MONTH", "YEAR TO MONTH") for v in (text.replace("'", "\\'") for text in _SPAN_TEXTS)]
        + [f"CAST(s AS INTERVAL {t})" for t in ("DAY", "YEAR TO MONTH")],
    "interval fields": [f"EXTRACT({field} FROM {a})" for field in ("DAY", "HOUR", "MINUTE", "SECOND") for a in _DAY_TIME[:2]]
        + [f"EXTRACT({field} FROM {_MONTHS[0]})" for field in ("YEAR", "MONTH")] + ["EXTRACT(HOURS FROM CAST(t AS INTERVAL HOUR))", "date_part('DAYS', d - e)", "datepart('SECOND', ts - tt)"],
    "to_json": [f"to_json(named_struct('a', {a}, 'b', array({b})))" for a, b in zip(_DAY_TIME, (*_MONTHS, *_MONTHS), strict=False)] + ["to_json(map(INTERVAL 1 DAY, INTERVAL 2 MONTHS))", "to_json(map(INTERVAL 1 MONTH, INTERVAL 2 SECONDS))"],
    "to_csv": [f"to_csv(named_struct('a', {a}, 'b', {b}))" for a, b in zip(_DAY_TIME, (*_MONTHS, *_MONTHS), strict=False)],
    "from_csv": [f"to_csv(from_csv('{text}', 'a INTERVAL {t}'))" for t in ("DAY", "DAY TO SECOND", "YEAR TO MONTH") for text in (each.replace("'", "\\'") for each in _SPAN_TEXTS[::3])]
        + ["to_csv(from_csv('INTERVAL \\'1 02:03:04.5\\' DAY TO SECOND,x,\"1-2\",4', 'a INTERVAL DAY TO SECOND, b INTERVAL HOUR, c INTERVAL YEAR TO MONTH, d INTERVAL SECOND'))", "from_csv(to_csv(struct(d - e)), 'a INTERVAL DAY')"],
    "hex": [f"hex({a})" for a in (*_DAY_TIME, *_MONTHS)],
    "format_string": [f"format_string('%s|%d|%x|%05d|%b', {a}, {a}, {a}, {a}, {a})" for a in (*_DAY_TIME, *_MONTHS)],
    "interval tried": ["try_add(INTERVAL '106751991' DAY, make_dt_interval(h))", "try_subtract(CAST(i AS INTERVAL MONTH), CAST(i AS INTERVAL MONTH))", "try_multiply(CAST(i AS INTERVAL MONTH), t)",
        "try_divide(d - e, t)", "try_divide(CAST(i AS INTERVAL MONTH), x)", "try_multiply(ts - tt, p)"],
}  # fmt: skip
