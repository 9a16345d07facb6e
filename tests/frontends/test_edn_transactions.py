"""Transactions without a session: operations of Python's values and of forms, and what is read of the facts before."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence, Set
from typing import Any

import pytest

from deltic.errors import ConstraintViolation
from deltic.frontends.edn.operations import operations
from deltic.frontends.edn.read import read
from deltic.frontends.edn.schema import EdnAttribute, schema_of
from deltic.frontends.edn.transact import Transacted, transact
from deltic.frontends.edn.transaction_facts import StoredFacts
from deltic.frontends.edn.values import form_of

SCHEMA = schema_of(
    "facts",
    read(
        """{:name {:db/valueType :db.type/string :db/unique :db.unique/identity}
            :age {:db/valueType :db.type/long}
            :friend {:db/valueType :db.type/ref :db/cardinality :db.cardinality/many}
            :tag {:db/valueType :db.type/string :db/cardinality :db.cardinality/many}
            :height {:db/valueType :db.type/double}
            :is-open {:db/valueType :db.type/boolean}
            :any {}}""",
        "schema",
    ),
)


class RecordedFacts(StoredFacts):
    """Facts by attribute, and what has been read of them."""

    def __init__(self, **facts: set[tuple[int, Any]]) -> None:
        self.facts = facts
        self.read: list[tuple[str, str, list[Any]]] = []

    def _of(self, what: str, attribute: EdnAttribute, keys: Collection[Any]) -> set[tuple[int, Any]]:
        self.read.append((what, attribute.name, list(keys)))
        return self.facts.get(attribute.name, set())

    def values(self, attribute: EdnAttribute, entities: Collection[int]) -> Mapping[int, Sequence[Any]]:
        facts = sorted(self._of("values", attribute, entities))
        return {entity: [value for e, value in facts if e == entity] for entity in entities}

    def entities(self, attribute: EdnAttribute, values: Collection[Any]) -> Mapping[Any, Sequence[int]]:
        facts = sorted(self._of("entities", attribute, values))
        return {value: [entity for entity, v in facts if v == value] for value in values}

    def present(self, attribute: EdnAttribute, pairs: Collection[tuple[int, Any]]) -> Set[tuple[int, Any]]:
        return self._of("present", attribute, pairs) & set(pairs)


def effect(transacted: Transacted) -> list[tuple[int, str, Any, bool]]:
    return [(entity, attribute.name, value, added) for entity, attribute, value, added in transacted.datoms]


@pytest.mark.parametrize(
    "operation",
    [
        [":db/add", 1, ":age", 3],
        [":db/add", 1, ":age", -(2**63)],
        (":db/retract", 2, ":name", ":text"),
        [":db/add", 0, ":friend", 2**63 - 1],
        [":db/add", 1, ":friend", -1],
        [":db/add", "new", ":is-open", True],
        [":db/add", 1, ":is-open", False],
        [":db/add", 1, ":height", -0.0],
        [":db/add", 1, ":any", 1],
        [":db/retract", 1, ":any"],
        [":db/add", [":name", "Ann"], ":age", 3],
        [":db/cas", 1, ":age", None, 3],
    ],
)
def test_values_of_python_are_the_operations_of_their_form(operation: Sequence[Any]) -> None:
    (of_values,) = operations([operation], SCHEMA)
    (of_form,) = operations(form_of([operation]), SCHEMA)
    assert of_values[:5] == of_form[:5] and list(map(type, of_values[:5])) == list(map(type, of_form[:5]))
    assert of_values.form == of_form.form


def test_an_error_shows_the_value_that_was_given() -> None:
    with pytest.raises(ConstraintViolation) as raised:
        transact([[":db/add", 1, ":age", 3], [":db/add", 2, ":name", "Ann"]], SCHEMA, RecordedFacts(name={(1, "Ann")}), 3)
    assert raised.value.span is not None and raised.value.span.text == '[:db/add 2 :name "Ann"]'


def test_a_value_among_many_is_changed_without_reading_the_others() -> None:
    facts = RecordedFacts(tag={(1, f"t{i}") for i in range(50)})
    changes = [
        [":db/add", 1, ":tag", "new"],
        [":db/add", 1, ":tag", "t7"],
        [":db/retract", 1, ":tag", "t8"],
        [":db/retract", 1, ":tag", "x"],
    ]
    assert effect(transact(changes, SCHEMA, facts, 2)) == [(1, "tag", "new", True), (1, "tag", "t8", False)]
    assert facts.read == [("present", "tag", [(1, "new"), (1, "t7"), (1, "t8"), (1, "x")])]


def test_all_values_are_those_that_are_stored_and_those_that_have_changed() -> None:
    facts = RecordedFacts(tag={(1, "a"), (1, "b")}, friend={(2, 1), (3, 1)})
    text = '[[:db/retract 1 :tag "a"] [:db/add 1 :tag "c"] [:db/add 1 :friend 1] [:db/retract 3 :friend 1] [:db/retractEntity 1]]'
    transacted = transact(read(text, "test"), SCHEMA, facts, 4)
    assert effect(transacted)[:4] == [(1, "tag", "a", False), (1, "tag", "c", True), (1, "friend", 1, True), (3, "friend", 1, False)]
    assert set(effect(transacted)[4:]) == {(1, "tag", "b", False), (1, "tag", "c", False), (1, "friend", 1, False), (2, "friend", 1, False)}
    assert transacted.changes() == {"tag": {(1, "a"): -1, (1, "b"): -1}, "friend": {(3, 1): -1, (2, 1): -1}}
