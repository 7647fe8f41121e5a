"""Merges elementwise Regions, so that a chain is one step and its intermediates stay in cache.

A producer joins its consumer when they run over the same shape, or when reading it through the
consumer's access costs nothing (a pure read, such as Expand). Values that others read stay
results of the merged Region.
"""

from __future__ import annotations

from dataclasses import replace

from rlx.ir.expr import as_int
from rlx.ir.graph import Graph, Node, Value
from rlx.ir.prims import Access, AxisMap, Region, RegionOp
from rlx.passes.children import for_each_graph

MAX_OPS = 1024
MAX_OPERANDS = 24


def regions(graph: Graph) -> Graph:
    """One pass over the nodes of every graph, children included."""
    for_each_graph(graph, lambda g: _Merger(g).run())
    return graph


class _Group:
    """A Region being grown: what it reads, computes and gives, and where it runs."""

    __slots__ = ("shape", "reads", "ops", "results", "position", "origin", "alive")

    def __init__(self, node: Node, position: int):
        prim = node.prim
        self.shape = prim.shape
        self.reads: list[tuple[Value, Access]] = [
            (v, _plain(v, access, prim.shape)) for v, access in zip(node.inputs, prim.accesses)]
        self.ops: list[RegionOp] = [_as_constant(op, node) for op in prim.ops]
        self.results: list[tuple[int, Value]] = list(zip(prim.results, node.outputs))
        self.position, self.origin, self.alive = position, node.origin, True

    def node(self) -> Node:
        used = sorted({op.args[0] for op in self.ops if op.op == "load"})
        slot = {old: new for new, old in enumerate(used)}
        ops = tuple(replace(op, args=(slot[op.args[0]],)) if op.op == "load" else op
                    for op in self.ops)
        reads = [self.reads[k] for k in used]
        prim = Region(self.shape, tuple(a for _, a in reads), ops,
                      tuple(r for r, _ in self.results))
        return Node(prim, [v for v, _ in reads], [v for _, v in self.results], self.origin)


def _as_constant(op: RegionOp, node: Node) -> RegionOp:
    """A load of a one-element constant becomes the constant itself."""
    if op.op != "load":
        return op
    v = node.inputs[op.args[0]]
    if not v.is_const or v.const.size != 1 or v.const.dtype.kind not in "fiub":
        return op
    return RegionOp("const", op.dtype, (), v.const.reshape(-1)[0].item())


