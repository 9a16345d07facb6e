"""What of SQL is understood: for each kind of node of the tree, the arguments that the binder reads.

What always holds: a statement that passes `refuse_unknown` has nothing in its tree that the binder would pass by. Whatever else is
set is Unsupported, with its place and what is possible instead. Only Spark's hints (hints.py), comments and
COMMENT '…' are read and dropped: none of them changes a result.
"""

from __future__ import annotations

import re
from typing import Final

from sqlglot import exp

from deltic.errors import Span, SyntaxFailure, Unsupported
from deltic.frontends.sql.spans import Places

Names = frozenset[str]


def _known(*groups: tuple[str, str]) -> dict[type[exp.Expr], Names]:
    return {getattr(exp, kind): frozenset(arguments.split()) for kinds, arguments in groups for kind in kinds.split()}


KNOWN: Final = _known(
    ("Select", "expressions distinct from_ joins laterals where group having order limit with_ hint"),
    ("Union Except Intersect", "this expression distinct order limit with_"),
    ("Subquery", "this alias order limit with_"),
    ("Values", "expressions alias"),
    ("With", "expressions recursive"),
    ("CTE", "this alias"),
    ("From Where Having Exists Neg Not BitwiseNot Paren Var DataTypeParam", "this"),
    ("Group", "expressions all"),
    ("Order Distinct Tuple", "expressions"),
    ("Ordered", "this desc nulls_first"),
    ("Limit", "expression"),
    ("Table", "this alias joins"),
    ("TableAlias", "this columns"),
    ("Join", "this side kind on using method"),
    ("Star", "except_"),
    ("Column", "this table"),
    ("Identifier", "this quoted"),
    ("Literal", "this is_string"),
    ("Boolean RawString", "this"),
    ("Null CurrentTimestamp MaterializedProperty TemporaryProperty IndexParameters NotNullColumnConstraint PrimaryKeyColumnConstraint", ""),
    ("Alias", "this alias"),
    ("Aliases", "this expressions"),
    ("Lateral", "this view outer alias"),
    ("Add Sub Mul IntDiv Mod EQ NEQ GT GTE LT LTE NullSafeEQ NullSafeNEQ And Or Is", "this expression"),
    ("BitwiseAnd BitwiseOr BitwiseXor Escape IntervalSpan", "this expression"),
    ("DPipe Div", "this expression safe"),  # `safe` is a mark of sqlglot's own
    ("Like", "this expression negate"),
    ("Between", "this low high"),
    ("In", "this expressions query"),
    ("Case", "this ifs default"),
    ("If", "this true false"),
    ("Cast", "this to"),
    ("TryCast", "this to safe"),
    ("DataType", "this expressions nested"),
    ("Interval", "this unit"),
    ("Anonymous", "this expressions"),
    ("Filter Extract", "this expression"),
    ("Trim", "this expression position"),
    ("Substring", "this start length"),
    ("StrPosition", "this substr"),
    ("Create", "this kind replace exists expression properties"),
    ("Schema Properties", "this expressions"),
    ("ColumnDef", "this kind constraints"),
    ("ColumnConstraint", "kind"),
    ("PrimaryKey", "expressions include"),
    ("Constraint", "this expressions"),
    ("CommentColumnConstraint SchemaCommentProperty", "this"),
    ("Drop", "tables kind exists materialized"),
)

LEAVE_OUT: Final = "leave it out"
_LIMITED = "ORDER BY … LIMIT n keeps the first n rows"
_GROUPED = "one view per grouping, and UNION ALL of them"
_TRANSACTION = "change tables with session.transaction(): insert, upsert, delete"
_CLOCK = "in WHERE, compare with now(); or keep the time in a table of one row and join it"

