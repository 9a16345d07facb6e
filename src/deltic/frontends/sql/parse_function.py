"""CREATE FUNCTION: createUserDefinedFunction of Spark's grammar."""

from __future__ import annotations

from typing import Final

from deltic.errors import SyntaxFailure, Unsupported
from deltic.frontends.sql import tree
from deltic.frontends.sql.parse_query import QueryParser

FORM: Final = (
    "CREATE [OR REPLACE] FUNCTION [IF NOT EXISTS] name ([parameter type [DEFAULT value], …]) [RETURNS type] RETURN expression, "
    "or … RETURNS TABLE [(column type, …)] RETURN query"
)
_SAID: Final = (("LANGUAGE", "SQL"), ("DETERMINISTIC",), ("CONTAINS", "SQL"), ("READS", "SQL", "DATA"))
_OTHERS: Final = (("NOT", "DETERMINISTIC"), ("LANGUAGE", "PYTHON"), ("SQL", "SECURITY"))


class FunctionParser(QueryParser):
    """The rule for CREATE FUNCTION, after the word FUNCTION."""

    def function(self, replaces: bool) -> tree.FunctionDefinition:
        """The rest of the statement."""
        if_not_exists = self.passes("IF", "NOT", "EXISTS")
        name = self.simple_name("function")
        if replaces and if_not_exists:
            raise Unsupported("OR REPLACE and IF NOT EXISTS together", span=name.span, remedy="leave one of them out")
        if self.sees("AS"):
            raise Unsupported("functions in Java are not supported", span=self.span, remedy="RETURN an expression, or session.register()")
        if self.word != "(":
            raise self.failure(FORM)
        parameters = self.listed(self._declared_parameter) if self.tokens[self.position + 1].word != ")" else self._none()
        result = self._result()
        self._characteristics()
        if not self.passes("RETURN"):
            raise self.failure(FORM)
        if self.ended:
            raise self.missing()
        if isinstance(result, tree.TableResult):
            return tree.FunctionDefinition(name, parameters, result, self.query(), replaces, if_not_exists, self.statement)
        start = self.token.start
        body = tree.ScalarQuery(self.query(), self.since(start)) if self.word in ("SELECT", "WITH") else self.expression()
        return tree.FunctionDefinition(name, parameters, result, body, replaces, if_not_exists, self.statement)

    def _none(self) -> tuple[tree.FunctionParameter, ...]:
        self.expect("(")
        self.expect(")")
        return ()

    def _declared_parameter(self) -> tree.FunctionParameter:
        name = self.identifier("the name of a parameter")
        if self.word in (",", ")"):
            raise SyntaxFailure("a parameter requires a type", span=name.span, expected=f"{name.text} BIGINT, for example")
        type = self.type_name()
        default = self.expression() if self.passes("DEFAULT") else None
        if self.passes("COMMENT"):
            self.string("the comment, as a string")
        return tree.FunctionParameter(name, type, default)

    def _result(self) -> tree.TypeName | tree.TableResult | None:
        if not self.passes("RETURNS"):
            return None
        start = self.token.start
        if self.passes("TABLE"):
            columns = self.listed(self._declared_parameter) if self.word == "(" else ()
            return tree.TableResult(columns, self.since(start))
        return self.type_name()

    def _characteristics(self) -> None:
        while self.word not in ("RETURN", "") and not self.ended:
            for words in _OTHERS:
                if self.sees(*words):
                    raise Unsupported(f"{' '.join(words)} is not supported", span=self.span, remedy="leave it out")
            if self.passes("COMMENT"):
                self.string("the comment, as a string")
            elif not any(self.passes(*words) for words in _SAID):
                raise self.failure(FORM)
