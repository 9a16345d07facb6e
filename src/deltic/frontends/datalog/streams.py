"""Streams and delays: which rules may read them, and the plans of R-N, S' and of relations that depend on their own past.

A rule that reads a stream derives rows of a stream, unless it reads it as S', the relation of this transaction's rows. Rules are checked
with the relations of the session, which may be streams that the program does not declare.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from deltic.errors import Unsupported
from deltic.frontends.datalog.bind_term import STREAM_AGGREGATE
from deltic.frontends.datalog.declarations import Declarations
from deltic.frontends.datalog.rewriting import parts_of_kind
from deltic.frontends.datalog.tree import AtomTerm, CallTerm, DatalogRule, IndexDeclaration, OperationTerm
from deltic.frontends.statements import Namespace
from deltic.plan.nodes import OverTicks, Plan, Reference, TickRecursion, references
from deltic.plan.streams import is_stream
from deltic.schema import Schema, StreamSchema, TableSchema


@dataclass(frozen=True, slots=True)
class DatalogStreams:
    """Which relations are streams: as the program declares them, or else as the session has them."""

    declarations: Declarations
    namespace: Namespace

    def __contains__(self, name: str) -> bool:
        declared = self.declarations.relation_named(name)
        if declared is not None:
            return declared.is_stream
        relation = self.namespace.relation(name)
        if relation is None or isinstance(relation, TableSchema):
            return isinstance(relation, StreamSchema)
        return is_stream(relation)


def check_streams(rule: DatalogRule, streams: DatalogStreams, recursive: set[str]) -> None:
    """Raises Unsupported, with the place, for a rule that reads streams in a way that has no meaning for the rows of one transaction."""
    stream_atoms: list[AtomTerm] = []
    in_recursion = next((head for head in rule.heads if head.name in recursive), None)
    for term in rule.body:
        negated = [one.operands[0] for one in parts_of_kind(term, OperationTerm, lambda one: one.operator == "not")]
        for atom in parts_of_kind(term, AtomTerm):
            is_one = atom.name in streams
            if atom.differentiated and not is_one:
                raise _of_relation(atom, streams.declarations)
            if is_one and in_recursion is not None:
                remedy = "read it in a rule outside the recursion"
                raise Unsupported(f"a stream in the recursion of {in_recursion.name}", span=atom.span, remedy=remedy)
            if any(atom is one for one in negated) and (stream_atoms or (is_one and not atom.differentiated)):
                what = "an antijoin after a stream" if stream_atoms else "a negated stream"
                remedy = (
                    f"{stream_atoms[0].name}'(…), the stream as a relation"
                    if stream_atoms
                    else f"not {atom.name}'(…), the stream as a relation"
                )
                raise Unsupported(what, span=atom.span, remedy=remedy)
            if is_one and not atom.differentiated:
                stream_atoms.append(atom)
        for call in parts_of_kind(term, CallTerm, lambda one: one.name == STREAM_AGGREGATE):
            if not stream_atoms:
                raise Unsupported("stream_aggregate of a relation, which keeps its rows", span=call.span, remedy="group_by")
            stream_atoms.clear()  # the accumulators are a relation
    if len(stream_atoms) > 1:
        remedy = f"{stream_atoms[1].name}'(…), the stream as a relation"
        raise Unsupported(
            f"a join of the streams {stream_atoms[0].name} and {stream_atoms[1].name}", span=stream_atoms[1].span, remedy=remedy
        )
    for head in rule.heads:
        _check_head(head, stream_atoms, derives_stream=head.name in streams)


def _check_head(head: AtomTerm, streams: list[AtomTerm], *, derives_stream: bool) -> None:
    if streams and not derives_stream:
        remedy = f"declare {head.name} as a stream, or read {streams[0].name}'(…)"
        raise Unsupported(f"the relation {head.name} would be derived from the stream {streams[0].name}", span=head.place, remedy=remedy)
    if derives_stream and not streams:
        remedy = f"declare {head.name} as a relation"
        raise Unsupported(f"the stream {head.name} is derived without a stream", span=head.place, remedy=remedy)


def _of_relation(atom: AtomTerm, declarations: Declarations) -> Unsupported:
    declared = declarations.relation_named(atom.name) is not None
    remedy = f"read {atom.name}, or declare it as a stream" if declared else f"read {atom.name}"
    return Unsupported(f"{atom.name}' of a relation", span=atom.span, remedy=remedy)


def check_index(index: IndexDeclaration, declarations: Declarations) -> None:
    """Raises Unsupported for an index on a stream."""
    relation = declarations.relation_named(index.atom.name)
    if relation is not None and relation.is_stream:
        remedy = "an index on a relation that is derived from it"
        raise Unsupported("an index on a stream, which holds the rows of one transaction", span=index.atom.span, remedy=remedy)


def delayed(atom: AtomTerm, plan: Plan) -> Plan:
    """The relation of an atom as of the transaction that it names: R-2 or S'."""
    for _ in range(atom.delay):
        plan = OverTicks(plan, "delay")
    if atom.differentiated and is_stream(plan):  # rules are checked before: else it is a stream that nothing derives, which is empty
        plan = OverTicks(plan, "current")
    return plan


def fed_back(bodies: Mapping[str, Plan]) -> dict[str, Plan]:
    """The denotations of relations whose bodies read one another by References to R-N, as of N ticks before."""
    past: dict[str, Schema] = {name: schema for body in bodies.values() for name, schema in references(body)}
    if not past:
        return dict(bodies)
    relations = [(f"{name}-1", body) for name, body in bodies.items()]
    depth: dict[str, int] = {}
    for name in past:
        relation, _, steps = name.rpartition("-")
        depth[relation] = max(int(steps), depth.get(relation, 1))
    for relation, most in depth.items():
        schema = bodies[relation].schema
        relations += [(f"{relation}-{step}", Reference(f"{relation}-{step - 1}", schema)) for step in range(2, most + 1)]
    return {name: TickRecursion(tuple(relations), f"{name}-1") for name in bodies}
