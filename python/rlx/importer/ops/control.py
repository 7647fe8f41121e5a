"""If, Loop and Scan: branches decided while importing are inlined, the rest become stages."""

from __future__ import annotations

from rlx.errors import Error, ModelError, UnsupportedError
from rlx.importer.context import Child, joined_type
from rlx.importer.registry import Body, Ints, op
from rlx.importer.scope import Scope
from rlx.ir.build import DType, If, Loop, Scan, TensorType, Value, apply, symbols_of

UNROLL_LIMIT = 8  # trips of a constant Loop that are inlined rather than run as a stage


@op("If", since=1)
def if_(b, cond, *, then_branch: Body, else_branch: Body):
    known = b.numbers_or_none(cond)
    if known is not None and len(known) != 1:
        raise ModelError("the condition must be one bool", got=str(cond.type))
    if known is not None and isinstance(known[0], int):
        return b.inline(then_branch if known[0] else else_branch)
    try:
        branches = [b.child(g, []) for g in (then_branch, else_branch)]
    except Error:
        # A branch that is not taken may make no sense for the shapes at hand: take only the one.
        taken = b.structural_one(cond, "a branch of an If does not fit the inputs")
        return b.inline(then_branch if taken else else_branch)
    if not all(_same_form(x.type, y.type) for x, y in zip(*(c.outputs for c in branches))):
        # The branches give different ranks or types: the condition decides the program's form.
        taken = b.structural_one(cond, "the branches of an If differ in rank or type")
        return b.inline(then_branch if taken else else_branch)
    captures = _merge_captures(branches)
    outputs = []
    for pair in zip(*(c.outputs for c in branches)):
        value = Value(pair[0].type)
        seen = [c.outside(v.type) for c, v in zip(branches, pair)]
        value.type = joined_type(seen, value, "outputs of If")
        outputs.append(value)
    prim = If(branches[0].graph, branches[1].graph)
    return b.stage(prim, [cond, *captures], outputs)


@op("Loop", since=1)
def loop(b, trip_count=None, cond=None, *carried, body: Body):
    carried = list(carried)
    count = len(carried)
    if len(body.inputs) < 2 + count or len(body.outputs) < 1 + count:
        raise ModelError(f"a Loop's body takes and gives the {count} values that are carried",
                         expected=f"{2 + count} inputs, and {1 + count} outputs or more",
                         got=f"{len(body.inputs)} inputs, {len(body.outputs)} outputs")
    trips = _constant_trips(b, trip_count, cond, body)
    if trips:
        return _unrolled(b, trips, carried, body)
    # Captured instead of carried: a constant is one in the body too.
    kept = {c for c in range(count) if _handed_on(body, 2 + c, 1 + c)}
    child, types = _settled_body(b, body, carried, kept)
    going = [c for c in range(count) if c not in kept]
    starts, ends = ([values[c] for c in going] for values in (carried, child.outputs[1:]))
    outputs = _carried_outputs(child, starts, ends)
    results = {c: v for c, v in zip(going, outputs)}
    scans = child.outputs[1 + count:]
    child.graph.outputs = [child.outputs[0], *ends, *scans]
    for v in scans:
        value = Value(v.type)
        dims = _slice_dims(child, v, value, 0, types)
        value.type = TensorType(v.dtype, (value.dim(0), *dims))
        outputs.append(value)
    b.stage(Loop(child.graph, len(going), len(scans)),
            [trip_count, cond, *starts, *child.captures], outputs)
    return [results.get(c, v) for c, v in enumerate(carried)] + outputs[len(going):]


def _settled_body(b, body, carried: list[Value], kept: set[int]) -> tuple[Child, list]:
    """The body at types that an iteration keeps, and these types; it captures those in `kept`."""
    types = [v.type for v in carried]
    first = [TensorType(DType.INT64, ()), TensorType(DType.BOOL, ())]
    free: list[tuple[int, ...]] = [()] * len(carried)  # axes with dims of their own in the loop
    for _ in range(4):
        child = b.child(body, first + types, {2 + c: carried[c] for c in kept})
        changed = _changed_dims(child.inputs[2:], child.outputs[1:1 + len(carried)], free)
        if not any(changed):
            return child, types
        types = [_forget(t, axes) if isinstance(t, TensorType) else end.type
                 for t, axes, end in zip(types, changed, child.outputs[1:])]
        free = [known + new for known, new in zip(free, changed)]
    raise UnsupportedError("the types of the loop's carried values do not settle")


