"""Every error class has a code of its own, and docs/errors.md lists exactly these."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from deltic import errors

PAGE = Path(__file__).resolve().parents[2] / "docs" / "errors.md"


def classes(base: type[errors.DelticError] = errors.DelticError) -> Iterator[type[errors.DelticError]]:
    for kind in base.__subclasses__():
        if kind.__module__ == errors.__name__:
            yield kind
            yield from classes(kind)


def test_every_class_has_a_code_of_its_own() -> None:
    kinds = list(classes())
    assert len(kinds) >= 25
    assert all("code" in vars(kind) for kind in kinds), [kind for kind in kinds if "code" not in vars(kind)]
    assert len({kind.code for kind in kinds}) == len(kinds)
    assert all(re.fullmatch(r"DELTIC-\d{4}", kind.code) for kind in kinds)


def test_the_page_lists_every_code_and_no_other() -> None:
    listed = dict(re.findall(r"^\| (DELTIC-\d{4}) \| `(\w+)` \| \w", PAGE.read_text(encoding="utf-8"), re.MULTILINE))
    assert listed == {kind.code: kind.__name__ for kind in classes()}


def test_a_text_begins_with_the_code() -> None:
    assert str(errors.UnknownName("there is no table t")) == "[DELTIC-1002] there is no table t"
    placed = errors.SyntaxFailure("unexpected text", span=errors.Span("SELECT ,", 7, 8), expected="an expression", remedy="add one")
    assert str(placed) == ("[DELTIC-1001] <sql>:1:8: unexpected text\n  SELECT ,\n         ^\nexpected: an expression\nhelp: add one")


def test_a_text_shows_long_parts_shortened() -> None:
    value = "x" * 1_000_000
    long = errors.CastFailure(f"the value '{value}' is no number", expected=f"a number, not '{value}'", remedy=f"drop '{value}'")
    message, expected, remedy = str(long).splitlines()
    assert len(message) == len("[DELTIC-3003] ") + errors.LONGEST
    assert message.startswith("[DELTIC-3003] the value 'xxx") and message.endswith("xxx' is no number")
    assert len(expected) == len("expected: ") + errors.LONGEST and len(remedy) == len("help: ") + errors.LONGEST
    assert long.message == f"the value '{value}' is no number"
    exact = errors.CastFailure("y" * errors.LONGEST)
    assert str(exact) == "[DELTIC-3003] " + "y" * errors.LONGEST
