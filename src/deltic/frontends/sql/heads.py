"""The whole form of CREATE and DROP, token by token: sqlglot takes many words in them and keeps no trace of some.

Each token is one word: its text in upper case, ' for a string, ` for a quoted name.
"""

from __future__ import annotations

import re
from typing import Final

from sqlglot.tokenizer_core import Token, TokenType

from deltic.errors import SyntaxFailure
from deltic.frontends.sql.declare import FORM
from deltic.frontends.sql.spans import Places

_NAME: Final = r"(?:`|\d*[^\W\d]\w*)"
_TYPE: Final = r"\w+(?: \( \d+(?: , \d+)? \))?"
_COLUMN: Final = rf"{_NAME} {_TYPE}(?: NOT NULL| PRIMARY KEY| COMMENT ')*"
_KEY: Final = rf"(?:CONSTRAINT {_NAME} )?PRIMARY KEY \( {_NAME}(?: , {_NAME})* \)"
_PART: Final = rf"(?:{_COLUMN}|{_KEY})"
_LISTED: Final = rf"{_NAME}(?: COMMENT ')?"

FORMS: Final = {
    "CREATE TABLE [IF NOT EXISTS] name (column type [NOT NULL] [PRIMARY KEY] [COMMENT '…'], …, [PRIMARY KEY (column, …)])"
    " [COMMENT '…' | USING …]": (rf"CREATE TABLE (?:IF NOT EXISTS )?{_NAME} \( {_PART}(?: , {_PART})* \)(?: COMMENT ')?"),
    "CREATE [OR REPLACE] [MATERIALIZED | TEMPORARY] VIEW [IF NOT EXISTS] name [(column, …)] [COMMENT '…'] AS SELECT …": (
        rf"CREATE (?:OR REPLACE )?(?:TEMPORARY |TEMP |MATERIALIZED )?VIEW (?:IF NOT EXISTS )?{_NAME} "
        rf"(?:\( {_LISTED}(?: , {_LISTED})* \) )?(?:COMMENT ' )?AS (?:\( )*(?:SELECT|WITH|VALUES|FROM)(?: .*)?"
    ),
    FORM: rf"CREATE TABLE {_NAME} \( {_NAME} {_TYPE}(?: NOT NULL)?(?: , {_NAME} {_TYPE}(?: NOT NULL)?)* \)",
    "DROP TABLE [IF EXISTS] name, DROP [MATERIALIZED] VIEW [IF EXISTS] name": (
        rf"DROP (?:TABLE|(?:MATERIALIZED )?VIEW) (?:IF EXISTS )?{_NAME}"
    ),
}


def check_head(places: Places, kind: str) -> None:
    """Raises SyntaxFailure unless the statement, a CREATE TABLE, CREATE VIEW or DROP by its `kind`, has its form."""
    written = " ".join(_word(token) for token in places.tokens)
    for form, pattern in FORMS.items():
        if kind in form and re.fullmatch(pattern, written):
            return
    expected = next(form for form in FORMS if kind in form)
    raise SyntaxFailure("this statement is not understood as it stands", span=places.statement, expected=expected)


def _word(token: Token) -> str:
    if token.token_type == TokenType.STRING:
        return "'"
    return "`" if token.token_type == TokenType.IDENTIFIER else " ".join(token.text.upper().split())