@op("Scan", since=9)
def scan(b, *inputs, body: Body, num_scan_inputs: int, scan_input_axes: Ints = (),
         scan_input_directions: Ints = (), scan_output_axes: Ints = (),
         scan_output_directions: Ints = ()):
    m = num_scan_inputs
    states, scanned = list(inputs[:len(inputs) - m]), list(inputs[len(inputs) - m:])
    axes = [b.axis(a, v.rank) for a, v in zip(scan_input_axes or (0,) * m, scanned)]
    slices = [TensorType(v.dtype, v.shape[:a] + v.shape[a + 1:]) for a, v in zip(axes, scanned)]
    child = b.child(body, [v.type for v in states] + slices)
    n = len(states)
    outputs = _carried_outputs(child, states, child.outputs[:n])
    rest = child.outputs[n:]
    out_axes = [b.axis(a, v.rank + 1) for a, v in zip(scan_output_axes or (0,) * len(rest), rest)]
    length = scanned[0].shape[axes[0]] if scanned else 0
    for v, a in zip(scanned[1:], axes[1:]):
        length = b.same_dim(length, v.shape[a], "the lengths of Scan inputs")
    for v, a in zip(rest, out_axes):
        value = Value(v.type)
        dims = _slice_dims(child, v, value, a, [])
        value.type = TensorType(v.dtype, (*dims[:a], length, *dims[a:]))
        outputs.append(value)
    prim = Scan(child.graph, n, m, tuple(axes), _flags(scan_input_directions, m),
                tuple(out_axes), _flags(scan_output_directions, len(rest)))
    return b.stage(prim, [*states, *scanned, *child.captures], outputs)


@op("Scan", since=8)
def scan_8(b, sequence_lens=None, *inputs, body: Body, num_scan_inputs: int,
           directions: Ints = ()):
    """A scan for each sequence of the batch, whose number is structural; results are stacked."""
    scanned = inputs[len(inputs) - num_scan_inputs:]
    count, = b.structural(b.from_numbers(scanned[0].shape[:1], DType.INT64), "the batch of Scan")
    if count == 0:
        raise UnsupportedError("Scan over an empty batch")
    longest = scanned[0].shape[1]
    lengths = [longest] * count if sequence_lens is None else b.numbers(sequence_lens)
    rows = []
    if len(lengths) != count:
        raise ModelError("sequence_lens has a length for each sequence of the batch",
                         expected=count, got=len(lengths))
    for i, n in enumerate(lengths):
        b.guard(apply("and", apply("le", 0, n), apply("le", n, longest)),
                f"a length of sequence_lens is not within 0 and {longest}: {n}")
        own = [b.squeeze(b.narrow(v, 0, i, 1), (0,)) for v in inputs]
        states = own[:len(own) - num_scan_inputs]
        slices = [b.narrow(v, 0, 0, n) for v in own[len(states):]]
        made = scan(b, *states, *slices, body=body, num_scan_inputs=num_scan_inputs,
                    scan_input_directions=directions)
        for k in range(len(states), len(made)):
            rest = (0,) * (made[k].rank - 1)
            made[k] = b.pad(made[k], (0, *rest), (apply("sub", longest, n), *rest))
        rows.append([b.unsqueeze(v, (0,)) for v in made])
    return [b.concat(list(column), 0) for column in zip(*rows)]


def _constant_trips(b, trip_count, cond, body) -> int | None:
    """The trips of a Loop that surely runs a constant, small number of them; else None."""
    known = [None if v is None else b.numbers_or_none(v) for v in (trip_count, cond)]
    if known[0] is None or not isinstance(known[0][0], int) or known[0][0] > UNROLL_LIMIT:
        return None
    if cond is not None and known[1] != (1,):
        return None
    return max(known[0][0], 0) if _handed_on(body, 1, 0) else None


