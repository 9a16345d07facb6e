"""Test support: random Datalog programs, as text of Deltic and of clingo, and random changes of their inputs.

Numbers are 0 to 4, so that recursions end. Each relation has the level of its place: rules read relations of lower levels in any way, and
those of their own group of two levels by positive atoms.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from random import Random

import clingo

SIZE = 5
Row = tuple[int, ...]
Content = dict[str, set[Row]]


@dataclass(frozen=True)
class RandomAtom:
    """None is a wildcard, an int a constant, a str a variable."""

    relation: str
    arguments: tuple[str | int | None, ...]


@dataclass(frozen=True)
class RandomRule:
    """aggregate: (its function, the variable of its values, the keys); the head then has the keys and the result."""

    heads: tuple[tuple[str, tuple[str, ...]], ...]
    atoms: tuple[RandomAtom, ...]
    negated: tuple[RandomAtom, ...] = ()
    conditions: tuple[tuple[str, str, str], ...] = ()
    aggregate: tuple[str, str, tuple[str, ...]] | None = None


@dataclass
class RandomProgram:
    """widths: the number of columns of each relation; the inputs first."""

    seed: int
    inputs: dict[str, int]
    derived: dict[str, int]
    rules: list[RandomRule] = field(default_factory=list)

    @property
    def text(self) -> str:
        """In DDlog's syntax."""
        lines = [f"input relation {name}({_columns(width)})" for name, width in self.inputs.items()]
        lines += [f"output relation {name}({_columns(width)})" for name, width in self.derived.items()]
        forms = Random(f"forms {self.seed}")
        return "\n".join([*lines, *(_datalog(rule, forms) for rule in self.rules)])

    @property
    def clingo(self) -> str:
        """In clingo's syntax."""
        return "\n".join(map(_clingo, self.rules))


def _columns(width: int) -> str:
    return ", ".join(f"c{i}: s64" for i in range(width))


def _datalog(rule: RandomRule, forms: Random) -> str:
    """forms: chooses between texts of one meaning."""
    heads = ", ".join(f"{name}({', '.join(arguments)})" for name, arguments in rule.heads)
    parts = [_atom(one) for one in rule.atoms] + [f"not {_atom(one)}" for one in rule.negated]
    parts += [f"{a} {operator} {b}" for a, operator, b in rule.conditions]
    bound = [one for atom in rule.atoms for one in atom.arguments if isinstance(one, str)]
    if forms.random() < 0.1:
        parts.append(f"Inspect ({forms.choice(bound)}, 0)")
    if rule.aggregate is not None:
        function, value, keys = rule.aggregate
        group = f".group_by(({', '.join(keys)}))"
        if function == "max" and forms.random() < 0.5:
            parts.append(f"var m = (0, {value}){group}.to_map(), var agg = unwrap_or(m.insert_imm(1, 0).get(0), -1)")
        else:
            parts.append(f"var agg = {value}{group}.{function}()")
    text = f"{heads} :- {', '.join(parts)}."
    if len(rule.atoms) > 1 and forms.random() < 0.2:
        names = [one.relation for one in rule.atoms]
        forms.shuffle(names)
        return f'#[join_order = "{", ".join(names)}"] {text}'
    return text


def _atom(atom: RandomAtom) -> str:
    return f"{atom.relation}({', '.join('_' if one is None else str(one) for one in atom.arguments)})"


def _clingo(rule: RandomRule) -> str:
    if rule.aggregate is None:
        body = ", ".join(_clingo_body(rule, {}))
    else:
        function, value, keys = rule.aggregate
        named, names = _named(rule)
        inner = {one: f"I{one}" for one in names if one not in keys}
        tuple_ = ", ".join(inner.get(one, one.capitalize()) for one in dict.fromkeys(names))
        values = f"{inner.get(value, value.capitalize())}, {tuple_}" if function == "sum" else tuple_
        values = inner.get(value, value.capitalize()) if function in ("min", "max") else values
        body = ", ".join(
            [
                *_clingo_body(rule, {}),
                f"Agg = #{function} {{ {values} : {', '.join(_clingo_body(named, inner))} }}",
            ]
        )
    heads = [f"{name.lower()}({', '.join(map(_expression, arguments))})" for name, arguments in rule.heads]
    return "\n".join(f"{head} :- {body}." for head in heads)


def _named(rule: RandomRule) -> tuple[RandomRule, list[str]]:
    """The rule with a variable for each wildcard of a positive atom, and all variables."""
    names: list[str] = []
    atoms = []
    for i, atom in enumerate(rule.atoms):
        arguments = tuple(f"w{i}_{j}" if one is None else one for j, one in enumerate(atom.arguments))
        names += [one for one in arguments if isinstance(one, str)]
        atoms.append(RandomAtom(atom.relation, arguments))
    return RandomRule(rule.heads, tuple(atoms), rule.negated, rule.conditions), names


class _Names(dict[str, str]):
    def __missing__(self, name: str) -> str:
        return f"I{name}" if name.startswith("w") else name.capitalize()


