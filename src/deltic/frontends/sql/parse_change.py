"""INSERT, UPDATE, DELETE, MERGE and TRUNCATE, by Spark's grammar (SqlBaseParser.g4), and BEGIN, COMMIT and ROLLBACK."""

from __future__ import annotations

from dataclasses import replace
from typing import Final, Literal

from deltic.errors import SyntaxFailure, Unsupported
from deltic.frontends.sql import tree
from deltic.frontends.sql.parse_query import QueryParser

CHANGES: Final = ("INSERT", "UPDATE", "DELETE", "MERGE", "TRUNCATE", "BEGIN", "START", "COMMIT", "ROLLBACK")
"""The words that begin such statements."""
_WHOLE: Final = "INSERT INTO table (column, …) query"
_REMEDIES: Final = {"REPLACE": "DELETE FROM table WHERE condition, then INSERT INTO, between BEGIN and COMMIT"}


class ChangeParser(QueryParser):
    """The rules for statements that change rows."""

    def change(self) -> tree.RowChange | tree.TransactionMark:
        """One of them."""
        match self.word:
            case "INSERT":
                return self._insert()
            case "UPDATE":
                return self._update()
            case "DELETE":
                return self._delete()
            case "MERGE":
                return self._merge()
            case "TRUNCATE":
                return self._truncate()
            case _:
                return self._mark()

    def begins_change(self) -> bool:
        """Whether a WITH that is next belongs to a statement that changes rows."""
        position = self.position
        try:
            self._with()
            return self.word in CHANGES
        except SyntaxFailure:
            return False  # which reading the query says
        finally:
            self.position = position

    def change_with(self) -> tree.RowChange:
        """WITH name AS (query), … and INSERT, UPDATE, DELETE or MERGE."""
        start = self.token.start
        recursive, ctes = self._with()
        if self.word not in ("INSERT", "UPDATE", "DELETE", "MERGE"):
            raise self.failure("a query, INSERT, UPDATE, DELETE or MERGE")
        change = self.change()
        assert not isinstance(change, tree.TransactionMark)
        if isinstance(change, tree.InsertRows):
            return replace(
                change, query=tree.WholeQuery(ctes, recursive, change.query, (), None, self.since(start)), span=self.since(start)
            )
        return replace(change, given=tree.WithClause(recursive, ctes), span=self.since(start))

    def _mark(self) -> tree.TransactionMark:
        start, word = self.token.start, self.take().word
        if not self.passes("TRANSACTION"):
            self.passes("WORK")
        if word == "ROLLBACK" and self.word == "TO":
            raise Unsupported("savepoints are not supported", span=self.since(start), remedy="ROLLBACK of the whole transaction")
        kind: Literal["BEGIN", "COMMIT", "ROLLBACK"] = "COMMIT" if word == "COMMIT" else "ROLLBACK" if word == "ROLLBACK" else "BEGIN"
        return tree.TransactionMark(kind, self.since(start))

    def _target(self, *, aliased: bool = True) -> tree.TableName:
        start = self.token.start
        name = self.simple_name("table")
        return tree.TableName(name, self.table_alias() if aliased and self.word != "SET" else None, self.since(start))

    def _insert(self) -> tree.InsertRows:
        start = self.take().start
        if self.word == "REPLACE":
            raise Unsupported("INSERT REPLACE is not supported", span=self.span, remedy="INSERT OVERWRITE, which replaces all rows")
        overwrites = self.passes("OVERWRITE")
        if not overwrites:
            self.expect("INTO")
        self.passes("TABLE")
        table = self.simple_name("table")
        for words in (("PARTITION",), ("REPLACE", "WHERE"), ("WITH", "SCHEMA")):
            if self.sees(*words):
                raise Unsupported(f"{' '.join(words)} is not supported in INSERT", span=self.span, remedy=_REMEDIES.get(words[0], _WHOLE))
        by_name = self.passes("BY", "NAME")
        columns = () if by_name or self.word != "(" or self._begins_query(self.position + 1) else self.listed(self.identifier)
        if self.word not in ("SELECT", "VALUES", "WITH", "FROM", "TABLE", "("):
            raise self.failure("VALUES or a query")
        return tree.InsertRows(table, columns, by_name, self.query(), self.since(start), overwrites)

    def _update(self) -> tree.UpdateRows:
        start = self.take().start
        table = self._target()
        self.expect("SET")
        assignments = self._assignments()
        where = self.expression() if self.passes("WHERE") else None
        return tree.UpdateRows(table, assignments, where, self.since(start))

    def _assignments(self) -> tree.Assignments:
        return self.several(self._assigned)

    def _assigned(self) -> tuple[tuple[tree.Name, ...], tree.Expression]:
        """[table.]column[.field …] = value."""
        names = [self.identifier("the name of a column")]
        while self.passes("."):
            names.append(self.identifier("a name after the dot"))
        self.expect("=")
        return tuple(names), self.expression()

    def _delete(self) -> tree.DeleteRows:
        start = self.take().start
        self.expect("FROM")
        table = self._target()
        where = self.expression() if self.passes("WHERE") else None
        return tree.DeleteRows(table, where, self.since(start))

    def _truncate(self) -> tree.DeleteRows:
        start = self.take().start
        self.expect("TABLE")
        table = self._target(aliased=False)
        return tree.DeleteRows(table, None, self.since(start))

    def _merge(self) -> tree.MergeRows:
        start = self.take().start
        if self.sees("WITH", "SCHEMA"):
            raise Unsupported("WITH SCHEMA EVOLUTION is not supported", span=self.span, remedy="ALTER TABLE … ADD COLUMN before it")
        self.expect("INTO")
        table = self._target()
        self.expect("USING")
        source = self._source()
        self.expect("ON")
        condition = self.expression()
        clauses = []
        while self.word == "WHEN":
            clauses.append(self._clause_of_merge())
        if not clauses:
            raise self.failure("WHEN MATCHED THEN …, or WHEN NOT MATCHED THEN …")
        return tree.MergeRows(table, source, condition, tuple(clauses), self.since(start))

    def _clause_of_merge(self) -> tree.MergeClause:
        start = self.take().start
        kind: Literal["matched", "not matched", "not matched by source"] = "not matched" if self.passes("NOT") else "matched"
        self.expect("MATCHED")
        if kind == "not matched" and self.passes("BY") and not self.passes("TARGET"):
            self.expect("SOURCE")
            kind = "not matched by source"
        condition = self.expression() if self.passes("AND") else None
        self.expect("THEN")
        if kind == "not matched":
            self.expect("INSERT")
            return tree.MergeClause(kind, condition, "insert", self._inserted(), self.since(start))
        if self.passes("DELETE"):
            return tree.MergeClause(kind, condition, "delete", (), self.since(start))
        self.expect("UPDATE", "SET")
        if self.passes("*"):
            if kind != "matched":
                raise SyntaxFailure("there is no row of the source", span=self.since(start), expected="UPDATE SET column = value")
            return tree.MergeClause(kind, condition, "update", None, self.since(start))
        return tree.MergeClause(kind, condition, "update", self._assignments(), self.since(start))

    def _inserted(self) -> tree.Assignments | None:
        """* or (column, …) VALUES (value, …), as assignments."""
        if self.passes("*"):
            return None
        columns = self.listed(self.identifier)
        start = self.token.start
        self.expect("VALUES")
        values = self.listed(self.expression)
        if len(values) != len(columns):
            raise SyntaxFailure("the values do not fit the columns", span=self.since(start), expected=f"{len(columns)} values")
        return tuple(((column,), value) for column, value in zip(columns, values, strict=True))
