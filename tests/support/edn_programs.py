"""Random stores, transactions and queries in EDN."""

from __future__ import annotations

import random
from typing import Any, Final

SCHEMA: Final = """
{:n {:db/valueType :db.type/long}
 :m {:db/valueType :db.type/long :db/cardinality :db.cardinality/many}
 :d {:db/valueType :db.type/double}
 :g {:db/valueType :db.type/bigint :db/cardinality :db.cardinality/many}
 :h {:db/valueType :db.type/bigdec}
 :s {:db/valueType :db.type/string}
 :k {:db/valueType :db.type/keyword :db/cardinality :db.cardinality/many}
 :b {:db/valueType :db.type/boolean}
 :r {:db/valueType :db.type/ref}
 :f {:db/valueType :db.type/ref :db/cardinality :db.cardinality/many}
 :c {:db/valueType :db.type/ref :db/cardinality :db.cardinality/many :db/isComponent true}
 :u {:db/valueType :db.type/string :db/unique :db.unique/identity}
 :x {:db/cardinality :db.cardinality/many}}
"""
MANY: Final = ("m", "g", "k", "f", "c", "x")
REFS: Final = ("r", "f", "c")
UNIQUE: Final = ("u",)
COMPONENTS: Final = ("c",)
ATTRIBUTES: Final = ("n", "m", "d", "g", "h", "s", "k", "b", "r", "f", "c", "u", "x")
ENTITIES: Final = 6
RULES: Final = """
[[(reach ?a ?b) [?a :f ?b]]
 [(reach ?a ?c) (reach ?a ?b) [?b :f ?c]]
 [(linked ?a ?b) [?a :r ?b]]
 [(linked ?a ?b) [?a :f ?b] (not [?b :r ?a])]
 [(odd ?a ?b) [?a :r ?b]]
 [(odd ?a ?c) (even ?a ?b) [?b :r ?c]]
 [(even ?a ?c) (odd ?a ?b) [?b :r ?c]]
 [(large [?i]) [(< 1 ?i)]]
 [(near [?i] ?j) [(+ ?i 1) ?j]]
 [(near [?i] ?j) [(- ?i 1) ?j]]
 [(value ?a ?x) [?a :n ?x]]
 [(value ?a ?x) [?a :x ?x]]
 [(cut ?a ?b) (reach ?a ?b) (not (linked ?a ?b))]]
"""
_LONGS: Final = ("?i", "?j")
_ENTITIES: Final = ("?a", "?b", "?c")
_OF: Final = {"d": ("?d",), "g": ("?g", "?g", "?x"), "h": ("?h", "?h", "?x"), "s": ("?s",), "k": ("?k", "?l"), "b": ("?z",), "u": ("?s",)}
_NAMES: Final = (*_LONGS, *_ENTITIES, "?d", "?s", "?k", "?l", "?z", "?x", "?y", "?t", "?n", "?u", "?g", "?h")
TEXTS: Final = ["", "a", "b", 'q"\\', "é\n"]


def value(rng: random.Random, attribute: str) -> Any:
    """A value of an attribute, as a form's text."""
    longs = [str(rng.randrange(-1, 4))]
    kinds: dict[str, list[str]] = {
        "d": [rng.choice(["0.0", "-0.0", "1.0", "2.5", "1.0E10", "##Inf", "##-Inf"])],
        "g": [rng.choice(["0", "2", "-3N", "9223372036854775808N", "-12345678901234567890123456789012345678N"])],
        "h": [rng.choice(["0M", "1M", "-1.50M", "20M", "12345678901234567890.123456789012345678M", "1E-18M"])],
        "s": [text(rng.choice(TEXTS))],
        "u": [text(rng.choice(["u", "v", "w"]))],
        "k": [rng.choice([":k", ":l", ":p/k"])],
        "b": [rng.choice(["true", "false"])],
    }
    if attribute in REFS:
        return str(rng.randrange(1, ENTITIES))
    if attribute == "x":
        return rng.choice(
            [one for each in kinds.values() for one in each]
            + longs
            + ["1", "1.0", "true", '"1"', ":k", "\\a", "2M", "##Inf", "##-Inf", "7000000000000000000000N"]
        )
    return rng.choice(kinds.get(attribute, longs))


def text(value: str) -> str:
    """A string in EDN."""
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


def addition(rng: random.Random) -> list[str]:
    """An addition to a numbered entity, as texts of its parts."""
    attribute = rng.choice(ATTRIBUTES)
    return [":db/add", str(rng.randrange(1, ENTITIES)), f":{attribute}", value(rng, attribute)]


