"""Scalar expressions of the tree into typed ones, over the rows of a scope.

Types are brought together by expr (resolve, cast, case); here names are found and Spark's forms are taken apart. Subqueries do not
come here: bind_query takes them out of WHERE and HAVING first, and one that is left stands where it cannot be answered.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from deltic.errors import AmbiguousName, Span, SyntaxFailure, TypeMismatch, UnknownName, Unsupported
from deltic.expr import Column, Expr, Literal, add_interval, case, cast, resolve
from deltic.frontends.sql import literals
from deltic.frontends.sql.bind_aggregate import Collector, aggregate_of, bind_aggregate
from deltic.frontends.sql.bind_call import bind_call, bind_extract, bind_now, bind_substring, bind_trim
from deltic.frontends.sql.dialect import CALL
from deltic.frontends.sql.scope import OUTER, Scope, did_you_mean
from deltic.frontends.sql.spans import Places
from deltic.frontends.sql.sql_types import sql_type
from deltic.schema import BOOLEAN, DATE, NULL, STRING, TIMESTAMP

OPERATORS: Final[dict[type[exp.Expr], str]] = {
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
    exp.IntDiv: "div",
    exp.Mod: "%",
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.NullSafeEQ: "<=>",
    exp.And: "and",
    exp.Or: "or",
    exp.BitwiseAnd: "&",
    exp.BitwiseOr: "|",
    exp.BitwiseXor: "^",
    exp.DPipe: "||",
}
"""SQL's operators, by the names that expr has for them."""


