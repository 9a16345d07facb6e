"""Expressions: booleanExpression, valueExpression and primaryExpression of Spark's grammar (SqlBaseParser.g4), as one operator parser.

Operators have the precedence levels of Spark's grammar and are left-associative. A predicate (IS, IN, BETWEEN, LIKE) follows a value at
most once, and only AND and OR can follow it. Spark's expressions that are not supported raise Unsupported at their place.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Final

from deltic.errors import SyntaxFailure, Unsupported
from deltic.frontends.sql import tree
from deltic.frontends.sql.interval_literals import UNITS
from deltic.frontends.sql.lexer import NUMBER, QUOTED, STRING, WORD
from deltic.frontends.sql.named_arguments import has_names, in_order, of_builtin
from deltic.frontends.sql.parse_path import path_of
from deltic.frontends.sql.parse_window import WindowParser
from deltic.frontends.sql.refusals import AFTER_ARGUMENT, AFTER_OPERAND, AFTER_VALUE, OPERANDS, refuse
from deltic.stacks import unbounded

OR, AND, NOT, PREDICATE, COMPARISON = 1, 2, 3, 4, 5
_TABLE: Final = {
    OR: "OR",
    AND: "AND",
    COMPARISON: "= == <> != < <= > >= !> !< <=>",
    6: "|",
    7: "^",
    8: "&",
    9: "<< >> >>>",
    10: "+ - ||",
    11: "* / % DIV",
}
LEVELS: Final = {operator: level for level, operators in _TABLE.items() for operator in operators.split()}
UNARY: Final = 12
_ENDS: Final = frozenset({",", ")", "AND", "OR", "THEN"})
_PREDICATES: Final = frozenset({"NOT", "IS", "IN", "BETWEEN", "LIKE", "ILIKE", "RLIKE", "REGEXP"})
_QUANTIFIERS: Final = ("ANY", "SOME", "ALL")
_SAME: Final = {"==": "=", "!=": "<>", "!>": "<=", "!<": ">="}

NO_OPERANDS: Final = frozenset((
    "FROM", "WHERE", "GROUP", "HAVING", "ORDER", "LIMIT", "UNION", "EXCEPT", "INTERSECT", "JOIN", "ON", "USING", "AND", "OR", "AS", "WHEN",
    "THEN", "ELSE", "SELECT", "IN", "IS", "LIKE", "BETWEEN", "DISTINCT", "OVER", "WITH",
))  # fmt: skip
"""Words that cannot be columns where an operand is expected, unless in back quotes."""

_AFTER_VALUE: Final = ("::", "[", ".", ":", "COLLATE")
"""What may follow a value: a cast, a subscript, a field."""
CLOCKS: Final = frozenset(("CURRENT_DATE", "CURRENT_TIMESTAMP", "CURRENT_TIME", "CURRENT_USER", "SESSION_USER", "USER", "LOCALTIMESTAMP"))
_UNIT_CALLS: Final = {
    **dict.fromkeys(("DATEADD", "DATE_ADD", "TIMESTAMPADD"), "timestampadd"),
    **dict.fromkeys(("DATEDIFF", "DATE_DIFF", "TIMEDIFF", "TIMESTAMPDIFF"), "timestampdiff"),
}
"""Functions whose first of three arguments is the name of a unit."""

_TRIMS: Final = {"BOTH": "trim", "LEADING": "ltrim", "TRAILING": "rtrim"}


class ExpressionParser(WindowParser, ABC):
    """Rules for expressions. The parser of queries implements `query`.

    of_column: in the DEFAULT of a column, which NOT NULL may follow.
    """

    of_column = False

    @abstractmethod
    def query(self) -> tree.Query:
        """A query without surrounding parentheses."""

    @unbounded
    def expression(self, level: int = OR) -> tree.Expression:
        """An expression of operators of at least this level."""
        token = self.tokens[self.position]
        start = token.start
        if token.kind == NUMBER and self.tokens[self.position + 1].word in _ENDS:  # fast path: most items of long lists
            self.position += 1
            return tree.NumberText(token.text, self.of(token))
        left = self._operand(level)
        highest = UNARY
        while True:
            word = self.word
            operator_level = LEVELS.get(word)
            if operator_level is not None and level <= operator_level <= highest:
                left = self._operation(left, operator_level, start)
            elif level <= PREDICATE <= highest and word in _PREDICATES and not (self.of_column and self.sees("NOT", "NULL")):
                left = self._predicate(left, start)
                highest = AND
            else:
                return left

    def _operation(self, first: tree.Expression, level: int, start: int) -> tree.Expression:
        """A chain of operators of one level after its first operand."""
        operators, operands = list[str](), [first]
        while LEVELS.get(self.word) == level:
            word = self.take().word
            if level == COMPARISON and self.word in _QUANTIFIERS and self._begins_query(self.position + 2):
                left = tree.Operation(tuple(operators), tuple(operands), self.since(start)) if operators else first
                return self._quantified(left, _SAME.get(word, word), start)
            operators.append(_SAME.get(word, word))
            operands.append(self.expression(level + 1))
        return tree.Operation(tuple(operators), tuple(operands), self.since(start))

    def _quantified(self, left: tree.Expression, operator: str, start: int) -> tree.Expression:
        """A comparison with ANY, SOME or ALL of a query; = ANY is IN, and <> ALL is NOT IN."""
        every = self.take().word == "ALL"
        query = self.query_in_parentheses()
        if (operator, every) in (("=", False), ("<>", True)):
            return tree.InQuery(left, query, every, self.since(start))
        return tree.QuantifiedTest(operator, every, left, query, self.since(start))

    def _operand(self, level: int) -> tree.Expression:
        """The first operand, with its prefix operators."""
        token = self.token
        if level <= NOT and token.word in ("NOT", "!"):
            return self._prefix("NOT", NOT)
        if level <= NOT and token.word == "EXISTS" and self.tokens[self.position + 1].word == "(" and self._begins_query(self.position + 2):
            self.position += 1
            query = self.query_in_parentheses()
            return tree.ExistsTest(query, self.since(token.start))
        if token.word == "-" and self.tokens[self.position + 1].kind == NUMBER:
            self.position += 2
            return self._postfix(tree.NumberText(f"-{self.tokens[self.position - 1].text}", self.since(token.start)), token.start)
        if token.word in ("-", "+", "~"):
            return self._prefix(token.word, UNARY)
        return self._postfix(self._primary(), token.start)

    def _prefix(self, operator: str, level: int) -> tree.Prefix:
        start = self.take().start
        self.deeper()
        operand = self.expression(level)
        self.depth -= 1
        return tree.Prefix(operator, operand, self.since(start))

    def _postfix(self, node: tree.Expression, start: int) -> tree.Expression:
        while self.word in _AFTER_VALUE:
            match self.take().word:
                case "::":
                    type = self.type_name()
                    node = tree.CastCall(node, type, False, self.since(start))
                case "[":
                    self.deeper()
                    index = self.expression()
                    self.depth -= 1
                    self.expect("]")
                    node = tree.Subscript(node, index, self.since(start))
                case ":":
                    node = path_of(self, node, start)
                case "COLLATE":
                    name = self.collation()
                    arguments = (node, tree.StringText(name.text, name.span))
                    node = tree.FunctionCall("collate", arguments, False, None, True, self.since(start))
                case _:
                    node = tree.FieldOf(node, self.identifier("the name of a field"), self.since(start))
        refuse(self, AFTER_VALUE, start)
        refuse(self, AFTER_OPERAND)
        return node

    def _predicate(self, left: tree.Expression, start: int) -> tree.Expression:
        """[NOT] IN, BETWEEN, LIKE and IS [NOT] …, after the tested value."""
        if self.passes("IS"):
            return self._is(left, start)
        negated = self.passes("NOT")
        if self.passes("IN"):
            return self._in(left, negated, start)
        if self.passes("BETWEEN"):
            refuse(self, OPERANDS, self.token.start)
            low = self.expression(COMPARISON)
            if not self.passes("AND"):
                raise SyntaxFailure("BETWEEN without AND", span=self.since(start), expected="x BETWEEN a AND b")
            return tree.BetweenTest(left, low, self.expression(COMPARISON), negated, self.since(start))
        if self.word in ("LIKE", "ILIKE"):
            return self._like(left, negated, start)
        if self.word in ("RLIKE", "REGEXP"):
            self.position += 1
            call = tree.FunctionCall("rlike", (left, self.expression(COMPARISON)), False, None, True, self.since(start))
            return tree.Prefix("NOT", call, self.since(start)) if negated else call
        if self.sees("NULL"):
            raise SyntaxFailure("IS is missing", span=self.span, expected="x IS NULL, x IS NOT NULL")
        raise self.failure("IN, BETWEEN or LIKE")

    def _is(self, left: tree.Expression, start: int) -> tree.Expression:
        negated = self.passes("NOT")
        if self.passes("DISTINCT"):
            self.expect("FROM")
            return tree.DistinctTest(left, self.expression(COMPARISON), negated, self.since(start))
        if self.word not in ("NULL", "TRUE", "FALSE", "UNKNOWN", "JSON"):
            raise self.failure("NULL, TRUE, FALSE, JSON or DISTINCT FROM")
        state = self.take().word
        if state == "JSON" and self.word in ("VALUE", "OBJECT", "ARRAY", "SCALAR"):
            state = f"JSON {self.take().word}"
        return tree.IsTest(left, "NULL" if state == "UNKNOWN" else state, negated, self.since(start))

    def _like(self, left: tree.Expression, negated: bool, start: int) -> tree.Expression:
        """[I]LIKE a pattern, or ANY or ALL of several."""
        folded = self.take().word == "ILIKE"
        if self.word in ("ANY", "SOME", "ALL") and self.tokens[self.position + 1].word == "(":
            operator = "AND" if self.take().word == "ALL" else "OR"
            patterns = self.listed(self.expression)
            tests = tuple(tree.LikeTest(left, pattern, None, negated, folded, self.since(start)) for pattern in patterns)
            return tests[0] if len(tests) == 1 else tree.Operation((operator,) * (len(tests) - 1), tests, self.since(start))
        pattern = self.expression(COMPARISON)
        escape = tree.StringText(self.string("one character, as a string"), self.since(start)) if self.passes("ESCAPE") else None
        return tree.LikeTest(left, pattern, escape, negated, folded, self.since(start))

    def _in(self, left: tree.Expression, negated: bool, start: int) -> tree.Expression:
        if self.word == "(" and self._begins_query(self.position + 1) and not self._lists(self.position + 1):
            query = self.query_in_parentheses()
            return tree.InQuery(left, query, negated, self.since(start))
        self.deeper()
        values = self.listed(self.expression)
        self.depth -= 1
        return tree.InList(left, values, negated, self.since(start))

    def _lists(self, position: int) -> bool:
        """Whether the parentheses here hold a value of a list: as in Spark, IN ((SELECT …)) lists a scalar subquery."""
        depth = 0
        while position < len(self.tokens):
            depth += (self.tokens[position].word == "(") - (self.tokens[position].word == ")")
            position += 1
            if depth == 0:
                return self.tokens[position - 1].word == ")" and self.tokens[position].word in (")", ",")
        return False

    def _begins_query(self, position: int) -> bool:
        """Whether a query begins at this token, ignoring opening parentheses."""
        while self.tokens[position].word == "(":
            position += 1
        word, following = self.tokens[position].word, self.tokens[position + 1 : position + 2]
        call = bool(following) and following[0].word in ("(", ")", ",", ".")
        if word == "TABLE":
            return bool(following) and following[0].kind in (WORD, QUOTED) and following[0].word != "AS"
        return word == "SELECT" or (word in ("WITH", "FROM") and not call) or (word == "VALUES" and not (call and following[0].word != "("))

    def query_in_parentheses(self) -> tree.WholeQuery:
        """( query )."""
        start = self.token.start
        self.expect("(")
        self.deeper()
        inner = self.query()
        self.depth -= 1
        self.expect(")")
        span = self.since(start)
        return tree.WholeQuery((), False, inner, (), None, span)

    def _primary(self) -> tree.Expression:
        token = self.token
        if token.kind == NUMBER:
            self.position += 1
            return tree.NumberText(token.text, self.of(token))
        if token.kind == STRING:
            return tree.StringText(self.string("a string"), self.since(token.start))
        if token.word == "(":
            return self._parenthesised()
        if token.word == "*":
            return self.star((), token.start)
        if token.kind == QUOTED:
            return self._named()
        if token.word in (":", "?"):
            return self._given()
        if token.kind != WORD:
            refuse(self, OPERANDS, token.start)
            raise self.missing() if self.position else self.failure("an expression")
        return self._worded()

    def _given(self) -> tree.ParameterValue:
        """:name or ?"""
        start = self.token.start
        if self.take().word == "?":
            return tree.ParameterValue(self.arguments.next_value(self.since(start)), self.since(start))
        name = self.identifier("the name of a parameter")
        span = self.since(start)
        return tree.ParameterValue(self.arguments.value(name.text, span), span)

    def star(self, names: Sequence[tree.Name], start: int) -> tree.Star:
        """* [EXCEPT (column or field, …)] [REPLACE (expression AS column, …)] [RENAME (column AS name, …)], after its qualifiers."""
        self.expect("*")
        excluded = self.listed(self._excluded) if self.sees("EXCEPT", "(") and self.passes("EXCEPT") else ()
        replaced = self.listed(self._replaced) if self.sees("REPLACE", "(") and self.passes("REPLACE") else ()
        renamed = self.listed(self._renamed) if self.sees("RENAME", "(") and self.passes("RENAME") else ()
        qualifier = names[0] if names else None
        return tree.Star(qualifier, excluded, self.since(start), tuple(names[1:]), replaced, renamed)

    def _replaced(self) -> tuple[tree.Expression, tree.Name]:
        expression = self.expression()
        self.expect("AS")
        return expression, self.identifier("the name of a column")

    def _renamed(self) -> tuple[tree.Name, tree.Name]:
        name = self.identifier("the name of a column")
        self.expect("AS")
        return name, self.identifier("the new name of the column")

    def _excluded(self) -> tree.ColumnName:
        start, names = self.token.start, [self.identifier()]
        while self.passes("."):
            names.append(self.identifier())
        return tree.ColumnName(tuple(names), self.since(start))

    def _field(self) -> tree.Expression:
        """An argument of struct(…), which may have a name."""
        start = self.token.start
        if self._lambda_parameters() is not None:
            return self._argument()
        value = self.expression()
        if not self.passes("AS"):
            refuse(self, AFTER_ARGUMENT)
            if self.token.kind not in (WORD, QUOTED):
                return value
        return tree.NamedValue(value, self.identifier("the name of a field"), self.since(start))

    def _argument(self) -> tree.Expression:
        if (count := self._lambda_parameters()) is not None:
            return self._lambda(count)
        start = self.token.start
        if self.token.kind in (WORD, QUOTED) and self.tokens[self.position + 1].word == "=>":
            name = self.identifier()
            self.expect("=>")
            return tree.NamedArgument(name, self.expression(), self.since(start))
        expression = self.expression()
        refuse(self, AFTER_ARGUMENT)
        return expression

    def _lambda_parameters(self) -> int | None:
        """How many parameters the lambda has that is next: x -> … has none in parentheses, which counts as 0. None if none is next."""
        tokens, position = self.tokens, self.position
        if tokens[position].kind in (WORD, QUOTED) and tokens[position + 1].word == "->":
            return 0
        if tokens[position].word != "(":
            return None
        count = 1
        while tokens[position + 1].kind in (WORD, QUOTED) and tokens[position + 2].word == ",":
            position, count = position + 2, count + 1
        ends = tokens[position + 1].kind in (WORD, QUOTED) and tokens[position + 2].word == ")" and tokens[position + 3].word == "->"
        return count if ends else None

    def _lambda(self, count: int) -> tree.LambdaText:
        start = self.token.start
        if count == 1:
            raise SyntaxFailure("one parameter of a lambda is not in parentheses", span=self.span, expected="x -> …, or (x, y) -> …")
        parameters = self.listed(self.identifier) if count else (self.identifier(),)
        self.expect("->")
        self.deeper()
        body = self.expression()
        self.depth -= 1
        return tree.LambdaText(parameters, body, self.since(start))

    def _parenthesised(self) -> tree.Expression:
        start = self.token.start
        if self._begins_query(self.position + 1):
            return self._query_or_expression(start)
        self.expect("(")
        self.deeper()
        items = self.several(self._argument)
        self.depth -= 1
        self.expect(")")
        return tree.RowValue(items, self.since(start)) if len(items) > 1 else tree.Parenthesised(items[0], self.since(start))

    def _query_or_expression(self, start: int) -> tree.Expression:
        """( query ), or ((query) + 1): with two parentheses, the inner one may be a value."""
        if self.tokens[self.position + 1].word == "(":
            position, depth = self.position, self.depth
            try:
                return tree.ScalarQuery(self.query_in_parentheses(), self.since(start))
            except SyntaxFailure:
                self.position, self.depth = position + 1, depth
            self.deeper()
            items = self.several(self._argument)
            self.depth -= 1
            self.expect(")")
            return tree.RowValue(items, self.since(start)) if len(items) > 1 else tree.Parenthesised(items[0], self.since(start))
        query = self.query_in_parentheses()
        return tree.ScalarQuery(query, self.since(start))

    def _worded(self) -> tree.Expression:
        """An operand that begins with an unquoted word."""
        token, following = self.token, self.tokens[self.position + 1]
        word = token.word
        if word == "CASE" and following.word not in (",", ")", "."):
            return self._case()
        refuse(self, OPERANDS, token.start)
        if following.word == "(" and (word not in NO_OPERANDS or word == "LIKE"):
            return self._call(word)
        if word in ("TRUE", "FALSE", "NULL") or (word in CLOCKS and following.word != "."):
            self.position += 1
            return tree.KeywordExpression(word, self.of(token))
        if word == "INTERVAL" and (following.kind in (STRING, NUMBER, WORD, QUOTED) or following.word in ("-", "+")):
            interval = self._interval()
            if interval is not None:
                return interval
        if following.kind == STRING and word not in NO_OPERANDS:
            self.position += 1
            return tree.TypedText(tree.Name(token.text, self.of(token)), self.string("a string"), self.since(token.start))
        previous = self.tokens[self.position - 1].word if self.position else ""
        if word in NO_OPERANDS or (word == "END" and previous in ("CASE", "THEN", "ELSE", "WHEN")):
            raise self.missing() if self.position else self.failure("an expression")
        return self._named()

    def _named(self) -> tree.Expression:
        """A column, a qualified star, or a call of a quoted name."""
        start = self.token.start
        names = [self.identifier()]
        while self.word == "." and self.tokens[self.position + 1].kind != NUMBER:
            self.position += 1
            if self.word == "*":
                return self.star(names, start)
            names.append(self.identifier("a name after the dot"))
        if self.word == "(":
            return self.over(self.call(names, start), start)
        return tree.ColumnName(tuple(names), self.since(start))

    def _case(self) -> tree.SearchedCase:
        start = self.take().start
        self.deeper()
        subject = None if self.word == "WHEN" else self.expression()
        branches = []
        while self.word == "WHEN":
            when = self.take()
            condition = self.expression()
            if not self.passes("THEN"):
                raise SyntaxFailure("WHEN without THEN", span=self.of(when), expected="CASE WHEN condition THEN value END")
            branches.append((condition, self.expression()))
        if not branches:
            raise self.failure("WHEN")
        otherwise = self.expression() if self.passes("ELSE") else None
        self.depth -= 1
        if not self.passes("END"):
            raise self.failure("END, which closes CASE")
        return tree.SearchedCase(subject, tuple(branches), otherwise, self.since(start))

    def _interval(self) -> tree.IntervalText | None:
        """INTERVAL amount unit …, INTERVAL 'text', or INTERVAL 'text' unit TO unit; None if INTERVAL is a column name."""
        start, begin = self.token.start, self.position
        self.position += 1
        parts: list[tuple[tree.Expression, tree.Name | None]] = []
        to = None
        while not parts or self._sees_amount():
            if self.token.kind == WORD and self.word in NO_OPERANDS:
                self.position = begin
                return None
            amount = self.expression(UNARY)
            if self.token.kind != WORD or self.word in NO_OPERANDS or self.word in ("TO", "AHEAD", "PRECEDING", "FOLLOWING"):
                if parts or not isinstance(amount, tree.StringText):
                    self.position = begin
                    return None
                parts.append((amount, None))
                break
            unit = self.identifier()
            parts.append((amount, unit))
            if self.passes("TO"):
                to = self.identifier("a unit")
                break
        return tree.IntervalText(tuple(parts), to, self.since(start))

    def _sees_amount(self) -> bool:
        """Whether another amount with a unit is next."""
        position = self.position + (self.word in ("-", "+"))
        return self.tokens[position].kind in (NUMBER, STRING) and self.tokens[position + 1].word.removesuffix("S") in UNITS

    def _call(self, word: str) -> tree.Expression:
        """A call of an unquoted name; some have words between their arguments."""
        start = self.token.start
        match word:
            case "CAST" | "TRY_CAST" | "SAFE_CAST":
                return self._cast(word != "CAST", start)
            case "EXTRACT" if self._is_worded("FROM"):
                return self._extract(start)
            case "TRIM" if self.tokens[self.position + 2].word in _TRIMS or self._is_worded("FROM"):
                return self._trim(start)
            case "SUBSTRING" | "SUBSTR" if self._is_worded("FROM"):
                return self._substring(start)
            case "POSITION" if self._is_worded("IN"):
                return self._position(start)
            case "OVERLAY" if self._is_worded("PLACING"):
                return self._overlay(start)
            case _ if word in _UNIT_CALLS and self._has_unit():
                return self._unit_call(word, start)
            case _:
                return self._named()

    def _is_worded(self, word: str) -> bool:
        """Whether this word separates arguments of the next call."""
        depth, position = 0, self.position + 1
        while position < len(self.tokens):
            depth += {"(": 1, ")": -1}.get(self.tokens[position].word, 0)
            if depth == 0:
                return False
            if depth == 1 and self.tokens[position].word in (word, ","):
                return self.tokens[position].word == word
            position += 1
        return False

    def _has_unit(self) -> bool:
        """Whether the first argument of the next call is a unit's name or a string."""
        first, second = self.tokens[self.position + 2], self.tokens[self.position + 3]
        return first.kind in (WORD, STRING) and second.word == "," and self._commas() == 2

    def _commas(self) -> int:
        depth, position, commas = 0, self.position + 1, 0
        while position < len(self.tokens):
            word = self.tokens[position].word
            depth += {"(": 1, ")": -1}.get(word, 0)
            commas += depth == 1 and word == ","
            if depth == 0:
                break
            position += 1
        return commas

    def _opened(self) -> None:
        self.position += 2
        self.deeper()

    def _closed(self) -> None:
        self.expect(")")
        self.depth -= 1

    def _cast(self, lenient: bool, start: int) -> tree.CastCall:
        self._opened()
        operand = self.expression()
        self.expect("AS")
        type = self.type_name()
        self._closed()
        return tree.CastCall(operand, type, lenient, self.since(start))

    def _extract(self, start: int) -> tree.Expression:
        self._opened()
        if self.token.kind != WORD or self.tokens[self.position + 1].word != "FROM":
            raise Unsupported("invalid field of EXTRACT", span=self.span, expected="EXTRACT(YEAR FROM d)")
        field = self.identifier("a field")
        self.expect("FROM")
        source = self.expression()
        self._closed()
        return tree.ExtractCall(field, source, self.since(start))

    def _trim(self, start: int) -> tree.FunctionCall:
        """TRIM([BOTH | LEADING | TRAILING] [characters] FROM text)."""
        self._opened()
        name = _TRIMS[self.take().word] if self.word in _TRIMS else "trim"
        characters = () if self.word == "FROM" else (self.expression(),)
        self.expect("FROM")
        text = self.expression()
        self._closed()
        return tree.FunctionCall(name, (*characters, text), False, None, True, self.since(start))

    def _substring(self, start: int) -> tree.FunctionCall:
        """SUBSTRING(text FROM start [FOR length])."""
        self._opened()
        arguments = [self.expression()]
        self.expect("FROM")
        arguments.append(self.expression())
        if self.passes("FOR"):
            arguments.append(self.expression())
        self._closed()
        return tree.FunctionCall("substring", tuple(arguments), False, None, True, self.since(start))

    def _overlay(self, start: int) -> tree.FunctionCall:
        """OVERLAY(text PLACING by FROM start [FOR length])."""
        self._opened()
        arguments = [self.expression()]
        for word in ("PLACING", "FROM"):
            self.expect(word)
            arguments.append(self.expression())
        if self.passes("FOR"):
            arguments.append(self.expression())
        self._closed()
        return tree.FunctionCall("overlay", tuple(arguments), False, None, True, self.since(start))

    def _position(self, start: int) -> tree.FunctionCall:
        """POSITION(part IN text)."""
        self._opened()
        part = self.expression(COMPARISON)
        self.expect("IN")
        text = self.expression(COMPARISON)
        self._closed()
        return tree.FunctionCall("position", (part, text), False, None, True, self.since(start))

    def _unit_call(self, word: str, start: int) -> tree.FunctionCall:
        """DATEADD(unit, n, moment) and similar calls."""
        self._opened()
        if self.token.kind == STRING:
            raise SyntaxFailure("the unit is a string", span=self.span, expected=f"{word}(DAY, …), the unit without quotes")
        unit = self.take()
        self.expect(",")
        first = tree.StringText(unit.text, self.of(unit))
        arguments = (first, *self.several(self.expression))
        self._closed()
        return tree.FunctionCall(_UNIT_CALLS[word], arguments, False, None, True, self.since(start))

    def call(self, names: list[tree.Name], start: int) -> tree.FunctionCall:
        """A call of the function with these name parts, from its parenthesis."""
        if len(names) > 1:
            raise Unsupported(
                "function names with a database part are not supported", span=self.since(start), remedy="leave the database out"
            )
        self.expect("(")
        self.deeper()
        distinct = self._quantifier()
        each = self._field if names[0].text.lower() == "struct" else self._argument
        arguments = () if self.word == ")" and not distinct else self.several(each)
        ignores = not distinct and len(arguments) == 1 and self.passes_inner_nulls(names[0].text)
        self.depth -= 1
        self.expect(")")
        within = self.within_group()
        refuse(self, AFTER_VALUE, start)
        condition = None
        if self.sees("FILTER", "("):  # FILTER alone is an alias
            filter = self.take()
            if not self.passes("(", "WHERE"):
                raise SyntaxFailure("FILTER without (WHERE …)", span=self.of(filter), expected="FILTER (WHERE condition)")
            condition = self.expression()
            self.expect(")")
            refuse(self, AFTER_VALUE, start)
        name = names[0].text.lower()
        if has_names(arguments) and (parameters := of_builtin(name, self.since(start))) is not None:
            arguments = in_order(name, arguments, parameters, self.since(start))
        if ignores:
            arguments = (*arguments, tree.KeywordExpression("TRUE", self.since(start)))
        return tree.FunctionCall(name, arguments, distinct, condition, False, self.since(start), within)

    def _quantifier(self) -> bool:
        following = self.tokens[self.position + 1].word
        if self.word == "ALL" and following not in (",", ")", "."):
            self.position += 1
        return self.word == "DISTINCT" and self.passes("DISTINCT")
