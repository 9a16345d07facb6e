"""No public class name is defined in two modules, so that a name in an error, a log or a search leads to one class."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

import deltic


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
    double = {name: sorted(places) for name, places in modules.items() if len(places) > 1}
    assert not double, f"rename one class of each pair: {double}"
