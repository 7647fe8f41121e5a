"""The Builder that importer ops call: one method a primitive, types and guards included."""

from __future__ import annotations

from rlx.ir.builders.compute import ComputeBuilder, accumulate_type, window_out
from rlx.ir.builders.core import FOLD_LIMIT, TRACKED_LIMIT, TRACKED_TYPES, Specialise
from rlx.ir.builders.elementwise import ElementwiseBuilder
from rlx.ir.builders.indexing import IndexingBuilder
from rlx.ir.builders.mapping import MappingBuilder
from rlx.ir.builders.movement import MovementBuilder
from rlx.ir.expr import Expr, Number, Symbol, apply, as_int, product, symbol, symbols_of
from rlx.ir.graph import Graph, Host, If, Loop, Origin, Scan, SequenceOp, Value
from rlx.ir.prims import AxisMap, Random, Recurrent, Region, RegionOp, Resize
from rlx.ir.types import DType, OptionalType, SequenceType, TensorType, Type, dtype_of


class Builder(ElementwiseBuilder, MovementBuilder, ComputeBuilder, IndexingBuilder,
              MappingBuilder):
    """Builds one Graph. See docs/architecture.md, "Numbers", for numbers and structural values."""


__all__ = [
    "AxisMap", "Builder", "DType", "Expr", "FOLD_LIMIT", "Graph", "Host", "If", "Loop",
    "Number", "OptionalType", "Origin", "Random", "Recurrent", "Region", "RegionOp", "Resize",
    "Scan", "SequenceOp", "SequenceType", "Specialise", "Symbol", "TRACKED_LIMIT", "TRACKED_TYPES",
    "TensorType", "Type", "Value", "accumulate_type", "apply", "as_int", "dtype_of", "product",
    "symbol", "symbols_of", "window_out",
]