REFUSED: Final[dict[type[exp.Expr], tuple[str, str]]] = {
    exp.Window: ("window functions are not supported", f"{_LIMITED}; GROUP BY and a join give totals beside rows"),
    exp.Qualify: ("QUALIFY is not supported", _LIMITED),
    exp.Unnest: ("UNNEST is not supported", "explode(array(…))"),
    exp.Pivot: ("PIVOT and UNPIVOT are not supported", "SUM(x) FILTER (WHERE …) for each column"),
    exp.TableSample: ("TABLESAMPLE is not supported: its result changes from run to run", "filter on a hash of the key"),
    exp.Rollup: ("ROLLUP is not supported", _GROUPED),
    exp.Cube: ("CUBE is not supported", _GROUPED),
    exp.GroupingSets: ("GROUPING SETS are not supported", _GROUPED),
    exp.Offset: ("OFFSET is not supported", _LIMITED),
    exp.Fetch: ("FETCH is not supported", "LIMIT n"),
    exp.Sort: ("SORT BY is not supported", _LIMITED),
    exp.Cluster: ("CLUSTER BY is not supported", "leave it out: it changes no result"),
    exp.Insert: ("INSERT is not a statement of a script", _TRANSACTION),
    exp.Update: ("UPDATE is not a statement of a script", _TRANSACTION),
    exp.Delete: ("DELETE is not a statement of a script", _TRANSACTION),
    exp.Merge: ("MERGE is not a statement of a script", _TRANSACTION),
    exp.TruncateTable: ("TRUNCATE is not a statement of a script", _TRANSACTION),
    exp.Alter: ("ALTER is not supported", "DROP and CREATE it again, or CREATE OR REPLACE a view"),
    exp.CurrentDate: ("current_date changes from moment to moment", _CLOCK),
    exp.CurrentUser: ("current_user depends on who asks", "write the name"),
    exp.SessionUser: ("session_user depends on who asks", "write the name"),
    exp.Bracket: ("arrays, maps and their elements are not supported", "a table with one row for each element"),
    exp.Dot: ("struct fields are not supported", "a column for each field"),
    exp.IgnoreNulls: ("IGNORE NULLS is not supported", "FILTER (WHERE x IS NOT NULL)"),
    exp.RespectNulls: ("RESPECT NULLS is not supported", "leave it out"),
    exp.WithinGroup: ("WITHIN GROUP is not supported", "COUNT, SUM, AVG, MIN and MAX are"),
    exp.Collate: ("COLLATE is not supported: strings compare by their bytes", "compare lower(x)"),
    exp.AtTimeZone: ("AT TIME ZONE is not supported: timestamps are in UTC", "add an INTERVAL"),
    exp.Lambda: ("lambda functions are not supported", "a table with one row for each element"),
    exp.Placeholder: ("parameters are not supported", "write the value"),
    exp.Parameter: ("parameters are not supported", "write the value"),
    exp.RecursiveWithSearch: ("SEARCH and CYCLE are not supported", "UNION instead of UNION ALL ends on cycles"),
    exp.FileFormatProperty: ("USING does not fit here", "CREATE TABLE name (column type, …) USING parquet OPTIONS (path '…')"),
    exp.LocationProperty: ("LOCATION does not fit here", "CREATE TABLE name (column type, …) USING parquet LOCATION '…'"),
    exp.PartitionedByProperty: ("PARTITIONED BY is not supported: Deltic shards by the key", "leave it out"),
    exp.DefaultColumnConstraint: ("DEFAULT is not supported", "give every column in the frame"),
    exp.CheckColumnConstraint: ("CHECK is not supported", "a view of the rows that break the rule"),
    exp.ForeignKey: ("FOREIGN KEY is not supported", "a view with LEFT ANTI JOIN of the rows that break it"),
    exp.UniqueColumnConstraint: ("UNIQUE is not supported", "PRIMARY KEY, or a view of the values that occur twice"),
    exp.JSONExtract: ("-> is not supported", "a column for each field"),
    exp.Coalesce: ("?? is not supported", "coalesce(a, b)"),
    exp.Into: ("SELECT … INTO is not supported", "CREATE VIEW name AS SELECT …"),
    exp.Reference: ("REFERENCES is not supported", "a view with LEFT ANTI JOIN of the rows that break it"),
    exp.LikeProperty: ("CREATE TABLE … LIKE is not supported", "list the columns"),
    exp.StreamingTableProperty: ("STREAMING TABLE is not supported", "CREATE TABLE, fed with session.apply()"),
    exp.ILike: ("ILIKE is not supported", "lower(x) LIKE 'pattern'"),
    exp.RegexpLike: ("RLIKE is not supported", "LIKE, contains(), startswith(), endswith()"),
    exp.Any: ("ANY is not supported", "IN, or conditions with OR"),
    exp.All: ("ALL is not supported", "conditions with AND"),
}

