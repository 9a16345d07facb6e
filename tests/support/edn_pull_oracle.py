"""What a pull means, over a set of datoms in memory: one entity after the other, along each path, as DataScript does it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from deltic.frontends.edn.tree import PullPattern, PullSpec
from deltic.frontends.edn.values import form_of, write
from edn_oracle import Datoms, typed, untyped

EVERYTHING = PullPattern((), True, None)
ID = ":db/id"


def canonical(shown: Any) -> Any:
    """A tree, or a row with trees, of typed values, as a key. Zeros have no sign."""
    match shown:
        case dict():
            return "tree", tuple(sorted((key, canonical(value)) for key, value in shown.items()))
        case list():
            return "list", tuple(map(canonical, shown))
        case ("double", value):
            return "double", value + 0.0
        case _:
            return shown


def typed_tree(shown: Any) -> Any:
    """A tree of Python's values as one of typed values."""
    match shown:
        case dict():
            return {key: typed_tree(value) for key, value in shown.items()}
        case list():
            return [typed_tree(value) for value in shown]
        case None:
            return None
        case _:
            return typed(shown)


@dataclass(frozen=True)
class PullOracle:
    """attributes: all, in the order of the schema; some are of cardinality many, references and components. texts: those of any kind."""

    datoms: Datoms
    attributes: Sequence[str]
    many: Sequence[str]
    refs: Sequence[str]
    components: Sequence[str]
    texts: Sequence[str]

    def tree(
        self,
        pattern: PullPattern,
        entity: int,
        seen: frozenset[int] = frozenset(),
        remaining: dict[tuple[int, str], int] | None = None,
    ) -> Any:
        """The tree of an entity, or None. seen: the entities of recursions and components on the path. remaining: depths by attribute."""
        shown: dict[str, Any] = {ID: ("long", entity)} if pattern.has_wildcard else {}
        named = {write(one.attribute) for one in pattern.specs}
        rest = [f":{one}" for one in self.attributes if f":{one}" not in named] if pattern.has_wildcard else []
        for spec in (*pattern.specs, *(PullSpec(form_of(one, names=True)) for one in rest)):
            name = write(spec.attribute)
            key = name if spec.key is None else spec.key.value if isinstance(spec.key.value, str) else write(spec.key)
            if name == ID:
                shown.pop(ID, None)
                shown[key] = ("long", entity)
                continue
            values = self._values(name, entity)
            if not values:
                if spec.default is not None:
                    shown[key] = typed(spec.default.value)
                continue
            single = name[2:] in self.components if name[1] == "_" else name[1:] not in self.many
            parts: list[Any] = []
            for value in values[:1] if single else values:
                if not single and len(parts) == spec.limit:
                    break
                part = self._part(pattern, spec, value, seen, remaining or {})
                if part is not None:
                    parts.append(part)
            if parts:
                shown[key] = parts[0] if single else parts
        return shown or None

    def _values(self, name: str, entity: int) -> list[Any]:
        if name[1] == "_":
            return sorted(("long", one) for one, attribute, value in self.datoms if (attribute, value) == (name[2:], ("long", entity)))
        values = [value for one, attribute, value in self.datoms if (one, attribute) == (entity, name[1:])]
        if name[1:] in self.texts:
            return sorted(values, key=lambda value: write(form_of(untyped(value))))
        return sorted(values, key=lambda value: value[1])

    def _part(self, pattern: PullPattern, spec: PullSpec, value: Any, seen: frozenset[int], remaining: dict[tuple[int, str], int]) -> Any:
        name = write(spec.attribute)
        bare = name[2:] if name[1] == "_" else name[1:]
        if bare not in self.refs:
            return value
        entity, is_component = value[1], bare in self.components
        nested = spec.nested
        if nested is None:
            if not is_component or name[1] == "_":
                return {ID: value}
            nested = EVERYTHING
        recursive = not isinstance(nested, PullPattern)
        if recursive or is_component:
            if entity in seen:
                return {ID: value}
            seen = seen | {entity}
        if isinstance(nested, int):
            place = (id(pattern), name)
            left = remaining.get(place, nested)
            if left == 0:
                return None
            remaining = {**remaining, place: left - 1}
        return self.tree(nested if isinstance(nested, PullPattern) else pattern, entity, seen, remaining)