class _Merger:
    def __init__(self, graph: Graph):
        self.graph = graph
        self.readers: dict[int, list[int]] = {}  # value id -> positions of its reading nodes
        self.made: dict[int, int] = {}           # value id -> position that makes it
        for position, node in enumerate(graph.nodes):
            for v in node.inputs:
                if v is not None:
                    self.readers.setdefault(v.id, []).append(position)
            for v in node.outputs:
                if v is not None:
                    self.made[v.id] = position
        self.kept = {v.id for v in graph.outputs}
        self.groups: dict[int, _Group] = {}      # value id -> the group that gives it

    def run(self) -> None:
        groups: dict[int, _Group] = {}
        for position, node in enumerate(self.graph.nodes):
            if isinstance(node.prim, Region):
                group = self.grow(_Group(node, position))
                groups[id(group)] = group
        at: dict[int, list[_Group]] = {}
        for g in groups.values():
            if g.alive:
                at.setdefault(g.position, []).append(g)
        nodes = []
        for position, node in enumerate(self.graph.nodes):
            if not isinstance(node.prim, Region):
                nodes.append(node)
            nodes.extend(g.node() for g in at.get(position, ()))
        self.graph.nodes = nodes

    def grow(self, group: _Group) -> _Group:
        """Merges the producers of `group` while one fits; the merged group."""
        tried: set[int] = set()
        while True:
            for v, access in group.reads:
                producer = self.groups.get(v.id)
                if producer is None or not producer.alive or v.id in tried:
                    continue
                tried.add(v.id)
                merged = self.merge(producer, group, v, access)
                if merged is not None:
                    group = merged
                    break
            else:
                break
        for _, v in group.results:
            self.groups[v.id] = group
        return group

    def merge(self, producer: _Group, group: _Group, v: Value, access: Access) -> _Group | None:
        same = producer.shape == group.shape and is_identity(access)
        if not same and not self._cheap(producer, v, access):
            return None
        if len(producer.ops) + len(group.ops) > MAX_OPS:
            return None
        operands = len(producer.reads) + len(group.reads) + len(producer.results)
        if operands + len(group.results) > MAX_OPERANDS:
            return None
        if not same:
            return self._inline_read(producer, group, v, access)
        position = self._position(producer, group)
        return None if position is None else self._append(producer, group, position)

    def _cheap(self, producer: _Group, v: Value, access: Access) -> bool:
        """Whether reading v through `access` may be done by recomputing it: a pure read."""
        op = producer.ops[producer.results[0][0]]
        return (len(producer.results) == 1 and op.op == "load" and len(producer.ops) == 1
                and compose(producer.reads[0][1], access) is not None)

    def _inline_read(self, producer, group, v, access) -> _Group:
        """The consumer reads what the producer reads; the producer stays for other readers."""
        source, inner = producer.reads[0]
        composed = compose(inner, access)
        group.reads = [(source, composed) if w is v and a == access else (w, a)
                       for w, a in group.reads]
        self.readers.setdefault(source.id, []).append(group.position)
        self._forget_reader(v, group)
        if not self.readers.get(v.id) and v.id not in self.kept:
            producer.alive = False
        return group

    def _forget_reader(self, v: Value, group: _Group) -> None:
        if not any(w is v for w, _ in group.reads):
            self.readers[v.id] = [p for p in self.readers[v.id] if p != group.position]

    def _position(self, producer: _Group, group: _Group) -> int | None:
        """Where both can run as one: at the consumer when nobody needs the producer earlier, or
        at the producer when all that the consumer reads exists there; else nowhere."""
        own = {v.id for _, v in producer.results}
        others = [p for i in own for p in self.readers.get(i, ()) if p != group.position]
        if all(p > group.position for p in others):
            return group.position
        if all(v.id in own or self.made.get(v.id, -1) < producer.position
               for v, _ in group.reads):
            return producer.position
        return None

    def _append(self, producer: _Group, group: _Group, position: int) -> _Group:
        """Appends the consumer's ops to the producer's, which makes long chains linear."""
        results = {v.id: r for r, v in producer.results}
        slots = {(v.id, a): i for i, (v, a) in enumerate(producer.reads)}
        loads = {op.args[0]: i for i, op in enumerate(producer.ops) if op.op == "load"}
        renamed: list[int] = []
        for op in group.ops:
            if op.op == "load":
                renamed.append(self._load(producer, group, op, results, slots, loads))
                continue
            args = op.args if op.op == "index" else tuple(renamed[a] for a in op.args)
            renamed.append(len(producer.ops))
            producer.ops.append(RegionOp(op.op, op.dtype, args, op.imm))
        for i in results:
            self.readers[i] = [p for p in self.readers.get(i, ()) if p != group.position]
        producer.results = [(r, v) for r, v in producer.results
                            if self.readers.get(v.id) or v.id in self.kept]
        producer.results += [(renamed[r], v) for r, v in group.results]
        for v, _ in producer.reads:
            readers = self.readers.setdefault(v.id, [])
            merged = (producer.position, group.position)
            self.readers[v.id] = [p for p in readers if p not in merged]
            self.readers[v.id].append(position)
        producer.position, group.alive = position, False
        producer.origin = merged_origin(group.origin, producer.origin)
        for _, v in producer.results:
            self.groups[v.id], self.made[v.id] = producer, position
        return producer

    def _load(self, producer, group, op: RegionOp, results, slots, loads) -> int:
        v, access = group.reads[op.args[0]]
        if v.id in results and is_identity(access):
            return results[v.id]
        if (v.id, access) not in slots:
            slots[v.id, access] = len(producer.reads)
            producer.reads.append((v, access))
        slot = slots[v.id, access]
        if slot not in loads:
            loads[slot] = len(producer.ops)
            producer.ops.append(RegionOp("load", op.dtype, (slot,)))
        return loads[slot]


def _plain(v: Value, access: Access, shape) -> Access:
    """The access with axes that are 1 in v and in `shape` read at their coordinate, so that it is
    the identity where it can be (a batch of one)."""
    missing = len(shape) - v.rank
    if missing < 0:
        return access
    return tuple(AxisMap(missing + k) if m.axis < 0 and as_int(v.shape[k]) == 1
                 and as_int(shape[missing + k]) == 1 else m for k, m in enumerate(access))


def live(region: Region) -> Region:
    """The Region without the ops that no result needs; every input keeps its load."""
    needed = {at for at, op in enumerate(region.ops) if op.op == "load"} | set(region.results)
    for at in range(len(region.ops) - 1, -1, -1):
        if at in needed and region.ops[at].op not in ("load", "index"):
            needed.update(region.ops[at].args)
    place = {old: new for new, old in enumerate(sorted(needed))}
    ops = tuple(op if op.op in ("load", "index") else
                replace(op, args=tuple(place[a] for a in op.args))
                for at, op in enumerate(region.ops) if at in needed)
    return replace(region, ops=ops, results=tuple(place[r] for r in region.results))


def is_identity(access: Access) -> bool:
    """Whether axis k is read at coordinate k."""
    return all(m.axis == k and as_int(m.div) == 1 and as_int(m.mod) == 0
               for k, m in enumerate(access))


def compose(inner: Access, outer: Access) -> Access | None:
    """The access that reads through `outer` a value which itself reads through `inner`."""
    composed = []
    for m in inner:
        if m.axis < 0:
            composed.append(m)
            continue
        o = outer[m.axis]
        if o.axis < 0:
            composed.append(AxisMap(-1))
        elif as_int(o.div) == 1 and as_int(o.mod) == 0:
            composed.append(AxisMap(o.axis, m.div, m.mod))
        elif as_int(m.div) == 1 and as_int(m.mod) == 0:
            composed.append(o)
        else:
            return None
    return tuple(composed)


def merged_origin(last, first):
    """The origin of a merged node: the last one's, with the others' names behind it."""
    names = dict.fromkeys((*first.also, first.name, *last.also))
    names.pop(last.name, None)
    return replace(last, also=tuple(n for n in names if n))
