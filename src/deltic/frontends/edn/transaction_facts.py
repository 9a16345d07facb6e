"""The facts of a store as the operations of a transaction change them: read before the first of them, or when they are first needed."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence, Set
from typing import Any, NamedTuple, NoReturn, Protocol

from deltic.errors import ConstraintViolation
from deltic.frontends.edn.kinds import decoded
from deltic.frontends.edn.schema import EdnAttribute, EdnSchema
from deltic.frontends.edn.values import form_of, write


class StoredFacts(Protocol):
    """What a store holds before a transaction. Each call is one lookup of many keys."""

    def values(self, attribute: EdnAttribute, entities: Collection[int]) -> Mapping[int, Sequence[Any]]:
        """By entity, the stored values of an attribute, of those that have some."""

    def entities(self, attribute: EdnAttribute, values: Collection[Any]) -> Mapping[Any, Sequence[int]]:
        """By stored value, the entities that have it, of those that some have."""

    def present(self, attribute: EdnAttribute, pairs: Collection[tuple[int, Any]]) -> Set[tuple[int, Any]]:
        """Those of the pairs of an entity and a stored value that are facts."""


class StoredDatom(NamedTuple):
    """A datom that a transaction adds or retracts, with its stored value."""

    entity: int
    attribute: EdnAttribute
    value: Any
    added: bool


class AttributeFacts:
    """The facts of an attribute."""

    __slots__ = ("_changed", "_datoms", "_facts", "_held", "_holders", "_whole", "attribute")

    def __init__(self, attribute: EdnAttribute, facts: StoredFacts, datoms: list[StoredDatom]) -> None:
        """datoms: of all attributes, to which those that change are added."""
        self.attribute, self._facts, self._datoms = attribute, facts, datoms
        self._held: dict[int, dict[Any, bool]] = {}
        """By entity, whether it has the values that have been read, or have changed."""
        self._whole = set[int]()
        """The entities of which all values have been read."""
        self._holders: dict[Any, dict[int, None]] = {}
        """By value, the entities that have it, of values that have been read."""
        self._changed: dict[Any, dict[int, bool]] | None = None
        """By value, the entities that now have, or no longer have it; None until entities are read."""

    def fetch_pairs(self, pairs: Collection[tuple[int, Any]]) -> None:
        """Reads whether entities have values. O(pairs · log facts)."""
        present = self._facts.present(self.attribute, pairs)
        held = self._held
        for pair in pairs:
            entity, value = pair
            values = held.get(entity)
            if values is None:
                values = held[entity] = {}
            values.setdefault(value, pair in present)

    def fetch_values(self, entities: Collection[int]) -> None:
        """Reads all values of entities."""
        stored = self._facts.values(self.attribute, entities)
        for entity in entities:
            values = self._held.setdefault(entity, {})
            for value in stored.get(entity, ()):
                values.setdefault(value, True)
        self._whole.update(entities)

    def fetch_entities(self, values: Collection[Any]) -> None:
        """Reads which entities have values, of a unique attribute or a reference."""
        if self._changed is None:
            self._changed = {}
            for entity, attribute, value, added in self._datoms:
                if attribute.name == self.attribute.name:
                    self._changed.setdefault(value, {})[entity] = added
        stored = self._facts.entities(self.attribute, values)
        for value in values:
            changed = self._changed.get(value, {})
            kept = [one for one in stored.get(value, ()) if changed.get(one, True)]
            self._holders[value] = dict.fromkeys([*kept, *(one for one, has in changed.items() if has)])

    def values(self, entity: int) -> list[Any]:
        """All values of an entity."""
        if entity not in self._whole:
            self.fetch_values((entity,))
        return [value for value, has in self._held[entity].items() if has]

    def entities(self, value: Any) -> list[int]:
        """The entities that have a value, of a unique attribute or a reference."""
        if value not in self._holders:
            self.fetch_entities((value,))
        return list(self._holders[value])

    def add(self, entity: int, value: Any) -> None:
        """Adds a fact. Raises ConstraintViolation for a unique value that another entity has."""
        if self._has(entity, value):
            return
        if self.attribute.unique is not None and (holders := self.entities(value)):
            _refuse_duplicate(self.attribute, value, holders[0])
        if not self.attribute.is_many:
            for old in self.values(entity):
                self._set(entity, old, False)
        self._set(entity, value, True)

    def retract(self, entity: int, value: Any) -> None:
        """Removes a fact if it is one."""
        if self._has(entity, value):
            self._set(entity, value, False)

    def _has(self, entity: int, value: Any) -> bool:
        values = self._held.get(entity)
        has = None if values is None else values.get(value)
        if has is None:
            if entity in self._whole:
                return False
            self.fetch_pairs(((entity, value),))
            has = self._held[entity][value]
        return has

    def _set(self, entity: int, value: Any, added: bool) -> None:
        self._held[entity][value] = added
        self._datoms.append(StoredDatom(entity, self.attribute, value, added))
        if self._changed is None:
            return
        self._changed.setdefault(value, {})[entity] = added
        if value in self._holders:
            if added:
                self._holders[value][entity] = None
            else:
                self._holders[value].pop(entity, None)


class TransactionFacts:
    """The facts of a store. datoms: what has been added and retracted, in order."""

    def __init__(self, schema: EdnSchema, facts: StoredFacts) -> None:
        self._schema, self._facts = schema, facts
        self._attributes: dict[str, AttributeFacts] = {}
        self.datoms: list[StoredDatom] = []

    def of(self, attribute: EdnAttribute) -> AttributeFacts:
        """The facts of an attribute."""
        facts = self._attributes.get(attribute.name)
        if facts is None:
            facts = self._attributes[attribute.name] = AttributeFacts(attribute, self._facts, self.datoms)
        return facts

    def retract_entity(self, entity: int) -> None:
        """Its datoms, those that refer to it, and its components."""
        waiting, done = [entity], set[int]()
        while waiting:
            one = waiting.pop()
            if one in done:
                continue
            done.add(one)
            for attribute in self._schema.stored:
                facts = self.of(attribute)
                for value in facts.values(one):
                    facts.retract(one, value)
                    if attribute.is_component:
                        waiting.append(value)
            for attribute in self._schema.stored:
                if attribute.is_ref:
                    facts = self.of(attribute)
                    for referring in facts.entities(one):
                        facts.retract(referring, one)


def _refuse_duplicate(attribute: EdnAttribute, value: Any, holder: int) -> NoReturn:
    text = write(form_of(decoded(value, attribute.kind)))
    raise ConstraintViolation(f"the value {text} of :{attribute.name} is unique, and entity {holder} has it")