def _handed_on(body, start: int, end: int) -> bool:
    """Whether a body gives an input as it came, but for Identity nodes."""
    name = body.outputs[end]
    for node in reversed(body.nodes):
        if name in node.output and (node.domain, node.op_type) == ("", "Identity"):
            name = node.input[0]
    return name == list(body.inputs)[start]


def _unrolled(b, trips: int, carried: list[Value], body) -> list[Value]:
    slices: list[list[Value]] = []
    for i in range(trips):
        outputs = b.inline(body, [b.const(i, DType.INT64), b.const(True, DType.BOOL), *carried])
        carried = outputs[1:1 + len(carried)]
        slices.append([b.unsqueeze(v, (0,)) for v in outputs[1 + len(carried):]])
    return [*carried, *(b.concat(list(column), 0) for column in zip(*slices))]


def _flags(directions, count: int) -> tuple[bool, ...]:
    if directions and len(directions) != count:
        raise ModelError("one scan direction for each value", expected=count, got=len(directions))
    return tuple(bool(d) for d in directions) or (False,) * count


def _same_form(a, b) -> bool:
    if isinstance(a, TensorType) and isinstance(b, TensorType):
        return a.dtype is b.dtype and a.rank == b.rank
    return type(a) is type(b)


def _carried_outputs(child: Child, starts: list[Value], ends: list[Value]) -> list[Value]:
    """Outer values of carried state: a dim that the body keeps stays the outer dim."""
    outputs = []
    for start, end in zip(starts, ends):
        value = Value(start.type)
        if isinstance(start.type, TensorType):
            value.type = joined_type([start.type, child.outside(end.type)], value,
                                     "carried value")
        else:  # an empty sequence learns its rank in the body
            value.type = end.type
        outputs.append(value)
    return outputs


def _slice_dims(child: Child, v: Value, value: Value, axis: int, types: list) -> list:
    """The outer dims of a slice that is stacked on `axis` of `value`; one that follows a carried
    dim which changes in the loop (see _forget) is known only afterwards."""
    changing = {s for t in types if isinstance(t, TensorType) for d in t.shape
                for s in symbols_of(d) if isinstance(s.value, _StandIn)}
    dims = [None if symbols_of(d) & changing else d for d in child.outside(v.type).shape]
    return [value.dim(k + (k >= axis)) if d is None else d for k, d in enumerate(dims)]


def _changed_dims(before: list[Value], after: list[Value], free) -> list[tuple[int, ...]]:
    """For each carried value the axes, not yet free, whose dim an iteration changes. A symbol
    counts too: a captured value of the same dim keeps it."""
    result = []
    for x, y, known in zip(before, after, free):
        if not isinstance(x.type, TensorType):
            result.append(() if x.type == y.type else (0,))
            continue
        if not _same_form(x.type, y.type):
            raise UnsupportedError("a carried value changes its rank or type in the loop",
                                   expected=str(x.type), got=str(y.type))
        result.append(tuple(k for k, (p, q) in enumerate(zip(x.shape, y.shape))
                            if k not in known and p is not q and p != q))
    return result


class _StandIn(Value):
    """Whose dims a carried value has inside the loop; no value of the graph outside."""

    __slots__ = ()


def _forget(type, axes: tuple[int, ...]):
    """type with fresh symbols at the given axes, so that they may change in the loop."""
    if not axes:
        return type
    stand_in = _StandIn(type)
    dims = tuple(stand_in.dim(k) if k in axes else d for k, d in enumerate(type.shape))
    return TensorType(type.dtype, dims)


def _merge_captures(children: list[Child]) -> list[Value]:
    """One capture list for all branches: each graph gets an input for every captured value."""
    merged: dict[int, Value] = {}
    for child in children:
        for v in child.captures:
            merged.setdefault(v.id, v)
    for child in children:
        have = {v.id: inner for v, inner in zip(child.captures, child.graph.inputs)}
        child.graph.inputs = [have.get(v.id) or _unused(v) for v in merged.values()]
        child.captures = list(merged.values())
    return list(merged.values())


def _unused(outer: Value) -> Value:
    """An input for a captured value that this branch does not read."""
    inner = Value(outer.type, outer.name)
    inner.type = Scope().rebase(outer.type, inner)
    return inner