@dataclass(frozen=True, slots=True)
class ExpressionBinder:
    """Binds the expressions of one clause.

    aliases: lower-case names of select items with what they mean; a list of several meanings is ambiguous.
    aliases_first: they hide the scope's columns (ORDER BY); otherwise the scope's columns hide them.
    keys: in HAVING the scope's columns hide an alias only if they are keys of the GROUP BY; None elsewhere.
    collector: takes the aggregates, where the clause may have some.
    outer: whether the clause may read the enclosing query.
    """

    places: Places
    scope: Scope
    clause: str
    aliases: Mapping[str, Sequence[Expr]] = field(default_factory=dict)
    aliases_first: bool = False
    keys: tuple[Expr, ...] | None = None
    collector: Collector | None = None
    outer: bool = False

    def bind(self, node: exp.Expr) -> Expr:
        """The typed expression, with the node's place."""
        span = self.places.of(node)
        bound = self._bind(node, span)
        return bound if bound.span == span else replace(bound, span=span)

    def condition(self, node: exp.Expr) -> Expr:
        """As `bind`, but BOOLEAN."""
        bound = self.bind(node)
        if bound.type != BOOLEAN:
            expected = f"BOOLEAN, found {bound.type.sql}"
            raise TypeMismatch(f"the condition of {self.clause} is not BOOLEAN", span=bound.span, expected=expected)
        return bound

    def _bind(self, node: exp.Expr, span: Span) -> Expr:
        operator = OPERATORS.get(type(node))
        if operator is not None:
            return self._operator(node, operator, span)
        match node:
            case exp.Paren():
                return self.bind(node.this)
            case exp.Column():
                return self._column(node, span)
            case exp.Literal() | exp.RawString() | exp.Boolean() | exp.Null() | exp.Neg() | exp.Cast():
                return self._constant_or_cast(node, span)
            case exp.Filter() | exp.Anonymous():
                return self._call(node, span)
            case exp.Case() | exp.If():
                return self._case(node, span)
            case exp.Extract():
                return bind_extract(self, node, span)
            case exp.CurrentTimestamp():
                return bind_now(self, span)
            case exp.Trim():
                return bind_trim(self, node, span)
            case exp.Substring():
                return bind_substring(self, node, span)
            case exp.StrPosition():
                return resolve("position", [self.bind(node.args["substr"]), self.bind(node.this)], span)
            case _:
                return self._predicate(node, span)

    def _predicate(self, node: exp.Expr, span: Span) -> Expr:
        match node:
            case exp.Not():
                return resolve("not", [self.bind(node.this)], span)
            case exp.BitwiseNot():
                return resolve("~", [self.bind(node.this)], span)
            case exp.NullSafeNEQ():
                return resolve("not", [resolve("<=>", [self.bind(node.this), self.bind(node.expression)], span)], span)
            case exp.Is():
                return self._is(node, span)
            case exp.Between():
                between = self.places.before(node.args["high"])
                if between is None or between.token_type != TokenType.AND:
                    raise SyntaxFailure("BETWEEN without AND", span=span, expected="x BETWEEN a AND b")
                return resolve("between", [self.bind(node.args[part]) for part in ("this", "low", "high")], span)
            case exp.In() if not node.args.get("query"):
                return resolve("in", [self.bind(part) for part in (node.this, *node.expressions)], span)
            case exp.Like() | exp.Escape():
                return self._like(node, span)
            case _:
                raise self._refused(node, span)

    def _refused(self, node: exp.Expr, span: Span) -> Unsupported:
        match node:
            case exp.In() | exp.Exists():
                remedy = "make it a condition of its own, joined by AND, of WHERE or HAVING, or LEFT JOIN the rows"
                return Unsupported("a subquery is not supported here", span=span, remedy=remedy)
            case exp.Subquery() | exp.Select() | exp.Union() | exp.Except() | exp.Intersect():
                remedy = "join the subquery: CROSS JOIN for one row, LEFT JOIN on its key for one row each"
                return Unsupported("scalar subqueries are not supported", span=span, remedy=remedy)
            case exp.Interval():
                return Unsupported("an INTERVAL as a value is not supported", span=span, remedy="add it to a DATE or a TIMESTAMP")
            case exp.Star():
                return Unsupported("* is not supported here", span=span, remedy="name the columns")
            case _:
                return Unsupported(f"{type(node).__name__.upper()} is not supported here", span=span)

    def _operator(self, node: exp.Expr, name: str, span: Span) -> Expr:
        if isinstance(node, exp.Add | exp.Sub):
            shifted = self._shifted(node, span)
            if shifted is not None:
                return shifted
        return resolve(name, [self.bind(node.this), self.bind(node.expression)], span)

    def _shifted(self, node: exp.Add | exp.Sub, span: Span) -> Expr | None:
        """A DATE or TIMESTAMP moved by a constant interval; None where no interval is added."""
        interval, moment = literals.interval(node.expression, self.places), node.this
        if interval is None and isinstance(node, exp.Add):
            interval, moment = literals.interval(node.this, self.places), node.expression
        if interval is None or literals.interval(moment, self.places) is not None:
            return None
        value = self.bind(moment)
        if value.type not in (DATE, TIMESTAMP):
            raise TypeMismatch(f"an INTERVAL cannot be added to {value.type.sql}", span=value.span, expected="DATE or TIMESTAMP")
        moved = interval if isinstance(node, exp.Add) else -interval
        if value.type == DATE and not moved.whole_days:
            value = cast(value, TIMESTAMP, span)
        return add_interval(value, moved.months, moved.days, moved.microseconds, span)

    def _column(self, node: exp.Column, span: Span) -> Expr:
        if isinstance(node.this, exp.Star):
            raise self._refused(node.this, span)
        name, qualifier = node.name, node.table or None
        meanings = self.aliases.get(name.lower(), ()) if qualifier is None else ()
        found = self.scope.find(name, qualifier)
        if meanings and (self.aliases_first or not found or not self._is_key(self.scope.column(found[0]))):
            return self._only(meanings, name, span)
        if found:
            return self._only([self.scope.column(column) for column in found], name, span)
        return self._outer(name, qualifier, span)

    def _is_key(self, column: Column) -> bool:
        return self.keys is None or column in self.keys

    def _only(self, meanings: Sequence[Expr], name: str, span: Span) -> Expr:
        if any(meaning != meanings[0] for meaning in meanings):
            raise AmbiguousName(f"the name {name!r} is ambiguous", span=span, remedy=self._which(name))
        return replace(meanings[0], span=span)

    def _which(self, name: str) -> str:
        found = [f"{c.qualifier}.{c.name}" for c in self.scope.find(name, None) if c.qualifier]
        return f"write {' or '.join(dict.fromkeys(found))}" if found else "give the columns different names"

    def _outer(self, name: str, qualifier: str | None, span: Span) -> Expr:
        around, depth = self.scope.outer, 1
        while around is not None:
            found = around.find(name, qualifier)
            if found:
                self._check_outer(name, depth, span)
                column = self._only([around.column(one) for one in found], name, span)
                assert isinstance(column, Column)
                return replace(column, index=OUTER + column.index)
            around, depth = around.outer, depth + 1
        raise self._unknown(name, qualifier, span)

    def _check_outer(self, name: str, depth: int, span: Span) -> None:
        if depth > 1:
            raise Unsupported(
                f"{name!r} belongs to a query two levels further out", span=span, remedy="join that table into the query between"
            )
        if not self.outer:
            raise Unsupported(
                f"{name!r} belongs to the query around; it can be read only in the subquery's WHERE",
                span=span,
                remedy="join the two tables",
            )

    def _unknown(self, name: str, qualifier: str | None, span: Span) -> UnknownName:
        if qualifier is not None and not any(c.qualifier and c.qualifier.lower() == qualifier.lower() for c in self.scope.columns):
            known = [c.qualifier for c in self.scope.columns if c.qualifier]
            return UnknownName(f"there is no table {qualifier!r} in FROM", span=span, remedy=did_you_mean(qualifier, known))
        columns = [c.name for c in self.scope.columns if qualifier is None or (c.qualifier or "").lower() == qualifier.lower()]
        shown = name if qualifier is None else f"{qualifier}.{name}"
        return UnknownName(f"there is no column {shown!r}", span=span, remedy=did_you_mean(name, [*columns, *self.aliases]))

    def _constant_or_cast(self, node: exp.Expr, span: Span) -> Expr:
        match node:
            case exp.Literal() if node.is_string:
                return Literal(node.name, STRING, span)
            case exp.RawString():
                return Literal(node.name, STRING, span)
            case exp.Literal():
                return literals.number(node.name, False, span)
            case exp.Boolean():
                return Literal(bool(node.this), BOOLEAN, span)
            case exp.Null():
                return Literal(None, NULL, span)
            case exp.Neg():
                return self._negative(node, span)
            case _:
                assert isinstance(node, exp.Cast)
                return self._suffixed(node, False, span) or self._cast(node, span)

    def _negative(self, node: exp.Neg, span: Span) -> Expr:
        operand = node.this
        if isinstance(operand, exp.Literal) and not operand.is_string:
            return literals.number(operand.name, True, span)
        literal = self._suffixed(operand, True, span) if isinstance(operand, exp.Cast) else None
        return literal or resolve("negate", [self.bind(operand)], span)

    def _suffixed(self, node: exp.Cast, negative: bool, span: Span) -> Literal | None:
        """1L, 1.5BD and the like, which sqlglot makes casts of; None for real casts."""
        operand = node.this
        if not isinstance(operand, exp.Literal) or node.meta.get(CALL):
            return None
        if operand.is_string:
            return None if "start" in operand.meta else literals.big_decimal(operand.name, negative, span)
        at = self.places.of(operand)
        if not at.text[at.end - 1].isalpha():
            return None
        if node.to.this not in literals.SUFFIXES:
            raise SyntaxFailure("this is no number", span=span)
        return literals.suffixed(operand.name, literals.SUFFIXES[node.to.this], negative, span)

    def _is_operator(self, operand: exp.Expr) -> bool:
        """Whether `::` follows."""
        return self.places.text[self.places.of(operand).end :].lstrip().startswith("::")

    def _cast(self, node: exp.Cast, span: Span) -> Expr:
        type, operand = sql_type(node.to, self.places), node.this
        if isinstance(operand, exp.Literal) and not node.meta.get(CALL) and not self._is_operator(operand):
            if type not in (DATE, TIMESTAMP) or not operand.is_string:
                raise Unsupported(f"{type.sql} '…' is no literal", span=span, remedy=f"CAST('…' AS {type.sql})")
            return literals.typed(operand.name, type, span)
        return cast(self.bind(operand), type, span, lenient=isinstance(node, exp.TryCast))

    def _call(self, node: exp.Filter | exp.Anonymous, span: Span) -> Expr:
        aggregate = aggregate_of(node)
        if aggregate is not None:
            return bind_aggregate(self, node, aggregate, span)
        if isinstance(node, exp.Filter):
            raise Unsupported("FILTER belongs to COUNT, SUM, AVG, MIN or MAX", span=span, remedy="CASE WHEN … END")
        return bind_call(self, node, span)

    def _case(self, node: exp.Case | exp.If, span: Span) -> Expr:
        if isinstance(node, exp.If):
            otherwise = node.args.get("false")
            if otherwise is None:
                raise TypeMismatch("IF takes 3 arguments", span=span, expected="IF(condition, value, otherwise)")
            branches = [(self.bind(node.this), self.bind(node.args["true"]))]
        else:
            otherwise = node.args.get("default")
            branches = [(self._when(node.this, branch.this), self.bind(branch.args["true"])) for branch in node.args["ifs"]]
        return case(branches, None if otherwise is None else self.bind(otherwise), span)

    def _when(self, subject: exp.Expr | None, node: exp.Expr) -> Expr:
        condition = self.bind(node)
        return condition if subject is None else resolve("=", [self.bind(subject), condition], condition.span)

    def _is(self, node: exp.Is, span: Span) -> Expr:
        value, tested = self.bind(node.this), node.expression
        if "start" not in tested.meta:
            raise SyntaxFailure("IS is missing", span=span, expected="x IS NULL, x IS NOT NULL")
        if isinstance(tested, exp.Null):
            return resolve("is_null", [value], span)
        if isinstance(tested, exp.Boolean):
            return resolve("is_true" if tested.this else "is_false", [value], span)
        raise self._refused(node, span)

    def _like(self, node: exp.Expr, span: Span) -> Expr:
        inner, escape = (node.this, [self.bind(node.expression)]) if isinstance(node, exp.Escape) else (node, [])
        if not isinstance(inner, exp.Like):
            raise self._refused(node, span)
        matched = resolve("like", [self.bind(inner.this), self.bind(inner.expression), *escape], span)
        return resolve("not", [matched], span) if inner.args.get("negate") else matched