def _clingo_body(rule: RandomRule, renamed: Mapping[str, str]) -> list[str]:
    names = _Names(renamed)

    def term(one: str | int | None) -> str:
        return "_" if one is None else str(one) if isinstance(one, int) or one.isdigit() else names[one]

    def atom(one: RandomAtom) -> str:
        return f"{one.relation.lower()}({', '.join(map(term, one.arguments))})"

    parts = [atom(one) for one in rule.atoms] + [f"not {atom(one)}" for one in rule.negated]
    return parts + [f"{term(a)} {'=' if operator == '==' else operator} {term(b)}" for a, operator, b in rule.conditions]


def _expression(text: str) -> str:
    """A head's argument: a variable, a constant, or (x + c) % n."""
    return re.sub("[a-z]+", lambda name: name[0].capitalize(), text.replace("%", "\\").replace(" ", ""))


def random_program(seed: int) -> RandomProgram:
    """The program of a seed."""
    random = Random(seed)
    inputs = {name: random.choice((1, 2, 2, 3)) for name in "AB"[: random.choice((1, 2, 2))]}
    derived = {f"D{i}": random.choice((1, 2, 2, 3)) for i in range(random.choice((2, 3, 4, 5)))}
    program = RandomProgram(seed, inputs, derived)
    names = list(derived)
    for i, name in enumerate(names):
        group = [other for j, other in enumerate(names) if j // 2 == i // 2]
        below = [*inputs, *names[: i - i % 2]]
        for number in range(random.choice((1, 2, 2, 3))):
            recursive = number > 0 and random.random() < 0.7
            program.rules.append(_rule(random, program, name, below, group if recursive else []))
    return program


def _rule(random: Random, program: RandomProgram, name: str, below: list[str], group: list[str]) -> RandomRule:
    widths = {**program.inputs, **program.derived}
    variables = ["x", "y", "z", "u"]
    relations = [random.choice(below) for _ in range(random.choice((1, 1, 2)))] + ([random.choice(group)] if group else [])
    random.shuffle(relations)
    atoms = tuple(RandomAtom(one, tuple(_argument(random, variables, 0.15) for _ in range(widths[one]))) for one in relations)
    bound = sorted({one for atom in atoms for one in atom.arguments if isinstance(one, str)})
    if not bound:
        atoms = (RandomAtom(relations[0], ("x", *atoms[0].arguments[1:])), *atoms[1:])
        bound = ["x"]
    negated = ()
    if random.random() < 0.4:
        other = random.choice(below)
        negated = (RandomAtom(other, tuple(_argument(random, bound, 0.3) for _ in range(widths[other]))),)
    conditions = ()
    if random.random() < 0.4:
        right = random.choice([*bound, str(random.randrange(SIZE))])
        conditions = ((random.choice(bound), random.choice(("<", "<=", "!=", "==", ">")), right),)
    if not group and widths[name] <= len(bound) + 1 and random.random() < 0.4:
        keys = tuple(random.sample(bound, widths[name] - 1))
        function = random.choice(("count", "sum", "min", "max"))
        value = random.choice(bound)
        head = [*keys, f"agg % {SIZE}"]
        return RandomRule(((name, tuple(head)),), atoms, negated, conditions, (function, value, keys))
    heads = [(name, tuple(_head_argument(random, bound) for _ in range(widths[name])))]
    if group and random.random() < 0.3:
        other = random.choice(group)
        heads.append((other, tuple(_head_argument(random, bound) for _ in range(widths[other]))))
    return RandomRule(tuple(heads), atoms, negated, conditions)


def _argument(random: Random, variables: list[str], wildcards: float) -> str | int | None:
    kind = random.random()
    return None if kind < wildcards else random.randrange(SIZE) if kind < wildcards + 0.08 else random.choice(variables)


def _head_argument(random: Random, bound: list[str]) -> str:
    kind = random.random()
    if kind < 0.1:
        return str(random.randrange(SIZE))
    name = random.choice(bound)
    return f"({name} + {random.randrange(1, SIZE)}) % {SIZE}" if kind < 0.3 else name


def changes(program: RandomProgram, ticks: int) -> list[tuple[dict[str, list[Row]], dict[str, list[Row]]]]:
    """For each tick (the rows deleted, the rows inserted), by input."""
    random = Random(f"changes {program.seed}")
    content: Content = {name: set() for name in program.inputs}
    found = []
    for tick in range(ticks):
        deleted = {name: random.sample(sorted(rows), random.randrange(1 + len(rows) // 2)) for name, rows in content.items()}
        for name, rows in deleted.items():
            content[name] -= set(rows)
        inserted = {}
        for name, width in program.inputs.items():
            rows = {tuple(random.randrange(SIZE) for _ in range(width)) for _ in range(random.randrange(1 + (6 if tick == 0 else 3)))}
            inserted[name] = sorted(rows - content[name])
            content[name] |= rows
        found.append((deleted, inserted))
    return found


def model(program: RandomProgram, content: Content) -> Content:
    """The relations by clingo, the program's only answer set."""
    facts = "".join(f"{name.lower()}({','.join(map(str, row))}).\n" for name, rows in content.items() for row in rows)
    control = clingo.Control(["--warn=none"])
    control.add("base", [], facts + program.clingo)
    control.ground([("base", [])])
    found: Content = {name: set() for name in program.derived}
    with control.solve(yield_=True) as handle:
        models = [answer.symbols(atoms=True) for answer in handle]
    assert len(models) == 1
    for symbol in models[0]:
        name = symbol.name.capitalize()
        if name in found:
            found[name].add(tuple(argument.number for argument in symbol.arguments))
    return found
