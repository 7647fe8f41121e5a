"""Readable text of a Graph, with names and numbers that do not change from run to run."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields
from typing import Any

from rlx.ir.expr import Expr, Number
from rlx.ir.graph import STAGES, Graph, Node, Value
from rlx.ir.prims import Region, RegionOp
from rlx.ir.types import DType, TensorType


def print_graph(graph: Graph) -> str:
    """The graph as text: inputs, guards, one line for each node, outputs; child graphs indented.

    A value is %name, or %number in order of appearance when it has no name of its own. Symbols
    without a name are told as dim(%x, axis) or element(%x, index).
    """
    return "\n".join(_Printer("").lines(graph)) + "\n"


class _Printer:
    def __init__(self, indent: str):
        self.indent = indent
        self.labels: dict[int, str] = {}
        self.taken: set[str] = set()

    def lines(self, graph: Graph) -> list[str]:
        values = graph.values()
        for v in values:
            self.label(v)
        text = [f"graph {graph.name or '-'}"]
        text += [f"  input {self.typed(v)}" for v in graph.inputs]
        made = {v.id for n in graph.nodes for v in n.outputs if v is not None}
        text += [f"  const {self.typed(v)}" for v in values if v.is_const and v.id not in made]
        for g in graph.guards:
            assumed = f" (assumes {g.assumption})" if g.assumption else ""
            text.append(f"  guard {self.number(g.condition)}: {g.message}{assumed}")
        for node in graph.nodes:
            text += self.node(node)
        names = graph.output_names or [v.name for v in graph.outputs]
        text += [f"  output {name!r} {self.typed(v)}" for name, v in zip(names, graph.outputs)]
        text += [f"  state: output {o} continues input {i} along axis {a}"
                 for i, o, a in graph.states]
        return [self.indent + line for line in text]

    # -- values ------------------------------------------------------------------------------

    def label(self, v: Value | None) -> str:
        if v is None:
            return "-"
        if v.id not in self.labels:
            name = v.name if v.name and v.name not in self.taken else str(len(self.labels))
            self.taken.add(name)
            self.labels[v.id] = f"%{name}"
        return self.labels[v.id]

    def typed(self, v: Value | None) -> str:
        if v is None:
            return "-"
        if not isinstance(v.type, TensorType):
            return f"{self.label(v)}: {v.type}"
        dims = ", ".join(self.number(d) for d in v.shape)
        text = f"{self.label(v)}: {v.dtype.name.lower()}[{dims}]"
        if v.exprs is not None:
            text += f" = ({', '.join(self.number(n) for n in v.exprs)})"
        elif v.is_const and v.const.size <= 4 and v.dtype is not DType.STRING:
            text += f" = {v.const.tolist()}"
        return text

    def number(self, x: Number) -> str:
        if not isinstance(x, Expr):
            return str(x)
        if x.op == "symbol":
            s = x.args[0]
            return s.name or f"{s.kind}({self.label(s.value)}, {s.index})"
        return f"{x.op}({', '.join(self.number(a) for a in x.args)})"

    # -- nodes -------------------------------------------------------------------------------

    def node(self, node: Node) -> list[str]:
        inputs = ", ".join(map(self.label, node.inputs))
        outputs = ", ".join(map(self.typed, node.outputs))
        name = type(node.prim).__name__
        children = [(f.name, getattr(node.prim, f.name)) for f in fields(node.prim)
                    if isinstance(getattr(node.prim, f.name), Graph)]
        body = self.body(node.prim)
        origin = f"  ; {node.origin}" if node.origin.op else ""
        if node.origin.also:
            origin += f" with {', '.join(map(repr, node.origin.also))}"
        text = [f"  {outputs} = {name}({inputs}){body}{origin}"]
        for field, graph in children:
            text.append(f"    {field}:")
            text += _Printer("      ").lines(graph)
        return text

    def body(self, prim: Any) -> str:
        if isinstance(prim, Region):
            return " " + self.region(prim)
        given = [f"{f.name}={self.field(getattr(prim, f.name))}" for f in fields(prim)
                 if not isinstance(getattr(prim, f.name), Graph)]
        return f" {{{', '.join(given)}}}" if given else ""

    def field(self, x: Any) -> str:
        if isinstance(x, tuple):
            return self.listed(x)
        if isinstance(x, Region):
            return self.region(x)
        if isinstance(x, DType):
            return x.name.lower()
        if isinstance(x, Expr):
            return self.number(x)
        if hasattr(x, "__dataclass_fields__") and not isinstance(x, STAGES):
            return "(" + ", ".join(self.field(getattr(x, f.name)) for f in fields(x)) + ")"
        return str(x)

    def listed(self, items: Iterable[Any]) -> str:
        return "[" + ", ".join(map(self.field, items)) + "]"

    def region(self, region: Region) -> str:
        ops = "; ".join(f"{k} = {self.op(op)}" for k, op in enumerate(region.ops))
        return (f"{{over {self.listed(region.shape)}: {ops} -> {self.listed(region.results)}, "
                f"reads {self.listed(map(self.access, region.accesses))}}}")

    def access(self, access) -> str:
        """Axis numbers; a divisor or modulus behind them only where there is one."""
        parts = []
        for m in access:
            part = "." if m.axis < 0 else str(m.axis)
            part += "" if m.div == 1 else f"//{self.number(m.div)}"
            parts.append(part + ("" if m.mod == 0 else f"%{self.number(m.mod)}"))
        return f"({' '.join(parts)})"

    def op(self, op: RegionOp) -> str:
        given = [str(a) for a in op.args]
        if op.op in ("const", "dim"):
            given.append(self.number(op.imm))
        return f"{op.op}({', '.join(given)}) {op.dtype.name.lower()}"