REFUSED_ARGUMENTS: Final[dict[tuple[type[exp.Expr], str], tuple[str, str]]] = {
    (exp.Group, "rollup"): REFUSED[exp.Rollup],
    (exp.Group, "cube"): REFUSED[exp.Cube],
    (exp.Group, "grouping_sets"): REFUSED[exp.GroupingSets],
    (exp.Select, "windows"): REFUSED[exp.Window],
    (exp.Select, "distribute"): ("DISTRIBUTE BY is not supported", "leave it out: it changes no result"),
    (exp.Limit, "offset"): REFUSED[exp.Offset],
    (exp.Column, "db"): ("a column is named by column or table.column", "give the table an alias"),
    (exp.Table, "db"): ("tables have one name, without a database", "leave the database out"),
    (exp.Union, "by_name"): ("UNION BY NAME is not supported", "list the columns in one order"),
    (exp.Between, "symmetric"): ("BETWEEN SYMMETRIC is not supported", "BETWEEN least(a, b) AND greatest(a, b)"),
    (exp.Drop, "cascade"): ("DROP … CASCADE is not supported", "drop the views that read it first"),
}

_KEYWORDS: Final = {
    "purge": "PURGE",
    "rollup": "ROLLUP",
    "cube": "CUBE",
    "grouping_sets": "GROUPING",
    "windows": "WINDOW",
    "distribute": "DISTRIBUTE",
    "by_name": "NAME",
    "cascade": "CASCADE",
    "qualify": "QUALIFY",
    "sort": "SORT",
    "cluster": "CLUSTER",
    "pivots": "PIVOT",
    "symmetric": "SYMMETRIC",
}
_UNREAD: Final = {"hint"}


def refuse_unknown(tree: exp.Expr, places: Places) -> None:
    """Raises Unsupported at the first node or argument that the binder would not read."""
    known = KNOWN.get(type(tree))
    if known is None:
        raise _unsupported(tree, places)
    for argument, value in tree.args.items():
        if _is_set(value) and argument not in known:
            raise _unsupported_argument(tree, argument, places)
    if isinstance(tree, exp.Identifier):
        _check_identifier(tree, places)
    for argument, value in tree.args.items():
        for part in value if isinstance(value, list) else [value]:
            if isinstance(part, exp.Expr) and argument not in _UNREAD:
                refuse_unknown(part, places)


def _check_identifier(node: exp.Identifier, places: Places) -> None:
    """sqlglot takes strings, numbers and signs for names, too."""
    start = node.meta.get("start")
    if start is not None and not re.match(r"`|\d*[^\W\d]", places.text[start : node.meta["end"] + 1]):
        raise SyntaxFailure("this is no name", span=places.of(node), remedy="put it in `back quotes`")


def _is_set(value: object) -> bool:
    return value is not None and value is not False and value != []


def _unsupported(node: exp.Expr, places: Places) -> Unsupported:
    message, remedy = next(
        (told for kind, told in REFUSED.items() if isinstance(node, kind)), (f"{_words(node)} is not supported", LEAVE_OUT)
    )
    return Unsupported(message, span=places.of(node), remedy=remedy)


def _unsupported_argument(node: exp.Expr, argument: str, places: Places) -> Unsupported:
    value = node.args[argument]
    first = value[0] if isinstance(value, list) else value
    told = REFUSED_ARGUMENTS.get((type(node), argument))
    if told is None and isinstance(first, exp.Expr) and type(first) not in KNOWN:
        return _unsupported(first, places)
    message, remedy = told or (f"{argument.rstrip('_').replace('_', ' ').upper()} is not supported in {_words(node)}", LEAVE_OUT)
    return Unsupported(message, span=_place(node, argument, first, places), remedy=remedy)


def _place(node: exp.Expr, argument: str, value: object, places: Places) -> Span:
    whole = places.of(node)
    if argument in _KEYWORDS:
        found = places.keyword(_KEYWORDS[argument], after=max(0, whole.start - 20))
        if found != places.statement:
            return found
    return places.of(value) if isinstance(value, exp.Expr) and places.of(value) != places.statement else whole


def _words(node: exp.Expr) -> str:
    """CurrentDate as CURRENT DATE."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", type(node).__name__).upper().removesuffix(" PROPERTY").removesuffix(" COLUMN CONSTRAINT")
