"""Test support: options of USING, written in every way that Spark's grammar allows."""

from __future__ import annotations

import random

TEXTS = ("in", "a b", "it's", 'say "so"', "tab\there", "back\\slash", "ü/ö", "(a, b)", "--no", "/* no */", "a;b", "x=1", "USING", "''")


def written_options(options: dict[str, str], chance: random.Random) -> str:
    """A list in parentheses, in any order: TRUE and FALSE bare or quoted, keys in any case."""
    parts = []
    for name, value in chance.sample(list(options.items()), len(options)):
        bare = value in ("true", "false") and chance.random() < 0.5
        between = chance.choice((" ", "=", " = ", "\n  ", " /* is */ "))
        parts.append(_key(name, chance) + between + (chance.choice((value, value.upper())) if bare else written_string(value, chance)))
    return chance.choice((" ", "\n", "")) + "(" + chance.choice((", ", ",", " ,\n")).join(parts) + ")"


def written_string(value: str, chance: random.Random) -> str:
    """The text as a Spark string literal."""
    quote = chance.choice("'\"")
    escaped = value.replace("\\", "\\\\").replace("\t", chance.choice(["\t", "\\t"]))
    return quote + escaped.replace(quote, chance.choice([f"\\{quote}", quote * 2])) + quote


def _key(name: str, chance: random.Random) -> str:
    cased = "".join(chance.choice((c.lower(), c.upper())) for c in name)
    return chance.choice((cased, f"`{cased}`", f"'{cased}'", f'"{cased}"'))


def random_source(chance: random.Random) -> tuple[str, dict[str, str]]:
    """(a format, compatible options of a source by name)."""
    format = chance.choice(("parquet", "csv", "json"))
    options = {"path": chance.choice(TEXTS)}
    if op_column := chance.choice((None, "_op", "op '")):
        options["op_column"] = op_column
    elif chance.random() < 0.5:
        options["append_only"] = "true"
    if letters := chance.choice((None, *TEXTS)):
        options |= {"on_error": "dead_letter", "dead_letter_path": letters}
    elif chance.random() < 0.5:
        options["on_error"] = "fail"
    return format, options | random_csv(format, chance, chance.random() < 0.5)


def random_csv(format: str, chance: random.Random, null_value: bool) -> dict[str, str]:
    """Options of csv; none for another format."""
    known = {"header": chance.choice(("true", "false")), chance.choice(("sep", "delimiter")): chance.choice(";|\t'\\ ")}
    if null_value:
        known["nullValue"] = chance.choice((*TEXTS, ""))
    return {key: value for key, value in known.items() if format == "csv" and chance.random() < 0.6}
