"""The instructions of groups: sums, MIN and MAX, if the words of their values have the order, and top-k."""

from __future__ import annotations

from collections.abc import Sequence

from deltic.circuit.extremes import Extreme
from deltic.circuit.operators.aggregate import AggregateOperator
from deltic.circuit.operators.top_k import TopKOperator
from deltic.circuit.programs.assembler import NO_REGISTER, ArrangementSlot, Assembler, Register
from deltic.circuit.results import Result
from deltic.circuit.terms import Term
from deltic.kernels import instructions as op
from deltic.kernels import level_extremes as words
from deltic.schema import BIGINT, DOUBLE, Field
from deltic.trace.encoding import words_of
from deltic.trace.sums import NARROW, bound, mean_shape

Numbers = tuple[int, ...]


def aggregate(operator: AggregateOperator, inputs: Sequence[Register], out: Register, to: Assembler) -> bool:
    if operator.extremes or operator.digits is not None:
        return _extremes(operator, inputs, out, to)
    results = [_result(result) for result in operator.results]
    if len(inputs) > 1 or operator.memory is not None or any(result is None for result in results):
        return False
    change = to.sorted(inputs[0])
    width = out.columns - operator.key
    numbers = [number for result in results if result is not None for number in (*result, *[0] * (op.RESULT - len(result)))]
    slot = to.slot(operator.sums)
    shown = f"{out} ← groups of {change}[{', '.join(map(str, range(operator.key)))}] in {slot}, before and after: {_values(operator)}"
    shape = (out, change, operator.key, operator.weights, slot, width, int(operator.always))
    to.emit(op.AGGREGATE, *shape, len(results), *numbers, shown=shown)
    return True


def _values(operator: AggregateOperator) -> str:
    """The results in a listing."""
    return ", ".join(f"{r.kind} of w{r.sources[0].slot if r.sources else r.counted}" for r in operator.results)


def _result(result: Result) -> tuple[int, ...] | None:
    """Its words; None if the runner cannot compute it."""
    target, nullable = result.target.type, int(result.target.nullable)
    if result.kind == "count":
        return (op.RESULT_COUNT, result.counted, result.counted, nullable) if target == BIGINT else None
    if result.kind not in ("total", "mean"):
        return None
    (source,) = result.sources
    place = (source.slot, result.counted, nullable)
    if result.kind == "mean" and source.kind == "decimal" and target.is_decimal:
        zeros, slack, bounds = mean_shape(source.scale, target)
        return (op.RESULT_QUOTIENT, *place, source.width, 0, 0, int(target.precision > NARROW), zeros, slack, *bounds)
    if result.kind == "mean":
        kinds = {"int": op.RESULT_MEAN, "rounded": op.RESULT_ROUNDED_MEAN} if target == DOUBLE else {}
        return (kinds[source.kind], *place) if source.kind in kinds else None
    if source.kind == "decimal" and target.is_decimal:
        return (op.RESULT_DECIMAL, *place, source.width, *bound(target.precision), int(target.precision > NARROW))
    totals = {"bigint": op.RESULT_JOINED, "count": op.RESULT_TOTAL, "int": op.RESULT_TOTAL} if target == BIGINT else {}
    return (totals[source.kind], *place) if source.kind in totals else None


def _extremes(operator: AggregateOperator, inputs: Sequence[Register], out: Register, to: Assembler) -> bool:
    results = [_words_written(operator, i) if r.kind == "extreme" or _is_real(r) else _result(r) for i, r in enumerate(operator.results)]
    parts = [_parts(operator, number) for number in range(len(operator.extremes))]
    if operator.memory is None or None in results or None in parts:
        return False
    sums, *changes = [to.sorted(source) for source in inputs]
    for change in (sums, *changes):
        to.emit(op.INDEXED, change, change.columns, shown=str(change))
    groups = _groups(operator.key, (sums, *changes), to)
    rows = to.register(out.columns, 1)
    slot, memory = to.slot(operator.sums), to.slot(operator.memory)
    operands: list[int | Register | ArrangementSlot] = [len(operator.extremes)]
    firsts = []
    if operator.digits is None:
        operands += [0, NO_REGISTER, 0]
    else:
        digits, *changes = changes
        summed, stored = [i for i, r in enumerate(operator.results) if _is_real(r)], to.slot(operator.digits)
        operands += [len(summed), digits, stored, *(number for i in summed for number in _real(operator, i))]
        firsts.append(f"digits in {stored} + {digits}")
    for change, extreme, part in zip(changes, operator.extremes, parts, strict=True):
        assert isinstance(extreme, Extreme) and part is not None
        arrangement = to.slot(extreme.arrangement)
        operands += [change, arrangement, extreme.width, *part]
        firsts.append(f"first row of {arrangement} + {change}")
    operands.append(len(results))
    for result in results:
        operands += [*(result or ()), *[0] * (op.RESULT - len(result or ()))]
    shape = (rows, groups, operator.key, sums, operator.weights, slot, memory, out.columns - operator.key, int(operator.always))
    shown = f"{rows} ← groups {groups} in {slot} + {sums}, before as in {memory}, and after: {', '.join(firsts)}"
    to.emit(op.EXTREMES, *shape, *operands, shown=shown)
    to.sort(out, rows)
    to.append(operator.memory, out)
    return True


