"""Streams and delays: which rules may read them, and the plans of R-N, S' and of relations that depend on their own past.

A rule that reads a stream derives rows of a stream, unless it reads it as S', the relation of this transaction's rows.
"""

from __future__ import annotations

from collections.abc import Mapping

from deltic.errors import Unsupported
from deltic.frontends.datalog.bind_term import STREAM_AGGREGATE
from deltic.frontends.datalog.declarations import Declarations
from deltic.frontends.datalog.rewriting import parts_of_kind
from deltic.frontends.datalog.tree import AtomTerm, CallTerm, DatalogRule, IndexDeclaration, OperationTerm
from deltic.plan.nodes import OverTicks, Plan, Reference, TickRecursion, references
from deltic.plan.streams import is_stream
from deltic.schema import Schema


def check_streams(rule: DatalogRule, declarations: Declarations, recursive: set[str]) -> None:
    """Raises Unsupported, with the place, for a rule that reads streams in a way that has no meaning for the rows of one transaction."""
    streams: list[AtomTerm] = []
    in_recursion = next((head for head in rule.heads if head.name in recursive), None)
    for term in rule.body:
        negated = [one.operands[0] for one in parts_of_kind(term, OperationTerm, lambda one: one.operator == "not")]
        for atom in parts_of_kind(term, AtomTerm):
            relation = declarations.relation_named(atom.name)
            if relation is not None and atom.differentiated and not relation.is_stream:
                raise Unsupported(f"{atom.name}' of a relation", span=atom.span, remedy=f"read {atom.name}, or declare it as a stream")
            is_one = relation is not None and relation.is_stream
            if is_one and in_recursion is not None:
                remedy = "read it in a rule outside the recursion"
                raise Unsupported(f"a stream in the recursion of {in_recursion.name}", span=atom.span, remedy=remedy)
            if any(atom is one for one in negated) and (streams or (is_one and not atom.differentiated)):
                what = "an antijoin after a stream" if streams else "a negated stream"
                remedy = f"{streams[0].name}'(…), the stream as a relation" if streams else f"not {atom.name}'(…), the stream as a relation"
                raise Unsupported(what, span=atom.span, remedy=remedy)
            if is_one and not atom.differentiated:
                streams.append(atom)
        for call in parts_of_kind(term, CallTerm, lambda one: one.name == STREAM_AGGREGATE):
            if not streams:
                raise Unsupported("stream_aggregate of a relation, which keeps its rows", span=call.span, remedy="group_by")
            streams.clear()  # the accumulators are a relation
    if len(streams) > 1:
        remedy = f"{streams[1].name}'(…), the stream as a relation"
        raise Unsupported(f"a join of the streams {streams[0].name} and {streams[1].name}", span=streams[1].span, remedy=remedy)
    for head in rule.heads:
        _check_head(head, rule, streams, declarations)


def _check_head(head: AtomTerm, rule: DatalogRule, streams: list[AtomTerm], declarations: Declarations) -> None:
    relation = declarations.relation_named(head.name)
    derives_stream = relation is not None and relation.is_stream
    if streams and not derives_stream:
        remedy = f"declare {head.name} as a stream, or read {streams[0].name}'(…)"
        raise Unsupported(f"the relation {head.name} would be derived from the stream {streams[0].name}", span=head.place, remedy=remedy)
    if derives_stream and not streams:
        remedy = f"declare {head.name} as a relation"
        raise Unsupported(f"the stream {head.name} is derived without a stream", span=head.place, remedy=remedy)


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
    if atom.differentiated:
        if not is_stream(plan):
            raise Unsupported(f"{atom.name}' of a relation", span=atom.span, remedy=f"read {atom.name}")
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
