"""Transactions: from operations and the facts before them to the datoms that they add and retract.

Operations apply in order, each to the facts that the ones before it leave. Temporary ids are resolved first, against the facts before the
transaction: one with a value of an identity that exists is its entity, others are new entities. All of it, or nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn, Protocol

from deltic.errors import ConstraintViolation, DelticError, Span
from deltic.frontends.edn.kinds import decoded
from deltic.frontends.edn.operations import EntityTerm, FactOperation, LookupRef, TemporaryId, operations, place
from deltic.frontends.edn.schema import EdnAttribute, EdnSchema
from deltic.frontends.edn.values import Keyword, LocatedForm, form_of, write


class StoredFacts(Protocol):
    """What a store holds. fetch: reads at once what is going to be asked for one by one."""

    def values(self, attribute: EdnAttribute, entity: int) -> Iterable[Any]:
        """The stored values of an attribute of an entity."""

    def entities(self, attribute: EdnAttribute, value: Any) -> Iterable[int]:
        """The entities that have this stored value."""

    def fetch_values(self, attribute: EdnAttribute, entities: Collection[int]) -> None: ...

    def fetch_entities(self, attribute: EdnAttribute, values: Collection[Any]) -> None: ...


@dataclass(frozen=True, slots=True)
class StoredDatom:
    """A datom that a transaction adds or retracts, with its stored value."""

    entity: int
    attribute: EdnAttribute
    value: Any
    added: bool


@dataclass(frozen=True, slots=True)
class Transacted:
    """The result of a transaction. datoms: in order. next: the least number of a new entity."""

    tempids: dict[str | int, int]
    datoms: tuple[StoredDatom, ...]
    next: int

    def changes(self) -> dict[EdnAttribute, dict[tuple[int, Any], int]]:
        """By attribute, the weight of each (entity, value) that is added or retracted in all."""
        weights: dict[EdnAttribute, dict[tuple[int, Any], int]] = {}
        for one in self.datoms:
            rows = weights.setdefault(one.attribute, {})
            row = (one.entity, one.value)
            rows[row] = rows.get(row, 0) + (1 if one.added else -1)
        return {attribute: net for attribute, rows in weights.items() if (net := {row: n for row, n in rows.items() if n})}


def transact(data: LocatedForm, schema: EdnSchema, facts: StoredFacts, next: int) -> Transacted:
    """The effect of a transaction on a store. next: the least number of a new entity.

    Raises subclasses of QueryError for what is not a transaction, and ConstraintViolation for what the facts do not permit.
    """
    fact_operations = operations(data, schema)
    _fetch_entities(fact_operations, facts)
    numbers, next = _numbered(fact_operations, facts, next)
    _fetch_values(fact_operations, numbers, facts)
    content = _Content(schema, facts)
    for operation in fact_operations:
        try:
            _apply(operation, content, numbers)
        except DelticError as error:
            place(error, operation.form)
            raise
    tempids = {one.name: number for one, number in numbers.items() if not isinstance(one.name, tuple)}
    return Transacted(tempids, tuple(content.datoms), next)


def _fetch_entities(fact_operations: Sequence[FactOperation], facts: StoredFacts) -> None:
    """Those of values of unique attributes, and of lookup refs."""
    sought: dict[EdnAttribute, dict[Any, None]] = {}
    for one in fact_operations:
        for term in (one.entity, one.value, one.old):
            if isinstance(term, LookupRef):
                sought.setdefault(term.attribute, {})[term.value] = None
        is_unique = one.attribute is not None and one.attribute.unique is not None and one.kind != "retract"
        if one.attribute is not None and is_unique and not isinstance(one.value, LookupRef | TemporaryId):
            sought.setdefault(one.attribute, {})[one.value] = None
    for attribute, values in sought.items():
        facts.fetch_entities(attribute, values)


def _fetch_values(fact_operations: Sequence[FactOperation], numbers: Mapping[TemporaryId, int], facts: StoredFacts) -> None:
    """Those of the entities of operations."""
    sought: dict[EdnAttribute, dict[int, None]] = {}
    for one in fact_operations:
        entity = numbers.get(one.entity) if isinstance(one.entity, TemporaryId) else one.entity
        if one.attribute is not None and isinstance(entity, int):
            sought.setdefault(one.attribute, {})[entity] = None
    for attribute, entities in sought.items():
        facts.fetch_values(attribute, entities)


def _numbered(fact_operations: Sequence[FactOperation], facts: StoredFacts, next: int) -> tuple[dict[TemporaryId, int], int]:
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
                for entity in facts.entities(one.attribute, value):
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
                raise ConstraintViolation(f"the temporary id {term} is only a value", span=span, remedy="give the entity an attribute")
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


class _Content:
    """The facts as the operations change them."""

    def __init__(self, schema: EdnSchema, facts: StoredFacts) -> None:
        self.schema, self.facts = schema, facts
        self.datoms: list[StoredDatom] = []
        self._values: dict[tuple[str, int], dict[Any, None]] = {}
        self._entities: dict[tuple[str, Any], dict[int, None]] = {}
        self._changed: dict[tuple[str, Any], dict[int, bool]] = {}
        """By attribute and value, the entities that have, or no longer have it."""

    def values(self, attribute: EdnAttribute, entity: int) -> dict[Any, None]:
        key = (attribute.name, entity)
        if key not in self._values:
            self._values[key] = dict.fromkeys(self.facts.values(attribute, entity))
        return self._values[key]

    def entities(self, attribute: EdnAttribute, value: Any) -> dict[int, None]:
        """Of unique attributes and references."""
        key = (attribute.name, value)
        if key not in self._entities:
            changed = self._changed.get(key, {})
            kept = [one for one in self.facts.entities(attribute, value) if changed.get(one, True)]
            self._entities[key] = dict.fromkeys([*kept, *(one for one, has in changed.items() if has)])
        return self._entities[key]

    def add(self, entity: int, attribute: EdnAttribute, value: Any) -> None:
        held = self.values(attribute, entity)
        if value in held:
            return
        if attribute.unique is not None and (others := self.entities(attribute, value)):
            _refuse_duplicate(attribute, value, next(iter(others)))
        if not attribute.is_many:
            for old in list(held):
                self.retract(entity, attribute, old)
        held[value] = None
        self._note(entity, attribute, value, added=True)

    def retract(self, entity: int, attribute: EdnAttribute, value: Any) -> None:
        held = self.values(attribute, entity)
        if value in held:
            del held[value]
            self._note(entity, attribute, value, added=False)

    def _note(self, entity: int, attribute: EdnAttribute, value: Any, *, added: bool) -> None:
        self.datoms.append(StoredDatom(entity, attribute, value, added))
        key = (attribute.name, value)
        self._changed.setdefault(key, {})[entity] = added
        if key in self._entities:
            if added:
                self._entities[key][entity] = None
            else:
                self._entities[key].pop(entity, None)

    def retract_entity(self, entity: int) -> None:
        """Its datoms, those that refer to it, and its components."""
        waiting, done = [entity], set[int]()
        while waiting:
            one = waiting.pop()
            if one in done:
                continue
            done.add(one)
            for attribute in self.schema.stored:
                for value in list(self.values(attribute, one)):
                    self.retract(one, attribute, value)
                    if attribute.is_component:
                        waiting.append(value)
            for attribute in (reference for reference in self.schema.stored if reference.is_ref):
                for referring in list(self.entities(attribute, one)):
                    self.retract(referring, attribute, one)


def _refuse_duplicate(attribute: EdnAttribute, value: Any, holder: int) -> NoReturn:
    text = write(form_of(decoded(value, attribute.kind)))
    raise ConstraintViolation(f"the value {text} of :{attribute.name} is unique, and entity {holder} has it")


def _apply(operation: FactOperation, content: _Content, numbers: dict[TemporaryId, int]) -> None:
    if operation.kind in ("retract", "retract_entity") and _is_absent(operation.entity, content):
        return
    entity = _entity(operation.entity, content, numbers)
    attribute, value = operation.attribute, operation.value
    if attribute is None:
        content.retract_entity(entity)
        return
    if isinstance(value, LookupRef | TemporaryId):
        value = _entity(value, content, numbers)
    match operation.kind:
        case "add":
            content.add(entity, attribute, value)
        case "retract":
            for one in list(content.values(attribute, entity)) if value is None else [value]:
                content.retract(entity, attribute, one)
        case "cas":
            _compare_and_set(entity, attribute, operation, content, value, numbers)


def _is_absent(term: EntityTerm, content: _Content) -> bool:
    """Whether it is a lookup ref of no entity, which has nothing to retract."""
    return isinstance(term, LookupRef) and not content.entities(term.attribute, term.value)


def _compare_and_set(
    entity: int, attribute: EdnAttribute, operation: FactOperation, content: _Content, value: Any, numbers: dict[TemporaryId, int]
) -> None:
    old = operation.old
    if isinstance(old, LookupRef | TemporaryId):
        old = _entity(old, content, numbers)
    held = content.values(attribute, entity)
    if (not held) if old is None else (old in held):
        if old is not None:
            content.retract(entity, attribute, old)
        content.add(entity, attribute, value)
        return
    actual = " ".join(write(form_of(decoded(one, attribute.kind))) for one in held) or "nil"
    expected = "nil" if old is None else write(form_of(decoded(old, attribute.kind)))
    raise ConstraintViolation(f":{attribute.name} of entity {entity} is {actual}", span=operation.span, expected=expected)


def _entity(term: EntityTerm, content: _Content, numbers: dict[TemporaryId, int]) -> int:
    """Raises ConstraintViolation."""
    if isinstance(term, int):
        return term
    if isinstance(term, TemporaryId):
        return numbers[term]
    entities = content.entities(term.attribute, term.value)
    if not entities:
        text = write(form_of([Keyword(term.attribute.name), decoded(term.value, term.attribute.kind)]))
        raise ConstraintViolation(f"there is no entity {text}", span=term.span, remedy="add it first")
    return next(iter(entities))
