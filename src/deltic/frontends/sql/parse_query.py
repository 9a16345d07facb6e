"""Queries: query, querySpecification and fromClause of Spark's grammar (SqlBaseParser.g4)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from deltic.errors import SyntaxFailure, Unsupported
from deltic.frontends.sql import tree
from deltic.frontends.sql.lexer import HINT, NUMBER, QUOTED, STRING, WORD
from deltic.frontends.sql.parse_asof import AsofParser, without_asof
from deltic.frontends.sql.parse_expression import NO_OPERANDS
from deltic.frontends.sql.parse_order import ORGANIZING
from deltic.frontends.sql.parse_pipe import PIPE, PipeParser
from deltic.frontends.sql.refusals import AFTER_DISTINCT, AFTER_ITEM, AFTER_SOURCE, CLAUSES, OPERANDS, STATEMENTS, refuse, refuse_flink
from deltic.stacks import unbounded

MOST_LEVELS: Final = 2**31 - 1
"""The greatest MAX RECURSION LEVEL, as in Spark."""

_SETS: Final = {"UNION": 1, "EXCEPT": 1, "MINUS": 1, "INTERSECT": 2}
_ENDS: Final = frozenset(
    ("FROM", "WHERE", "HAVING", "LIMIT", "UNION", "EXCEPT", "MINUS", "INTERSECT", "INTO", "QUALIFY", "WINDOW", "OFFSET")
)
_STRICT: Final = frozenset((
    "ANTI", "CROSS", "EXCEPT", "FULL", "INNER", "INTERSECT", "JOIN", "LATERAL", "LEFT", "MINUS", "NATURAL", "ON", "RIGHT", "SEMI", "UNION",
    "USING",
))  # fmt: skip
"""What Spark's grammar calls strictNonReserved: no aliases of tables."""

EMIT: Final = ("EMIT", "ON", "WINDOW", "CLOSE")
_PAIRS: Final = frozenset(("GROUP", *ORGANIZING))
_JOIN_WORDS: Final = frozenset(("INNER", "CROSS", "LEFT", "RIGHT", "FULL", "OUTER", "SEMI", "ANTI", "NATURAL", "ASOF", "JOIN"))
TABLE_FUNCTIONS: Final = "explode(array(…)), explode(sequence(…)) or explode(split(…))"
"""The table functions in FROM."""