def top_k(operator: TopKOperator, inputs: Sequence[Register], out: Register, to: Assembler) -> bool:
    if not operator.limit:
        return False  # which has no first rows
    change, rows = to.sorted(inputs[0]), to.register(operator.width, 1)
    to.emit(op.INDEXED, change, change.columns, shown=str(change))
    slot, memory = to.slot(operator.arrangement), to.slot(operator.memory)
    texts = [number for position, descending in operator.texts for number in (position, int(descending))]
    shape = (rows, change, operator.key, operator.width, operator.limit, slot, memory, len(operator.texts))
    key = ", ".join(map(str, range(operator.key)))
    shown = f"{rows} ← first {operator.limit} of groups {change}[{key}] in {slot} + {change}, less those of {memory}"
    to.emit(op.FIRST_ROWS, *shape, *texts, shown=shown)
    to.select(out, rows, [(word, 0) for word in operator.output])
    to.append(operator.memory, rows)
    return True


def _groups(key: int, inputs: Sequence[Register], to: Assembler) -> Register:
    """The keys of all inputs, each once."""
    keys = [to.register(key, 1) for _ in inputs]
    for each, source in zip(keys, inputs, strict=True):
        to.select(each, source, [(word, 0) for word in range(key)], [op.ONES])
    every = to.register(key, 1)
    to.concatenate(every, *keys)
    return to.sorted(every)


def _is_real(result: Result) -> bool:
    """Whether it is a sum of doubles, or its mean."""
    return result.kind in ("total", "mean") and result.sources[0].kind == "real" and result.target.type == DOUBLE


def _real(operator: AggregateOperator, i: int) -> Numbers:
    """The operands of such a sum."""
    result, place = operator.results[i], operator.offsets[i].start - operator.offsets[0].start
    return result.sources[0].slot, result.counted, int(result.kind == "mean"), int(result.target.nullable), place


def _words_written(operator: AggregateOperator, i: int) -> Numbers:
    place = operator.offsets[i]
    return op.RESULT_EXTREME, place.stop - place.start


def _parts(operator: AggregateOperator, number: int) -> Numbers | None:
    """The parts of each order word of an extreme; None if it is not a first row, or its order words are not words of the values."""
    extreme = operator.extremes[number]
    own = [
        (r.part, place) for r, place in zip(operator.results, operator.offsets, strict=True) if r.kind == "extreme" and r.extreme == number
    ]
    if not isinstance(extreme, Extreme) or len(own) != len(extreme.terms) or any(t.field.type.has_bytes for t in extreme.terms):
        return None  # a part in two results, or strings, whose ids have no order
    parts, first = list[int](), operator.offsets[0].start
    for term, field, (_, place) in zip(extreme.terms, extreme.fields, sorted(own, key=lambda each: each[0]), strict=True):
        parts += _parts_of(term, field, place.start - first)
    return tuple(parts)


def _parts_of(term: Term, field: Field, place: int) -> list[int]:
    """The parts of each order word of a term, whose words in the row of a group begin at `place`."""
    parts, mask, has_flag = list[int](), -int(term.descending), words_of(field.type, field.nullable) > words_of(field.type, False)
    if term.flagged and has_flag:
        parts += [int(not term.nulls_first), place, words.PLAIN]
    elif term.flagged:
        parts += [int(term.nulls_first), place, words.IS_NULL]
    forms = {(True, True): words.PLAIN, (True, False): words.FLAGGED, (False, True): words.MARKED, (False, False): words.MARKED}
    leading = forms[has_flag, term.flagged] if field.nullable else words.PLAIN
    for word in range(term.width - term.flagged):
        parts += [mask, place + has_flag + word, words.PLAIN if word else leading]
    return parts
