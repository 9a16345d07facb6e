"""Transactions: from operations and the facts before them to the datoms that they add and retract.

Operations apply in order, each to the facts that the ones before it leave. Temporary ids are resolved first, against the facts before the
transaction: one with a value of an identity that exists is its entity, others are new entities. All of it, or nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from deltic.errors import ConstraintViolation, DelticError, Span
from deltic.frontends.edn.kinds import decoded
from deltic.frontends.edn.operations import EntityTerm, FactOperation, LookupRef, TemporaryId, operations, place
from deltic.frontends.edn.schema import EdnAttribute, EdnSchema
from deltic.frontends.edn.transaction_facts import AttributeFacts, StoredDatom, StoredFacts, TransactionFacts
from deltic.frontends.edn.values import Keyword, LocatedForm, form_of, write


@dataclass(frozen=True, slots=True)
class Transacted:
    """The result of a transaction. datoms: in order. next: the least number of a new entity."""

    tempids: dict[str | int, int]
    datoms: tuple[StoredDatom, ...]
    next: int

    def changes(self) -> dict[str, dict[tuple[int, Any], int]]:
        """By the name of an attribute, the weight of each (entity, value) that is added or retracted in all."""
        weights: dict[str, dict[tuple[int, Any], int]] = {}
        for entity, attribute, value, added in self.datoms:
            rows = weights.get(attribute.name)
            if rows is None:
                rows = weights[attribute.name] = {}
            row = (entity, value)
            rows[row] = rows.get(row, 0) + (1 if added else -1)
        return {name: net for name, rows in weights.items() if (net := {row: n for row, n in rows.items() if n})}


def transact(data: LocatedForm | Sequence[Any], schema: EdnSchema, facts: StoredFacts, next: int) -> Transacted:
    """The effect of a transaction on a store. next: the least number of a new entity.

    Raises subclasses of QueryError for what is not a transaction, and ConstraintViolation for what the facts do not permit.
    """
    fact_operations = operations(data, schema)
    content = TransactionFacts(schema, facts)
    _fetch_entities(fact_operations, content)
    numbers, next = _numbered(fact_operations, content, next)
    _fetch_values(fact_operations, numbers, content)
    for operation in fact_operations:
        try:
            _apply(operation, content, numbers)
        except DelticError as error:
            place(error, operation.form)
            raise
    tempids = {one.name: number for one, number in numbers.items() if not isinstance(one.name, tuple)}
    return Transacted(tempids, tuple(content.datoms), next)


def _fetch_entities(fact_operations: Sequence[FactOperation], content: TransactionFacts) -> None:
    """Those of values of unique attributes, and of lookup refs."""
    sought: dict[str, tuple[EdnAttribute, dict[Any, None]]] = {}
    for kind, entity, attribute, value, old, _ in fact_operations:
        for term in (entity, value, old):
            if isinstance(term, LookupRef):
                sought.setdefault(term.attribute.name, (term.attribute, {}))[1][term.value] = None
        if attribute is not None and attribute.unique is not None and kind != "retract" and not isinstance(value, LookupRef | TemporaryId):
            sought.setdefault(attribute.name, (attribute, {}))[1][value] = None
    for attribute, values in sought.values():
        content.of(attribute).fetch_entities(values)


def _fetch_values(fact_operations: Sequence[FactOperation], numbers: Mapping[TemporaryId, int], content: TransactionFacts) -> None:
    """What operations read: of cardinality many whether the entity has the value, else the values of the entity."""
    pairs: dict[str, tuple[EdnAttribute, dict[tuple[int, Any], None]]] = {}
    entities: dict[str, tuple[EdnAttribute, dict[int, None]]] = {}
    for kind, term, attribute, value, _, _ in fact_operations:
        entity = numbers.get(term) if isinstance(term, TemporaryId) else term
        if attribute is None or not isinstance(entity, int):
            continue
        if isinstance(value, TemporaryId):
            value = numbers.get(value)
        if attribute.is_many and kind in ("add", "retract") and value is not None and not isinstance(value, LookupRef):
            pairs.setdefault(attribute.name, (attribute, {}))[1][entity, value] = None
        else:
            entities.setdefault(attribute.name, (attribute, {}))[1][entity] = None
    for attribute, given in pairs.values():
        content.of(attribute).fetch_pairs(given)
    for attribute, given_entities in entities.values():
        content.of(attribute).fetch_values(given_entities)


def _numbered(fact_operations: Sequence[FactOperation], content: TransactionFacts, next: int) -> tuple[dict[TemporaryId, int], int]:
    """(the entity of each temporary id, the least number of a new entity after the transaction)."""
    numbers: dict[TemporaryId, int] = {}
    adds = [one for one in fact_operations if one.kind == "add" and one.attribute is not None]
    identities = [one for one in adds if one.attribute is not None and one.attribute.unique == "identity"]
    same: dict[TemporaryId, TemporaryId] = {}
    while True:
        before = len(numbers), len(same)
        holders: dict[tuple[str, Any], EntityTerm] = {}
        for one in identities:
            assert one.attribute is not None
            value = one.value if not isinstance(one.value, TemporaryId) else numbers.get(_root(one.value, same), one.value)
            holder = holders.setdefault((one.attribute.name, value), one.entity)
            if not isinstance(value, TemporaryId | LookupRef):
                for entity in content.of(one.attribute).entities(value):
                    _unify(one.entity, entity, numbers, same, one)
            _unify(one.entity, holder, numbers, same, one)
        if before == (len(numbers), len(same)):
            break
    terms = [
        term for one in fact_operations for term in (one.entity, one.value if one.attribute is not None and one.attribute.is_ref else None)
    ]
    next = max([next, *(term + 1 for term in terms if isinstance(term, int))])
    named = {_root(one.entity, same) for one in adds if isinstance(one.entity, TemporaryId)}
    for term in terms:
        if isinstance(term, TemporaryId) and (root := _root(term, same)) not in numbers:
            if root not in named:
                span = next_span(fact_operations, term)
                nameless = isinstance(term.name, tuple)
                what = "the entity has neither an id nor attributes" if nameless else f"the temporary id {term} is only a value"
                raise ConstraintViolation(what, span=span, remedy="give the entity an attribute")
            numbers[root], next = next, next + 1
    return {term: numbers[_root(term, same)] for term in terms if isinstance(term, TemporaryId)}, next


def next_span(fact_operations: Sequence[FactOperation], term: TemporaryId) -> Span | None:
    """The place of the first operation with this value."""
    return next(one.span for one in fact_operations if one.value == term)


def _root(one: TemporaryId, same: dict[TemporaryId, TemporaryId]) -> TemporaryId:
    while one in same:
        one = same[one]
    return one


def _unify(
    left: EntityTerm, right: EntityTerm, numbers: dict[TemporaryId, int], same: dict[TemporaryId, TemporaryId], cause: FactOperation
) -> None:
    """Makes both one entity. Raises ConstraintViolation if a temporary id is then two entities."""
    one = numbers.get(_root(left, same), _root(left, same)) if isinstance(left, TemporaryId) else left
    other = numbers.get(_root(right, same), _root(right, same)) if isinstance(right, TemporaryId) else right
    if isinstance(one, LookupRef) or isinstance(other, LookupRef) or one == other:
        return
    if isinstance(one, TemporaryId):
        if isinstance(other, TemporaryId):
            same[one] = other
        else:
            numbers[one] = other
    elif isinstance(other, TemporaryId):
        numbers[other] = one
    elif isinstance(left, TemporaryId) or isinstance(right, TemporaryId):
        assert cause.attribute is not None
        what = f"the values of the new entity identify two entities, {min(one, other)} and {max(one, other)}"
        raise ConstraintViolation(what, span=cause.span, expected="values of one entity", remedy="give the entity's number as :db/id")


def _apply(operation: FactOperation, content: TransactionFacts, numbers: dict[TemporaryId, int]) -> None:
    kind, entity, attribute, value, _, _ = operation
    if not isinstance(entity, int):
        if kind in ("retract", "retract_entity") and _is_absent(entity, content):
            return
        entity = _entity(entity, content, numbers)
    if attribute is None:
        content.retract_entity(entity)
        return
    if isinstance(value, LookupRef | TemporaryId):
        value = _entity(value, content, numbers)
    facts = content.of(attribute)
    match kind:
        case "add":
            facts.add(entity, value)
        case "retract":
            for one in facts.values(entity) if value is None else [value]:
                facts.retract(entity, one)
        case "cas":
            _compare_and_set(entity, facts, operation, content, value, numbers)


def _is_absent(term: EntityTerm, content: TransactionFacts) -> bool:
    """Whether it is a lookup ref of no entity, which has nothing to retract."""
    return isinstance(term, LookupRef) and not content.of(term.attribute).entities(term.value)


def _compare_and_set(
    entity: int, facts: AttributeFacts, operation: FactOperation, content: TransactionFacts, value: Any, numbers: dict[TemporaryId, int]
) -> None:
    attribute, old = facts.attribute, operation.old
    if isinstance(old, LookupRef | TemporaryId):
        old = _entity(old, content, numbers)
    values = facts.values(entity)
    if (not values) if old is None else (old in values):
        if old is not None:
            facts.retract(entity, old)
        facts.add(entity, value)
        return
    actual = " ".join(write(form_of(decoded(one, attribute.kind))) for one in values) or "nil"
    expected = "nil" if old is None else write(form_of(decoded(old, attribute.kind)))
    raise ConstraintViolation(f":{attribute.name} of entity {entity} is {actual}", span=operation.span, expected=expected)


def _entity(term: EntityTerm, content: TransactionFacts, numbers: dict[TemporaryId, int]) -> int:
    """Raises ConstraintViolation."""
    if isinstance(term, int):
        return term
    if isinstance(term, TemporaryId):
        return numbers[term]
    entities = content.of(term.attribute).entities(term.value)
    if not entities:
        text = write(form_of([Keyword(term.attribute.name), decoded(term.value, term.attribute.kind)]))
        raise ConstraintViolation(f"there is no entity {text}", span=term.span, remedy="add it first")
    return next(iter(entities))
