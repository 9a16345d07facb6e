"""No public class name is defined in two modules, so that a name in an error, a log or a search leads to one class."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

import deltic

DOUBLE: dict[str, int] = {
    "Batch": 2,
    "Block": 2,
    "Catalog": 2,
    "Column": 2,
    "Cursor": 2,
    "Relation": 2,
    "Trace": 2,
    "ViewDefinition": 2,
}
"""Names that still have several classes, and how many. Entries are only ever removed."""


def modules_of_classes() -> dict[str, set[str]]:
    """The modules that define each public class, classes in classes and functions included."""
    root = Path(deltic.__file__).parent
    modules = defaultdict(set)
    for path in root.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                modules[node.name].add(str(path.relative_to(root)))
    return modules


def test_no_public_class_name_is_defined_in_two_modules() -> None:
    modules = modules_of_classes()
    assert modules["Session"] == {"session/session.py"}
    added = {name: sorted(places) for name, places in modules.items() if len(places) > DOUBLE.get(name, 1)}
    assert not added, f"rename one class of each pair: {added}"