class QueryParser(PipeParser, AsofParser):
    """Rules for queries and what stands in FROM."""

    @unbounded
    def query(self) -> tree.Query:
        """[WITH …] set operations [ORDER BY …] [LIMIT …]."""
        start = self.token.start
        recursive, ctes = self._with() if self.word == "WITH" else (False, ())
        first = self.token.start
        body = self._piped(self._set_operation(1), first)
        order = self.organization()
        limit = self._limit()
        refuse(self, CLAUSES)
        if isinstance(body, tree.PipeQuery):
            body, order, limit = _with_last_steps(body, order, limit), (), None
        if (order or limit) and self.word == PIPE:
            raise SyntaxFailure(
                f"{PIPE} after ORDER BY or LIMIT", span=self.span, expected=f"{PIPE} ORDER BY …, or the query in parentheses"
            )
        if (order or limit) and self.word in _SETS:
            remedy = "put the side in parentheses"
            raise SyntaxFailure("ORDER BY and LIMIT inside a set operation", span=self.since(start), remedy=remedy)
        if not (ctes or order or limit):
            return body
        return tree.WholeQuery(ctes, recursive, body, order, limit, self.since(start))

    def _with(self) -> tuple[bool, tuple[tree.CommonTable, ...]]:
        self.expect("WITH")
        recursive = self.sees("RECURSIVE") and self.tokens[self.position + 1].word not in ("AS", "(") and self.passes("RECURSIVE")
        return recursive, self.several(lambda: self._cte(recursive))

    def _cte(self, recursive: bool) -> tree.CommonTable:
        start = self.token.start
        name = self.identifier("the name of a CTE")
        columns = self.listed(self.identifier) if self.word == "(" and not self._begins_query(self.position + 1) else ()
        if not recursive and self.sees("MAX", "RECURSION"):
            raise self.misplaced_level()
        limit = self.level()
        self.passes("AS")
        query = self.query_in_parentheses()
        if self.word in ("SEARCH", "CYCLE"):
            raise Unsupported("SEARCH and CYCLE are not supported", span=self.span, remedy="UNION instead of UNION ALL ends on cycles")
        return tree.CommonTable(name, columns, limit, query, self.since(start))

    def level(self) -> int | None:
        """[MAX RECURSION LEVEL n]."""
        if not self.sees("MAX", "RECURSION"):
            return None
        self.expect("MAX", "RECURSION", "LEVEL")
        token = self.token
        if token.kind != NUMBER or not token.text.isdigit() or len(token.text) > 10 or int(token.text) > MOST_LEVELS:
            raise self.failure(f"a whole number, at most {MOST_LEVELS:,}")
        self.position += 1
        return int(token.text)

    def misplaced_level(self) -> SyntaxFailure:
        """The error for a MAX RECURSION LEVEL outside WITH RECURSIVE."""
        expected = "WITH RECURSIVE name (column, …) MAX RECURSION LEVEL n AS (…)"
        start = self.token.start
        self.position += 2
        self.position += 2 if self.sees("LEVEL") and self.tokens[self.position + 1].kind == NUMBER else 0
        return SyntaxFailure("MAX RECURSION LEVEL is not allowed here", span=self.since(start), expected=expected)

    def _set_operation(self, level: int) -> tree.Query:
        """Queries with set operators of at least this level between them. UNIONs in a row are one node."""
        start = self.token.start
        left = self._query_term() if level == 3 else self._set_operation(level + 1)
        while _SETS.get(self.word) == level:
            operator = self.take().word
            distinct = not self.passes("ALL")
            if distinct:
                self.passes("DISTINCT")
            if operator != "UNION" and self.sees("BY", "NAME"):
                raise Unsupported(f"{operator} BY NAME is not supported", span=self.span, remedy="list the columns in one order")
            by_name = self.passes("BY", "NAME")
            right = self._query_term() if level == 2 else self._set_operation(level + 1)
            sides: tuple[tree.Query, ...] = (left, right)
            kind = ("EXCEPT" if operator == "MINUS" else operator, distinct, by_name)
            if operator == "UNION" and isinstance(left, tree.SetQuery) and (left.operator, left.distinct, left.by_name) == kind:
                sides = (*left.parts, right)
            left = tree.SetQuery(kind[0], distinct, sides, self.since(start), by_name)
        return left

    def _query_term(self) -> tree.Query:
        refuse(self, STATEMENTS)
        match self.word:
            case "(":
                return self.query_in_parentheses()
            case "SELECT":
                return self._select()
            case "VALUES":
                return self._values()
            case "FROM" | "TABLE":
                return self._from_first()
            case _:
                raise self.missing() if self.position else self.failure("SELECT, VALUES or WITH")

    def _from_first(self) -> tree.SelectQuery:
        """FROM relation, …, TABLE name, or FROM relation, … SELECT …"""
        start = self.token.start
        if self.take().word == "TABLE":
            names = [self.identifier("a table")]
            while self.passes("."):
                names.append(self.identifier("a name after the dot"))
            source: tree.Source = tree.TableName(self.in_schema(names, "table"), None, self.since(names[0].span.start))
        else:
            source = self._from()
            if self.word == "SELECT":
                return self._select(source)
        span = self.since(start)
        every = tree.SelectItem(tree.Star(None, (), span), (), span)
        return tree.SelectQuery((every,), False, None, source, (), None, None, None, span)

    def _select(self, source: tree.Source | None = None) -> tree.SelectQuery:
        """SELECT …; source: the relations of a FROM before it."""
        start = self.take().start
        hint = self.of(self.take()) if self.token.kind == HINT else None
        distinct = self._quantifier()
        if distinct:
            refuse(self, AFTER_DISTINCT)
        items = self.several(self._item)
        refuse(self, AFTER_ITEM)
        source = source or (self._from() if self.passes("FROM") else None)
        if source is None and (self.word == "JOIN" or (self.word in _JOIN_WORDS and self.tokens[self.position + 1].word in _JOIN_WORDS)):
            raise SyntaxFailure("JOIN without FROM", span=self.span, expected="FROM table JOIN table")
        laterals = []
        while self.sees("LATERAL", "VIEW"):
            laterals.append(self._lateral_view())
        refuse(self, AFTER_SOURCE)
        where = self.expression() if self.passes("WHERE") else None
        group = self._group()
        having = self.expression() if self.passes("HAVING") else None
        windows = self.windows()
        qualify = self.expression() if self.passes("QUALIFY") else None
        if self.word in ("FROM", "WHERE") or self.sees("GROUP", "BY"):
            raise self.out_of_order()
        return tree.SelectQuery(items, distinct, hint, source, tuple(laterals), where, group, having, self.since(start), qualify, windows)

    def _item(self) -> tree.SelectItem:
        start = self.token.start
        if self.word == "LATERAL" and self.tokens[self.position + 1].kind == WORD:
            raise self._without_comma()
        expression = self.expression()
        if self.sees("MAX", "RECURSION"):
            raise self.misplaced_level()
        refuse(self, AFTER_ITEM)
        return tree.SelectItem(expression, self._item_names(), self.since(start))

    def _item_names(self) -> tuple[tree.Name, ...]:
        if self.passes("AS"):
            return self.listed(self.identifier) if self.word == "(" else (self.identifier(),)
        token = self.token
        if token.kind == QUOTED or (token.kind == WORD and self._may_be_alias()):
            return (self.identifier(),)
        if token.kind in (STRING, NUMBER):
            raise SyntaxFailure("invalid name", span=self.span, remedy="put it in `back quotes`, or a comma before it")
        return ()

    def _may_be_alias(self) -> bool:
        """Whether the next word is a name and not the beginning of a clause."""
        word, following = self.word, self.tokens[self.position + 1]
        if word in _ENDS or (word in _PAIRS and following.word == "BY") or word.isdigit() or self.sees(*EMIT):
            return False
        return not (word in ("LATERAL", "JOIN", "NOTNULL", "ISNULL") or (word in _JOIN_WORDS and following.word in _JOIN_WORDS))

    def _from(self) -> tree.Source:
        """Relations, joined from left to right: a join after a comma sees the relations before the comma, as in Spark."""
        start = self.token.start
        if self.word == "," or self.ended or self.word in NO_OPERANDS - {"VALUES"}:
            raise self.missing()
        first, joins = self._joined_element()
        while self.word == ",":
            comma = self.take()
            joins.append(tree.JoinClause(",", False, self._source(), None, (), self.since(comma.start)))
            joins += self._joins()
        while self.sees_pivot():
            first, joins = self.pivoted(tree.JoinedTables(first, tuple(joins), None, self.since(start)), start), []
        return tree.JoinedTables(first, tuple(joins), None, self.since(start)) if joins else first

    def _joined_element(self) -> tuple[tree.Source, list[tree.JoinClause]]:
        """A relation and its joins; PIVOT and UNPIVOT are over all before them."""
        start = self.token.start
        source, joins = self._source(), self._joins()
        while self.sees_pivot():
            whole = tree.JoinedTables(source, tuple(joins), None, self.since(start)) if joins else source
            source, joins = self.pivoted(whole, start), self._joins()
        return source, joins

    def _joins(self) -> list[tree.JoinClause]:
        joins = []
        while (join := self._join()) is not None:
            joins.append(join)
        if self.word == "LATERAL" and self.tokens[self.position + 1].word != "VIEW":
            raise self._without_comma()
        return joins

    def _without_comma(self) -> SyntaxFailure:
        expected = ", LATERAL f(…) or LATERAL VIEW f(…) v AS x"
        return SyntaxFailure("LATERAL without a comma before it", span=self.span, expected=expected)

    def _join(self) -> tree.JoinClause | None:
        start, position = self.token.start, self.position
        while self.word in _JOIN_WORDS - {"JOIN"}:
            self.position += 1
        if not self.passes("JOIN"):
            self.position = position
            return None
        words = [token.word for token in self.tokens[position : self.position - 1]]
        if self.ended or self.word in NO_OPERANDS:
            raise self.missing()
        words, is_asof = without_asof(words)
        natural, kind = self._join_kind(words)
        right, match = self._matched_source() if is_asof else (self._source(), None)
        condition, columns = None, tuple[tree.Name, ...]()
        nearest = None if is_asof or natural else self.nearest()
        if nearest is None and self.word == "ON":
            self.position += 1
            condition = self.expression()
            if natural:
                raise SyntaxFailure("a join takes only one of NATURAL, USING and ON", span=condition.span)
        elif nearest is None and self.word == "USING":
            using = self.take()
            if self.sees("(", ")"):
                raise SyntaxFailure("USING without columns", span=self.of(using), expected="USING (column, …)")
            columns = self.listed(self.identifier)
        return tree.JoinClause(kind, natural, right, condition, columns, self.since(start), match, nearest)

    def _join_kind(self, words: Sequence[str]) -> tuple[bool, str]:
        """(whether the join is natural, its kind without OUTER), from the words before JOIN, which was just read."""
        natural = words[:1] == ["NATURAL"]
        kind = words[natural:]
        if kind[-1:] == ["OUTER"] and kind[:-1] in (["LEFT"], ["RIGHT"], ["FULL"]):
            kind = kind[:-1]
        for back, word in enumerate(reversed(kind), 1):
            if word in ("NATURAL", "OUTER"):
                self.position -= back + 1
                raise self.failure("NATURAL before the kind of the join" if word == "NATURAL" else "LEFT, RIGHT or FULL before OUTER")
        return natural, " ".join(kind)

    def _source(self) -> tree.Source:
        start = self.token.start
        refuse(self, AFTER_SOURCE)
        if self.word == "LATERAL" and self.tokens[self.position + 1].word != ".":
            return self._lateral(start)
        if self.word == "(":
            return self._source_in_parentheses(start)
        if self.word == "VALUES" and self.tokens[self.position + 1].word not in (",", ".", ")"):
            return self._values()
        if self.word in NO_OPERANDS or (self.token.kind not in (WORD, QUOTED, STRING, NUMBER)):
            raise self.failure("a table") if self.word == "." else self.missing()
        refuse_flink(self)
        refuse(self, OPERANDS)
        names = [self.identifier("a table")]
        while self.word == ".":
            self.position += 1
            names.append(self.identifier("a name after the dot"))
        if self.word == "(":
            call = self.call(names, start)
            return tree.TableCall(call, self.table_alias(), False, self.since(start))
        return tree.TableName(self.in_schema(names, "table"), self.table_alias(), self.since(start))

    def _lateral(self, start: int) -> tree.Source:
        self.expect("LATERAL")
        if self.word == "(" and self._begins_query(self.position + 1):
            query = self.query_in_parentheses()
            return tree.DerivedTable(query, self.table_alias(), self.since(start), lateral=True)
        if self.word == "(":
            raise Unsupported("LATERAL requires a query or a table function", span=self.span, expected=TABLE_FUNCTIONS)
        names = [self.identifier("a table function")]
        if self.word != "(":
            raise self.failure("a table function")
        call = self.call(names, names[0].span.start)
        return tree.TableCall(call, self.table_alias(), True, self.since(start))

    @unbounded
    def _source_in_parentheses(self, start: int) -> tree.Source:
        """( query ) or ( relation )."""
        if self._begins_query(self.position + 1):
            position, depth = self.position, self.depth
            try:
                query = self.query_in_parentheses()
                return tree.DerivedTable(query, self.table_alias(), self.since(start))
            except SyntaxFailure:
                if self.tokens[position + 1].word != "(":
                    raise
                self.position, self.depth = position, depth
        self.expect("(")
        self.deeper()
        first, joins = self._joined_element()
        self.depth -= 1
        self.expect(")")
        return tree.JoinedTables(first, tuple(joins), self.table_alias(), self.since(start))

    def table_alias(self) -> tree.TableAlias | None:
        """[AS] name [(column, …)]."""
        refuse(self, AFTER_SOURCE)
        start = self.token.start
        if not self.passes("AS") and not self._sees_table_alias():
            return None
        name = self.identifier("a name", _STRICT)
        columns = self.listed(self.identifier) if self.word == "(" else ()
        span = self.since(start)
        refuse(self, AFTER_SOURCE)
        return tree.TableAlias(name, columns, span)

    def _sees_table_alias(self) -> bool:
        token = self.token
        if token.kind in (STRING, NUMBER):
            raise SyntaxFailure("invalid name", span=self.span, remedy="put it in `back quotes`")
        if token.word == "IN":
            raise self.failure("JOIN, WHERE, or the end of FROM")
        if self.sees_pivot() or self.sees_match_condition() or self.sees_nearest():
            return False
        if token.kind != WORD:
            return token.kind == QUOTED
        return token.word not in _STRICT | NO_OPERANDS and self._may_be_alias()

    def _lateral_view(self) -> tree.LateralView:
        start = self.token.start
        self.expect("LATERAL", "VIEW")
        outer = self.passes("OUTER")
        function = self.identifier("a table function")
        if self.word != "(":
            raise self.failure("(")
        call = self.call([function], function.span.start)
        name, columns = None, tuple[tree.Name, ...]()
        if (self.token.kind == QUOTED) or (self.token.kind == WORD and self.word not in NO_OPERANDS and self._may_be_alias()):
            name = self.identifier()
        if self.passes("AS"):
            columns = self.several(self.identifier)
        return tree.LateralView(call, outer, name, columns, self.since(start))

    def _values(self) -> tree.ValuesQuery:
        start = self.take().start
        rows = self.several(self.expression)
        if self.word == "(":
            raise self.failure(", between two rows")
        return tree.ValuesQuery(rows, self.table_alias(), self.since(start))

    def _group(self) -> tree.GroupClause | None:
        if not self.sees("GROUP", "BY"):
            return None
        start = self.token.start
        self.position += 2
        every = self.word == "ALL" and self.tokens[self.position + 1].word not in (".", "(")
        if every and self.tokens[self.position + 1].kind in (WORD, QUOTED, NUMBER) and self._is_key(self.position + 1):
            self.position += 1
            raise SyntaxFailure("GROUP BY ALL cannot be combined with keys", span=self.span, expected="GROUP BY ALL, or the keys")
        keys, sets = self.grouping()
        every = every and len(keys) == 1 and isinstance(keys[0], tree.ColumnName)
        return tree.GroupClause(keys, every, self.since(start), sets)

    def _is_key(self, position: int) -> bool:
        """Whether the token of this number can only be another key."""
        words = tuple(token.word for token in self.tokens[position : position + len(EMIT)])
        return words != EMIT and words[0] not in _ENDS | NO_OPERANDS | _PAIRS

    def _limit(self) -> tree.LimitClause | None:
        start = self.token.start
        limited = self.passes("LIMIT")
        count = None if not limited or self.passes("ALL") else self.expression()
        offset = self.expression() if self.passes("OFFSET") else None
        if offset is not None and not limited and self.sees("LIMIT"):
            raise SyntaxFailure("LIMIT after OFFSET", span=self.span, expected="LIMIT n OFFSET m")
        return tree.LimitClause(count, offset, self.since(start)) if limited or offset is not None else None


def _with_last_steps(body: tree.PipeQuery, order: tuple[tree.OrderTerm, ...], limit: tree.LimitClause | None) -> tree.PipeQuery:
    """ORDER BY and LIMIT after the last step are steps themselves."""
    steps: list[tree.PipeStep] = []
    if order:
        steps.append(tree.PipeOrder(order, order[0].expression.span))
    if limit is not None:
        steps.append(tree.PipeLimit(limit, limit.span))
    return replace(body, steps=(*body.steps, *steps)) if steps else body
