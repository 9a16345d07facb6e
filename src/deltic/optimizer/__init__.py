"""Plan to plan: rewrites that preserve the relation that a plan denotes and make it cheaper to maintain.

A rule is a function from a plan to a plan, in a file of its own, named by its verb. `optimize` applies RULES in turn until a whole round
changes nothing. All rules satisfy these laws, which are tested on random plans:
- the relation is the same, and so are the schema's types, nullability and (at the root) names; a stream stays one;
- the result fails only where the written plan fails: no expression that can fail (expr/failing.py) moves ahead of the filter or join that
  guards it. Unused expressions may be dropped, and their failures with them.
When a plan has settled, JOINS place and order its joins by the keys and filters that they have then, form multiway joins, and it settles
again.
LAST come rules whose results the others would take apart, such as an expression below the filter that reads it; each is applied once.
A view whose state depends on earlier ticks is a table to the plans that read it: with its filter or its columns moved into it, they would
begin with other rows than the view has.
Linear aggregates are pushed below joins in lowering, where the sums that a weight can hold are defined.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import cycle, islice
from types import MappingProxyType
from typing import Final

from deltic.optimizer.derive_filters import derive_filters
from deltic.optimizer.drop_distinct import drop_distinct
from deltic.optimizer.drop_limits import drop_limits
from deltic.optimizer.extract_fields import extract_fields
from deltic.optimizer.factor_disjunctions import factor_disjunctions
from deltic.optimizer.forget_aggregated_rows import forget_aggregated_rows
from deltic.optimizer.forget_closed_windows import forget_closed_windows
from deltic.optimizer.forget_unjoinable_rows import forget_unjoinable_rows
from deltic.optimizer.form_anti_joins import form_anti_joins
from deltic.optimizer.form_inner_joins import form_inner_joins
from deltic.optimizer.form_multiway_joins import form_multiway_joins
from deltic.optimizer.form_range_joins import form_range_joins
from deltic.optimizer.join_partitions import join_partitions
from deltic.optimizer.limit_ranks import limit_ranks
from deltic.optimizer.limit_windows import limit_windows
from deltic.optimizer.merge_left_joins import merge_left_joins
from deltic.optimizer.merge_projections import merge_projections
from deltic.optimizer.order_joins import order_joins
from deltic.optimizer.prune_columns import prune_columns
from deltic.optimizer.pull_left_joins_up import pull_left_joins_up
from deltic.optimizer.push_filters_down import push_filters_down
from deltic.optimizer.push_semijoins_down import push_semijoins_down
from deltic.optimizer.push_time_down import push_time_down
from deltic.optimizer.replace_views import replace_views, replaced
from deltic.optimizer.restrict_groups import restrict_groups
from deltic.optimizer.row_estimates import UNKNOWN, Sizes
from deltic.optimizer.simplify import simplify
from deltic.optimizer.split_cases import split_cases
from deltic.optimizer.split_filters import split_filters
from deltic.optimizer.split_left_joins import split_left_joins
from deltic.plan.columns import reference
from deltic.plan.nodes import Distinct, Filter, Join, OverTicks, Plan, Project, TemporalFilter, TopK, Values, Window
from deltic.plan.streams import is_stream
from deltic.plan.walk import kinds
from deltic.schema import Schema, Type

Rule = Callable[..., Plan]

RULES: Final[tuple[Rule, ...]] = (
    forget_unjoinable_rows,
    simplify,
    merge_projections,
    factor_disjunctions,
    form_inner_joins,
    form_anti_joins,
    forget_closed_windows,
    push_filters_down,
    derive_filters,
    pull_left_joins_up,
    limit_windows,
    push_time_down,
    drop_distinct,
    drop_limits,
    merge_left_joins,
    prune_columns,
)
JOINS: Final[tuple[Rule, ...]] = (push_semijoins_down, order_joins, form_multiway_joins)
RANKS: Final[tuple[Rule, ...]] = (limit_ranks,)
"""Once joins are settled; RULES and JOINS follow again, since a relation without such a rank is empty."""
LAST: Final[tuple[Rule, ...]] = (
    forget_aggregated_rows,
    join_partitions,
    merge_projections,
    extract_fields,
    simplify,
    split_cases,
    split_filters,
    form_range_joins,
    restrict_groups,
    split_left_joins,
)
SIZED: Final[tuple[Rule, ...]] = (push_semijoins_down, order_joins, restrict_groups)
"""Those that get the sizes of tables, too."""
CONCERNED: Final[Mapping[Rule, frozenset[type[Plan]]]] = MappingProxyType(
    {
        forget_unjoinable_rows: frozenset((Join,)),
        merge_projections: frozenset((Project,)),
        factor_disjunctions: frozenset((Filter, Join)),
        form_inner_joins: frozenset((Join,)),
        form_anti_joins: frozenset((Join,)),
        forget_closed_windows: frozenset((OverTicks,)),
        push_filters_down: frozenset((Filter, Join)),
        derive_filters: frozenset((Join,)),
        pull_left_joins_up: frozenset((Join,)),
        limit_windows: frozenset((Window,)),
        push_time_down: frozenset((TemporalFilter,)),
        drop_distinct: frozenset((Distinct,)),
        drop_limits: frozenset((TopK,)),
        merge_left_joins: frozenset((Join,)),
        push_semijoins_down: frozenset((Join,)),
        order_joins: frozenset((Join,)),
        form_multiway_joins: frozenset((Join,)),
        limit_ranks: frozenset((Window,)),
        forget_aggregated_rows: frozenset((OverTicks,)),
        join_partitions: frozenset((Window,)),
        extract_fields: frozenset((Filter,)),
        split_cases: frozenset((Join,)),
        split_filters: frozenset((Join,)),
        form_range_joins: frozenset((Join,)),
        restrict_groups: frozenset((Join,)),
        split_left_joins: frozenset((Join,)),
    }
)
"""The classes of nodes of which a rule changes nothing in a plan that has none. The other rules concern all plans."""
ROUNDS: Final = 20  # rules move down or remove, or split what they match no more; plans settle in a few rounds

NO_VIEWS: Final[Mapping[Plan, Plan]] = MappingProxyType({})

__all__ = ["CONCERNED", "JOINS", "LAST", "RANKS", "ROUNDS", "RULES", "optimize"]


def optimize(plan: Plan, views: Mapping[Plan, Plan] = NO_VIEWS, sizes: Sizes = UNKNOWN) -> Plan:
    """The fixed point of RULES: the same relation with the same schema, in fewer and narrower nodes.

    views: plans that occur in this one, each with the optimized plan whose state holds its rows. Rules do not look into them.
    sizes: of tables, by which its joins are ordered and its groups restricted.
    """

    above, meanings = replace_views(plan, views) if views else (plan, {})
    settled = ranked = _joined(_settled(above), sizes)
    for rule in RANKS:
        ranked = _applied(rule, ranked)
    if ranked != settled:
        settled = _joined(_settled(ranked), sizes)
    for rule in LAST:
        settled = _applied(rule, settled, sizes)
    if meanings:
        settled = _applied(forget_aggregated_rows, replaced(settled, meanings))
    return _named(settled, plan.schema.names)


def _settled(plan: Plan) -> Plan:
    unchanged = 0
    for rule in islice(cycle(RULES), ROUNDS * len(RULES)):
        before, plan = plan, _applied(rule, plan)
        unchanged = unchanged + 1 if plan is before or plan == before else 0
        if unchanged == len(RULES):
            break
    return plan


def _joined(settled: Plan, sizes: Sizes) -> Plan:
    """A settled plan with its joins placed, ordered and formed, settled again."""
    for _ in range(ROUNDS):
        formed = settled
        for rule in JOINS:
            formed = _applied(rule, formed, sizes)
        if formed == settled:
            break
        settled = _settled(formed)
    return settled


def _applied(rule: Rule, plan: Plan, sizes: Sizes = UNKNOWN) -> Plan:
    concerned = CONCERNED.get(rule)
    if concerned is not None and concerned.isdisjoint(kinds(plan)):
        return plan
    after = rule(plan, sizes) if rule in SIZED else rule(plan)
    if after is not plan:
        assert _columns(after) == _columns(plan), rule.__name__
        assert is_stream(after) == is_stream(plan), rule.__name__
    return after


def _columns(plan: Plan) -> list[tuple[Type, bool]]:
    return [(field.type, field.nullable) for field in plan.schema]


def _named(plan: Plan, names: tuple[str, ...]) -> Plan:
    """The plan with these column names. Within a plan names have no meaning, so rules may drop them; the root gets them back."""
    if plan.schema.names == names:
        return plan
    if isinstance(plan, Values):
        return replace(plan, schema=Schema(tuple(replace(field, name=name) for name, field in zip(names, plan.schema, strict=True))))
    if isinstance(plan, Project):
        return replace(plan, columns=tuple((name, expr) for name, (_, expr) in zip(names, plan.columns, strict=True)))
    return Project(plan, tuple((name, reference(plan.schema, i)) for i, name in enumerate(names)))
