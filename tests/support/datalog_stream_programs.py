"""Test support: random Datalog programs with streams, delays, feedback and accumulators, beside recursion, negation and aggregates."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

SIZE = 4
INPUTS = {"A": 2, "B": 1}
STREAMS = {"S": 2, "T": 1}
STEPS = (
    "|acc, v, w| acc + v * w",
    "|acc: s64, v, _w| max(acc, v)",
    "|acc, v, w| if (acc + v > 9) None else Some{acc + w}",
    "|acc, v, w| match (v) { 0 -> None, 1 -> Some{acc}, _ -> Some{acc * w + v} }",
)
"""Of stream_aggregate; two of them drop keys."""


@dataclass(frozen=True)
class StreamProgram:
    """outputs: its relations and streams."""

    text: str
    outputs: tuple[str, ...]


def stream_program(seed: int) -> StreamProgram:
    """The program of a seed."""
    random = Random(f"streams {seed}")
    relations, streams = dict(INPUTS), dict(STREAMS)
    lines = [f"input relation {name}({_columns(width)})" for name, width in INPUTS.items()]
    lines += [f"input stream {name}({_columns(width)})" for name, width in STREAMS.items()]
    for i in range(random.randrange(3, 6)):
        name, width, is_stream = f"D{i}", random.choice((1, 2)), random.random() < 0.4
        lines.append(f"output {'stream' if is_stream else 'relation'} {name}({_columns(width)})")
        recursive = not is_stream and random.random() < 0.4
        for number in range(random.choice((1, 2, 2))):
            if is_stream:
                lines.append(_stream_rule(random, name, width, relations, streams))
            elif not recursive and random.random() < 0.3:
                lines.append(_fold_rule(random, name, width, relations, streams))
            else:
                lines.append(
                    _relation_rule(random, name, width, relations, {} if recursive else streams, recurses=recursive and number > 0)
                )
        (streams if is_stream else relations)[name] = width
    return StreamProgram("\n".join(lines), tuple(f"D{i}" for i in range(len(relations) + len(streams) - len(INPUTS) - len(STREAMS))))


def _columns(width: int) -> str:
    return ", ".join(f"c{i}: s64" for i in range(width))


def _atom(random: Random, relation: str, width: int, variables: str = "xyz") -> str:
    return (
        f"{relation}({', '.join(str(random.randrange(SIZE)) if random.random() < 0.1 else random.choice(variables) for _ in range(width))})"
    )


def _of_relations(random: Random, relations: dict[str, int]) -> str:
    """An atom of a relation, which may be delayed."""
    name = random.choice(list(relations))
    return _atom(random, name + random.choice(("", "", "-1", "-2")), relations[name])


def _stream_rule(random: Random, head: str, width: int, relations: dict[str, int], streams: dict[str, int]) -> str:
    """Rows of one stream, joined with relations before it."""
    body = [_of_relations(random, relations) for _ in range(random.choice((0, 1)))]
    if body and random.random() < 0.4:
        body += _negated(random, body, relations)
    name = random.choice(list(streams))
    body.append(_atom(random, name + random.choice(("", "", "-1")), streams[name]))
    return _rule(random, head, width, body, grouped=random.random() < 0.4)


def _fold_rule(random: Random, head: str, width: int, relations: dict[str, int], streams: dict[str, int]) -> str:
    """A stream, joined with relations before it, which is folded; at once or every few transactions."""
    body = [_of_relations(random, relations) for _ in range(random.choice((0, 0, 1)))]
    name = random.choice(list(streams))
    body.append(_atom(random, name + random.choice(("", "", "-1")), streams[name], "xy"))
    bound = _bound(body) or "0"
    columns = [random.choice(bound) for _ in range(width)]
    keys = [] if bound == "0" else list(dict.fromkeys(columns[:-1]))
    every = random.choice(("", "", ", 2", ", 3"))
    step = random.choice(STEPS)
    body.append(f"var acc = {random.choice(bound)}.stream_aggregate(({', '.join(keys)}), {step}, {random.randrange(2)}{every})")
    return f"{head}({', '.join([*columns[:-1], f'acc % {SIZE}'])}) :- {', '.join(body)}."


def _relation_rule(random: Random, head: str, width: int, relations: dict[str, int], streams: dict[str, int], *, recurses: bool) -> str:
    body = [_of_relations(random, relations)]
    if streams and random.random() < 0.6:
        name = random.choice(list(streams))
        body[0] = _atom(random, name + random.choice(("'", "'", "-1'")), streams[name])
    if recurses:
        body.append(_atom(random, head, width))
    elif random.random() < 0.4:
        body.append(_atom(random, f"{head}-{random.choice((1, 1, 2))}", width))
    elif random.random() < 0.3:
        body.append(_of_relations(random, relations))
    if random.random() < 0.3:
        body += _negated(random, body, relations)
    return _rule(random, head, width, body, grouped=not recurses and random.random() < 0.3)


def _negated(random: Random, body: list[str], relations: dict[str, int]) -> list[str]:
    bound = _bound(body)
    name = random.choice(list(relations))
    return [f"not {_atom(random, name + random.choice(('', '-1')), relations[name], bound)}"] if bound else []


def _bound(body: list[str]) -> str:
    return "".join(variable for variable in "xyz" if any(variable in atom.partition("(")[2] for atom in body))


def _rule(random: Random, head: str, width: int, body: list[str], *, grouped: bool) -> str:
    bound = _bound([atom for atom in body if not atom.startswith("not ")]) or "0"
    if bound != "0" and random.random() < 0.3:
        body.append(f"{random.choice(bound)} {random.choice(('<', '!=', '>='))} {random.randrange(SIZE)}")
    columns = [random.choice(bound) for _ in range(width)]
    if grouped and bound != "0":
        keys = list(dict.fromkeys(columns[:-1]))
        body.append(f"var agg = {random.choice(bound)}.group_by(({', '.join(keys)})).{random.choice(('count', 'sum', 'min', 'max'))}()")
        columns[-1] = f"agg % {SIZE}"
    elif random.random() < 0.3:
        columns[-1] = f"({columns[-1]} + 1) % {SIZE}"
    return f"{head}({', '.join(columns)}) :- {', '.join(body)}."