def operation(rng: random.Random) -> list[str]:
    """An operation on a numbered entity, as texts of its parts."""
    entity, attribute = str(rng.randrange(1, ENTITIES)), rng.choice(ATTRIBUTES)
    kind = rng.choices(["add", "retract", "retract all", "cas", "entity"], [12, 4, 1, 1, 1])[0]
    match kind:
        case "add":
            return addition(rng)
        case "retract":
            return [":db/retract", entity, f":{attribute}", value(rng, attribute)]
        case "retract all":
            return [":db/retract", entity, f":{attribute}"]
        case "cas":
            return [":db/cas", entity, f":{attribute}", rng.choice(["nil", value(rng, attribute)]), value(rng, attribute)]
        case _:
            return [":db/retractEntity", entity]


class QueryMaker:
    """Makes one query; not all of them are valid."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng

    def query(self) -> tuple[str, bool]:
        """(the text, whether it takes rules)."""
        where = [self.pattern() for _ in range(self.rng.randrange(1, 4))]
        where += [self.clause(2) for _ in range(self.rng.randrange(3))]
        self.rng.shuffle(where)
        body = " ".join(where)
        takes_rules = any(f"({name} " in body for name in ("reach", "linked", "odd", "even", "large", "near", "value", "cut"))
        names = sorted({name for name in _NAMES if name in body})
        found = self.rng.sample(names, min(len(names), self.rng.randrange(1, 4))) if names else ["?a"]
        if self.rng.random() < 0.25:
            found = [*found[1:], self.aggregate(found[0])]
        order = ""
        if self.rng.random() < 0.15 and not found[-1].startswith("("):  # of all elements, so that no two rows are at one place
            terms = [f"[{name} {self.rng.choice([':asc', ':desc'])}]" for name in self.rng.sample(found, len(found))]
            order = (
                f" :order-by [{' '.join(terms)}] {self.rng.choice([':limit 1', ':limit 2', ':limit 5', ':offset 1', ':limit 2 :offset 1'])}"
            )
        with_ = f" :with {self.rng.choice(names)}" if names and self.rng.random() < 0.15 else ""
        return f"[:find {' '.join(found)}{' :in $ %' if takes_rules else ''}{with_} :where {body}{order}]", takes_rules

    def aggregate(self, name: str) -> str:
        calls = ["count", "count-distinct", "distinct", "min", "max", "sum", "avg", "median", "variance", "min 2", "max 2"]
        return f"({self.rng.choice(calls)} {name})"

    def entity(self) -> str:
        return self.rng.choice([*_ENTITIES, *_ENTITIES, "_", str(self.rng.randrange(1, ENTITIES))])

    def pattern(self) -> str:
        rng, entity = self.rng, self.entity()
        attribute = rng.choice(ATTRIBUTES)
        if rng.random() < 0.08:
            return f"[{entity} {rng.choice(['?t', '_'])} {rng.choice(['?x', '?y', '_', '1', '?i'])}]"
        if rng.random() < 0.15:
            return f"[{entity} :{attribute} {value(rng, attribute)}]"
        if rng.random() < 0.15:
            return f"[{entity} :{attribute}]"
        if attribute in REFS:
            return f"[{entity} :{attribute} {rng.choice([*_ENTITIES, *_ENTITIES, '?i'])}]"
        if attribute in ("n", "m"):
            return f"[{entity} :{attribute} {rng.choice([*_LONGS, *_LONGS, '?a', '?x'])}]"
        if attribute == "x":
            return f"[{entity} :x {rng.choice(['?x', '?x', '?y', '?i', '?s', '?k'])}]"
        return f"[{entity} :{attribute} {rng.choice(_OF[attribute])}]"

    def clause(self, depth: int) -> str:
        rng = self.rng
        choices = ["pattern", "function", "rule", "of store", "ground"] + (["not", "or", "or-join", "not-join"] if depth else [])
        match rng.choice(choices):
            case "pattern":
                return self.pattern()
            case "function":
                return self.function()
            case "rule":
                names = ["reach", "linked", "odd", "even", "cut", "near", "value"]
                name = rng.choice(names)
                pair = {"near": _LONGS, "value": ("?a", rng.choice(["?x", "?i"]))}.get(name, _ENTITIES)
                if rng.random() < 0.1:
                    return f"(large {rng.choice(_LONGS)})"
                first, last = (pair[:1], pair[1:]) if name == "value" else (pair, [*pair, "_", "2"])
                return f"({name} {rng.choice(first)} {rng.choice(last)})"
            case "of store":
                entity = rng.choice(_ENTITIES)
                if rng.random() < 0.5:
                    return f"[(missing? $ {entity} :{rng.choice(ATTRIBUTES)})]"
                return rng.choice(
                    [f"[(get-else $ {entity} :n -1) ?i]", f"[(get-else $ {entity} :s :none) ?y]", f"[(get-else $ {entity} :d 0.0) ?d]"]
                )
            case "ground":
                return rng.choice(
                    [
                        "[(ground [1 2]) [?i ...]]",
                        "[(ground 1) ?j]",
                        '[(ground [[1 "a"] [2 "b"]]) [[?a ?s]]]',
                        "[(ground [1 1.0 true]) [?y ...]]",
                    ]
                )
            case "not":
                return f"(not {self.parts(depth)})"
            case "not-join":
                return f"(not-join [{rng.choice(_ENTITIES)}] {self.parts(depth)})"
            case "or":
                entity, other = rng.sample(_ENTITIES, 2)
                first, second = (
                    rng.choice([f"[{entity} :r {other}]", f"[{entity} :f {other}]", f"(and [{entity} :f {other}] {self.negation(entity)})"])
                    for _ in range(2)
                )
                return f"(or {first} {second})"
            case _:
                name = rng.choice([*_ENTITIES, *_LONGS])
                return f"(or-join [{name}] {self.branch(depth, name)} {self.branch(depth, name)})"

    def negation(self, entity: str) -> str:
        return f"(not [{entity} :{self.rng.choice(ATTRIBUTES)}])"

    def parts(self, depth: int) -> str:
        return " ".join(self.clause(depth - 1) for _ in range(self.rng.randrange(1, 3)))

    def branch(self, depth: int, name: str) -> str:
        own = f"[{name} :{self.rng.choice(ATTRIBUTES)}]" if name in _ENTITIES else f"[_ :{self.rng.choice(['n', 'm'])} {name}]"
        if name in _LONGS and self.rng.random() < 0.4:
            return f"[(< {name} 2)]"
        return own if self.rng.random() < 0.5 else f"(and {own} {self.clause(depth - 1)})"

    def function(self) -> str:
        rng = self.rng
        long, other = rng.choice(_LONGS), rng.choice([*_LONGS, "1", "?a"])
        return rng.choice(
            [
                f"[(< {long} {other})]",
                f"[(<= {other} {long})]",
                f"[(= ?x {rng.choice(['?i', '?s', '?k', '1', ':k'])})]",
                f"[(not= {rng.choice(_ENTITIES)} {rng.choice(_ENTITIES)})]",
                f"[(+ {long} 1) {rng.choice(_LONGS)}]",
                f"[(- {other} {long}) ?n]",
                f"[(* {long} 0.5) ?d]",
                f"[(mod {long} 3) ?n]",
                "[(str ?s ?i) ?s]",
                f"[(tuple {long} {rng.choice(_ENTITIES)}) ?u]",
                f"[(tuple ?i ?a) ?u] [(untuple ?u) [{rng.choice([*_LONGS, '_', '?n'])} {rng.choice(_ENTITIES)}]]",
                "[(count ?s) ?n]",
                f"[(even? {long})]",
                "[(< ?d 2)]",
                f"[(< ?g {rng.choice([long, '1'])})]",
                f"[(>= ?h {rng.choice([long, '1.0M'])})]",
                f"[(== ?g {long})]",
            ]
        )


class PullMaker:
    """Makes one pull pattern; not all of them are valid."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng

    def pattern(self, depth: int = 3) -> str:
        """The text of a pattern; its parts are less deep."""
        rng = self.rng
        names = rng.sample([*ATTRIBUTES, *REFS, *(f"_{one}" for one in REFS)], rng.randrange(1, 6))
        parts = [self.attribute(name, depth) for name in dict.fromkeys(names)]
        parts += ["*"] * (rng.random() < 0.15) + [rng.choice([":db/id", '[:db/id :as "id"]'])] * (rng.random() < 0.3)
        rng.shuffle(parts)
        return f"[{' '.join(parts)}]"

    def attribute(self, name: str, depth: int) -> str:
        """An attribute with what is pulled of it."""
        rng = self.rng
        named = f":{name}"
        options = rng.choice(["", "", ":limit 1", ":limit 2", ":default 1", ':default "none"', ":as :other", f':as "{name}" :limit nil'])
        if options:
            named = f"[{named} {options}]"
        if name.removeprefix("_") not in REFS or not depth or rng.random() < 0.2:
            return named
        return f"{{{named} {rng.choice(['...', '1', '2', '3', self.pattern(depth - 1), self.pattern(depth - 1)])}}}"
