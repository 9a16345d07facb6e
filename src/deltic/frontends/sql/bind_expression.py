"""Scalar expressions of the tree into typed ones, over the rows of a scope.

Expr (resolve, cast, case) finds common types; this module resolves names and rewrites Spark's forms.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from deltic.errors import AmbiguousName, Span, SyntaxFailure, TypeMismatch, UnknownName, Unsupported, did_you_mean
from deltic.expr import Call, Cast, Column, Expr, Literal, case, cast, chained, children, resolve
from deltic.expr.functions.signature import CONDITION
from deltic.expr.nodes import LambdaVariable
from deltic.expr.typing import can_cast
from deltic.frontends.sql import interval_literals, literals, tree
from deltic.frontends.sql.bind_aggregate import Collector, aggregate_of, bind_aggregate
from deltic.frontends.sql.bind_call import CLOCK_WORDS, bind_call, bind_extract, bind_now
from deltic.frontends.sql.bind_function import bind_defined
from deltic.frontends.sql.bind_grouping import GROUPING_COLUMN, bind_grouping_column
from deltic.frontends.sql.bind_lambda import HIGHER_ORDER
from deltic.frontends.sql.bind_subquery import Subqueries, denied
from deltic.frontends.sql.bind_time_window import TimeWindow, is_time_window, part_of, value_of
from deltic.frontends.sql.bind_updated_field import updated_field
from deltic.frontends.sql.bind_window import WINDOW_FUNCTIONS, WindowCollector, bind_window, without_over
from deltic.frontends.sql.cursor import DEFAULT_SCHEMA
from deltic.frontends.sql.scope import Body, Scope
from deltic.frontends.sql.sql_types import read_type, sql_type
from deltic.frontends.sql.statement_time import time_literal
from deltic.schema import BOOLEAN, DATE, NULL, STRING, TIME, TIMESTAMP, TIMESTAMP_NTZ
from deltic.stacks import unbounded

_CONSTANTS: Final = {"TRUE": (True, BOOLEAN), "FALSE": (False, BOOLEAN), "NULL": (None, NULL)}
_PREFIXES: Final = {"NOT": "not", "-": "negate", "+": "positive", "~": "~"}
_TESTS: Final = {"NULL": "is_null", "TRUE": "is_true", "FALSE": "is_false", "JSON": "is_json"}


DEPTH: Final = 210
"""How deep a bound expression may be: passes over them are recursive. AND, OR, ||, +, - and * of many operands are not deep."""


@dataclass(frozen=True, slots=True)
class ExpressionBinder:
    """Binds the expressions of one clause.

    aliases: lower-case names of select items with what they mean; a list of several meanings is ambiguous.
    aliases_first: they hide the scope's columns (ORDER BY); otherwise the scope's columns hide them.
    keys: in HAVING the scope's columns hide an alias only if they are keys of the GROUP BY; None elsewhere.
    collector: takes the aggregates, where the clause may have some.
    subqueries: takes the subqueries, where the clause may have some.
    windows: takes the window functions, likewise.
    lambdas: the lambdas around the expression, outermost first: their parameters by lower-case name.
    time_window: the windows of event time of the rows, which are meant by their name where no column is.
    timed: whether conditions may read the time; in WHERE they may.
    body: the call, in the body of a function in SQL.
    """

    scope: Scope
    clause: str
    aliases: Mapping[str, Sequence[Expr]] = field(default_factory=dict)
    aliases_first: bool = False
    keys: tuple[Expr, ...] | None = None
    collector: Collector | None = None
    subqueries: Subqueries | None = None
    windows: WindowCollector | None = None
    lambdas: tuple[Mapping[str, LambdaVariable], ...] = ()
    time_window: TimeWindow | None = None
    timed: bool = False
    body: Body | None = None

    def bind(self, node: tree.Expression) -> Expr:
        """The typed expression, with the node's place. Raises TypeMismatch at a literal that is not a value of the expected type."""
        bound = self._placed(node)
        check_bound(bound, node.span)
        return bound

    @unbounded
    def _placed(self, node: tree.Expression) -> Expr:
        bound = self._bind(node)
        return bound if bound.span == node.span else replace(bound, span=node.span)

    def condition(self, node: tree.Expression, negated: bool = False, *, operand: bool = False) -> Expr:
        """As `bind`, but BOOLEAN. As in Spark, HAVING and QUALIFY cast, and elsewhere AND does a text and a NULL. operand: of AND."""
        bound = self.bind(node)
        if negated:
            bound = resolve("not", [bound], node.span)
        if CONDITION.accept(bound.type) if operand else self.clause in ("HAVING", "QUALIFY") and can_cast(bound.type, BOOLEAN):
            bound = cast(bound, BOOLEAN, node.span)
        if bound.type != BOOLEAN:
            expected = f"BOOLEAN, found {bound.type.sql}"
            raise TypeMismatch(f"the condition of {self.clause} is not BOOLEAN", span=bound.span, expected=expected)
        return bound

    def _bind(self, node: tree.Expression) -> Expr:
        match node:
            case tree.ColumnName():
                return self._column(node)
            case tree.NumberText():
                return literals.number(node)
            case tree.ParameterValue():
                assert isinstance(node.value, Literal | Call)
                return node.value
            case tree.StringText():
                return Literal(node.text, STRING, node.span)
            case tree.IntervalText():
                return interval_literals.bound(node)
            case tree.Operation():
                return self._operation(node)
            case tree.Parenthesised():
                return self._placed(node.inner)
            case tree.RowValue():
                return self._placed(tree.FunctionCall("struct", node.items, False, None, False, node.span))
            case tree.Prefix(operator="NOT") if self.subqueries is not None and (moved := denied(node)) is not None:
                return self._placed(moved)
            case tree.Prefix():
                return resolve(_PREFIXES[node.operator], [self._placed(node.operand)], node.span)
            case tree.OverCall():
                return bind_window(self, node)
            case tree.FunctionCall() if node.name in WINDOW_FUNCTIONS and node.function is None:
                raise without_over(node)
            case tree.FunctionCall() if is_time_window(node):
                return value_of(self, node)
            case tree.FunctionCall():
                return bind_aggregate(self, node) if aggregate_of(node) else bind_call(self, node)
            case tree.DefinedCall():
                return bind_defined(self, node)
            case tree.ExtractCall():
                return bind_extract(self, node)
            case tree.FieldOf():
                return self._fields(self._placed(node.value), [node.field])
            case tree.UpdatedField():
                value = None if node.value is None else self._placed(node.value)
                return updated_field(self._placed(node.struct), node.path, value, node.span, in_null=node.in_null)
            case tree.PathOf():
                variant = self._placed(node.value)
                if variant.type.name == "STRING":
                    raise TypeMismatch("a path reads a VARIANT, not a STRING", span=variant.span, remedy="parse_json(text):path")
                return resolve("variant_get", [variant, Literal(node.path, STRING, node.span)], node.span, written=":")
            case tree.Subscript():
                return resolve("subscript", [self._placed(node.value), self._placed(node.index)], node.span, written="[]")
            case tree.KeywordExpression():
                return self._keyword(node)
            case tree.TypedText():
                return self._typed(node)
            case tree.CastCall():
                bound = cast(self._placed(node.operand), read_type(node.type), node.span, lenient=node.lenient)
                return replace(bound, derived=True) if isinstance(bound, Literal) else bound  # also where the type was that already
            case tree.SearchedCase():
                return self._case(node)
            case _:
                return self._predicate(node)

    def _predicate(self, node: tree.Expression) -> Expr:
        match node:
            case tree.IsTest():
                state, *kind = node.state.split()
                kinds = [Literal(part.lower(), STRING) for part in kind or ["value"] if state == "JSON"]
                bound = resolve(_TESTS[state], [self._placed(node.operand), *kinds], node.span)
            case tree.BetweenTest():
                bound = resolve("between", [self._placed(part) for part in (node.operand, node.low, node.high)], node.span)
            case tree.InList():
                bound = resolve("in", [self._placed(part) for part in (node.operand, *node.values)], node.span)
            case tree.LikeTest():
                escape = () if node.escape is None else (node.escape,)
                bound = resolve(
                    "ilike" if node.folded else "like", [self._placed(part) for part in (node.operand, node.pattern, *escape)], node.span
                )
            case tree.ScalarQuery() | tree.ExistsTest() | tree.InQuery() | tree.QuantifiedTest() if self.subqueries is not None:
                return self.subqueries.bind(self, node)
            case tree.DistinctTest():
                same = resolve("<=>", [self._placed(node.left), self._placed(node.right)], node.span)
                return same if node.negated else resolve("not", [same], node.span)
            case _:
                raise self._refused(node)
        return resolve("not", [bound], node.span) if node.negated else bound

    def _refused(self, node: tree.Expression) -> Unsupported:
        match node:
            case tree.InQuery() | tree.ExistsTest() | tree.ScalarQuery() | tree.QuantifiedTest():
                remedy = "select its value in a subquery of FROM, and read that"
                return Unsupported(f"a subquery is not supported in {self.clause}", span=node.span, remedy=remedy)
            case tree.NamedArgument():
                message = "named arguments are for functions of users, mask and explode"
                return Unsupported(message, span=node.span, remedy="give the arguments in their order")
            case tree.Star():
                return Unsupported("* is not supported here", span=node.span, remedy="name the columns")
            case _:
                assert isinstance(node, tree.LambdaText), node
                return Unsupported("a lambda is not an argument of this function", span=node.span, remedy=f"{HIGHER_ORDER} take lambdas")

    def _operation(self, node: tree.Operation) -> Expr:
        """Operators of one level, folded from the left; AND, OR and || of many operands are one call."""
        if node.operators[0] in ("AND", "OR") or set(node.operators) == {"||"}:
            return resolve(node.operators[0].lower(), [self._placed(part) for part in node.operands], node.span)
        bound = self._placed(node.operands[0])
        for operator, operand in zip(node.operators, node.operands[1:], strict=True):
            bound = resolve(operator.lower(), [bound, self._placed(operand)], replace(node.span, end=operand.span.end))
        return chained(bound)

    def _column(self, node: tree.ColumnName) -> Expr:
        """A column, or a variable where there is none."""
        if node.variable is None:
            return self._column_named(node)
        try:
            return self._column_named(node)
        except UnknownName:
            assert isinstance(node.variable.value, Literal | Call | Cast)
            return self._fields(replace(node.variable.value, span=node.span), node.variable.fields)

    def _column_named(self, node: tree.ColumnName) -> Expr:
        """table.column.field…, or column.field…: the first is meant where there is such a table with such a column, as in Spark."""
        first, *rest = self._joined(node.parts)
        if (variable := self._variable(first)) is not None:
            return self._fields(variable, rest)
        if rest and not self.scope.find(rest[0].text, first.text) and (nested := self._names_nested(first)) is not None:
            return self._fields(replace(nested, span=first.span), rest)
        if rest:
            span = replace(node.span, end=rest[0].span.end)
            return self._fields(self._named(rest[0].text, first.text, span), rest[1:])
        return self._named(first.text, None, node.span)

    def _joined(self, names: Sequence[tree.Name]) -> Sequence[tree.Name]:
        """schema.table.column… with the schema and the table as one name, if there is such a table and no struct of the first name."""
        if len(names) < 3 or self.scope.find(names[0].text, None) or self.scope.find(names[1].text, names[0].text):
            return names
        first, second = names[:2]
        table = f"{first.text}.{second.text}" if first.text.lower() != DEFAULT_SCHEMA else second.text
        around: Scope | None = self.scope
        while around is not None:
            if around.star(table):
                return (tree.Name(table, replace(first.span, end=second.span.end)), *names[2:])
            around = None if around.outer is None else around.outer.scope
        return names

    def _variable(self, name: tree.Name) -> LambdaVariable | None:
        """The parameter of a lambda, which hides columns."""
        parameter = next((one[name.text.lower()] for one in reversed(self.lambdas) if name.text.lower() in one), None)
        return None if parameter is None else replace(parameter, span=name.span)

    def _names_nested(self, name: tree.Name) -> Expr | None:
        """The nested column, or alias, that a name alone means; None if it means none."""
        matches = [*map(self.scope.column, self.scope.find(name.text, None)), *self.aliases.get(name.text.lower(), ())]
        if not matches and self.time_window is not None and self.time_window.is_named(name.text):
            matches = [self.time_window.value]
        return self._named(name.text, None, name.span) if matches and matches[0].type.is_nested else None

    def _fields(self, value: Expr, names: Sequence[tree.Name]) -> Expr:
        for name in names:
            span = name.span if value.span is None else replace(value.span, end=name.span.end)
            part = resolve("field", [value, Literal(name.text, STRING, name.span)], span)
            if self.time_window is not None and value == self.time_window.value:
                part = part_of(part)
            value = replace(part, span=span)
        return value

    def _named(self, name: str, qualifier: str | None, span: Span) -> Expr:
        meanings = self.aliases.get(name.lower(), ()) if qualifier is None else ()
        matches = self.scope.find(name, qualifier)
        if meanings and (self.aliases_first or not matches or not self._is_key(self.scope.column(matches[0]))):
            return self._only(meanings, name, span)
        if matches:
            return self._only([self.scope.column(column) for column in matches], name, span)
        if qualifier is None and self.time_window is not None and self.time_window.is_named(name):
            return replace(self.time_window.value, span=span)
        return self._outer(name, qualifier, span)

    def _is_key(self, column: Column) -> bool:
        return self.keys is None or column in self.keys

    def _only(self, meanings: Sequence[Expr], name: str, span: Span) -> Expr:
        if any(meaning != meanings[0] for meaning in meanings):
            raise AmbiguousName(f"the name {name!r} is ambiguous", span=span, remedy=self._which(name))
        return replace(meanings[0], span=span)

    def _which(self, name: str) -> str:
        matches = [f"{c.qualifier}.{c.name}" for c in self.scope.find(name, None) if c.qualifier]
        return f"write {' or '.join(dict.fromkeys(matches))}" if matches else "give the columns different names"

    def _outer(self, name: str, qualifier: str | None, span: Span) -> Expr:
        for around in self.scope.around():
            matches = around.scope.find(name, qualifier)
            if matches:
                column = self._only([around.scope.column(one) for one in matches], name, span)
                assert isinstance(column, Column)
                return around.column(column)
        if name.lower() == GROUPING_COLUMN and qualifier is None and self.collector is not None:
            return bind_grouping_column(span)
        raise self._unknown(name, qualifier, span)

    def _unknown(self, name: str, qualifier: str | None, span: Span) -> UnknownName:
        if qualifier is not None and not any(c.qualifier and c.qualifier.lower() == qualifier.lower() for c in self.scope.columns):
            tables = [c.qualifier for c in self.scope.columns if c.qualifier]
            return UnknownName(f"there is no table {qualifier!r} in FROM", span=span, remedy=did_you_mean(qualifier, tables))
        columns = [c.name for c in self.scope.columns if qualifier is None or (c.qualifier or "").lower() == qualifier.lower()]
        if qualifier is None and name.upper() == "DEFAULT":
            remedy = "it stands alone for the value of a column: VALUES (1, DEFAULT), SELECT id, DEFAULT, or SET x = DEFAULT"
            return UnknownName("DEFAULT has no meaning here", span=span, remedy=remedy)
        shown = name if qualifier is None else f"{qualifier}.{name}"
        return UnknownName(f"there is no column {shown!r}", span=span, remedy=did_you_mean(name, [*columns, *self.aliases]))

    def _keyword(self, node: tree.KeywordExpression) -> Expr:
        if node.word in _CONSTANTS:
            return Literal(*_CONSTANTS[node.word], node.span)
        matches = self.scope.find(node.word, None)
        if matches:
            return self._only([self.scope.column(column) for column in matches], node.word, node.span)
        if node.now_us is not None:
            return time_literal(node.word.lower(), node.now_us, (), node.span)
        if node.word in ("CURRENT_TIMESTAMP", "CURRENT_DATE"):
            return bind_now(self, node.word.lower(), node.span)
        message, remedy = CLOCK_WORDS[node.word]
        raise Unsupported(message, span=node.span, remedy=remedy)

    def _typed(self, node: tree.TypedText) -> Literal:
        word = node.type.text.upper()
        if word == "X":
            return literals.binary(node.text, node.span)
        type = sql_type(tree.TypeName(word, (), None, node.type.span))
        if type not in (DATE, TIMESTAMP, TIMESTAMP_NTZ, TIME):
            raise Unsupported(f"invalid literal {type.sql} '…'", span=node.span, remedy=f"CAST('…' AS {type.sql})")
        return literals.typed(node.text, type, node.span)

    def _case(self, node: tree.SearchedCase) -> Expr:
        subject = None if node.subject is None else self._placed(node.subject)
        branches = []
        for when, then in node.branches:
            condition = self._placed(when)
            if subject is None and condition.type == NULL:
                raise TypeMismatch("a condition is not BOOLEAN", span=condition.span, expected="BOOLEAN, found NULL")
            branches.append((condition if subject is None else resolve("=", [subject, condition], condition.span), self._placed(then)))
        return case(branches, None if node.otherwise is None else self._placed(node.otherwise), node.span)


def check_bound(bound: Expr, span: Span) -> None:
    """Raises SyntaxFailure for an expression that is too deep, and TypeMismatch for a literal that is not a value of the expected type."""
    waiting, deepest = [(bound, 1)], dict[int, int]()
    while waiting:
        part, depth = waiting.pop()
        if deepest.get(id(part), 0) >= depth:  # a shared part
            continue
        deepest[id(part)] = depth
        if depth > DEPTH:
            remedy = "split it into views, or into columns of a subquery"
            raise SyntaxFailure("the expression is nested too deeply", span=span, expected=f"at most {DEPTH} operators deep", remedy=remedy)
        if isinstance(part, Cast) and isinstance(part.argument, Literal):
            literals.check_literal(part, part.argument)
        waiting.extend((child, depth + 1) for child in children(part))
