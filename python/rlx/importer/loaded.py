"""What the reader hands to the importer: a model's graphs, nodes and weights as plain data.

Nothing here knows the IR's graph or any operator. Names of fields follow onnx.proto.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from rlx.importer.protos import TypeProto
from rlx.importer.source import Source, unchanged
from rlx.ir.packing import bits_of, unpack
from rlx.ir.types import DType

if TYPE_CHECKING:
    from rlx.importer.functions import FunctionTable

# Lists of numbers longer than this (tables of tree ensembles) are arrays: 100 times faster.
LONG_LIST = 1024


@dataclass(slots=True, eq=False)
class Weight:
    """A constant tensor of the model; its bytes are mapped, not copied, where that is possible.

    `data` holds the elements as the file does, read-only and at any alignment: 1-D uint8,
    little-endian, sub-byte types packed low bits first. Strings are a 1-D object array of str.
    `source` is equal for two weights that are the same bytes of the same file, None if unknown;
    `mapped` says that the bytes are clean pages of a file. `data` keeps the mapping alive.
    """

    name: str
    dtype: DType
    dims: tuple[int, ...]
    data: np.ndarray
    source: str | None = None
    mapped: bool = False

    @property
    def array(self) -> np.ndarray:
        """The elements in their shape; sub-byte types are unpacked to one byte a value."""
        if self.dtype is DType.STRING:
            return self.data.reshape(self.dims)
        if not self.packed:
            return self.data.view(self.dtype.numpy).reshape(self.dims)
        values = unpack(self.data, self.dtype, self.size).reshape(self.dims)
        values.flags.writeable = False
        return values

    @property
    def packed(self) -> bool:
        """Whether `data` holds several elements a byte."""
        return bits_of(self.dtype) < 8

    @property
    def size(self) -> int:
        """The number of elements."""
        count = 1
        for dim in self.dims:
            count *= dim
        return count

    def __str__(self) -> str:
        return f"tensor {self.name!r}, {self.dtype.name.lower()}{list(self.dims)}"


@dataclass(frozen=True, slots=True)
class AttributeRef:
    """Inside a function body: the value of the calling node's attribute `name`."""

    name: str


@dataclass(slots=True, eq=False)
class LoadedNode:
    """A node. `attributes` are int, float, str, Weight, LoadedGraph, TypeProto or lists of
    these, sparse tensors made dense; more than LONG_LIST numbers are a NumPy array (int64 or
    float32); in an unexpanded function body also AttributeRef.

    Absent optional inputs and outputs are "". The domain "ai.onnx" is spelled "". `path` is unlike
    any other node's, and set only in expanded function bodies.
    """

    op_type: str
    domain: str
    name: str
    input: list[str]
    output: list[str]
    attributes: dict[str, Any]
    overload: str = ""
    path: str = ""

    @property
    def label(self) -> str:
        """What errors call the node: its name, or that of its first output."""
        return self.name or next((f"(output {name})" for name in self.output if name), "(unnamed)")

    def subgraphs(self) -> Iterator[tuple[str, LoadedGraph]]:
        """The graphs among the attributes, with the attribute's name."""
        for key, value in self.attributes.items():
            if isinstance(value, LoadedGraph):
                yield key, value
            elif isinstance(value, list) and value and isinstance(value[0], LoadedGraph):
                yield from ((key, graph) for graph in value)

    def __str__(self) -> str:
        return f"{self.op_type} node {self.label!r}"


@dataclass(slots=True, eq=False)
class LoadedGraph:
    """A graph or subgraph, checked: nodes in topological order, each name defined once.

    `inputs` are those a caller feeds (before IR version 4 initializers are listed among a graph's
    inputs but are constants; they are left out here). `defaults` names the inputs that
    have an initializer, which is only their default value. `captures` are the outer values read,
    here or deeper, each with the label of a node that reads it. `hints` are the shapes that the
    model claims for inner values.
    """

    name: str
    nodes: list[LoadedNode]
    inputs: dict[str, TypeProto]
    outputs: list[str]
    output_types: dict[str, TypeProto]
    initializers: dict[str, Weight]
    defaults: frozenset[str]
    captures: dict[str, str] = field(default_factory=dict)
    hints: dict[str, TypeProto] = field(default_factory=dict)


@dataclass(slots=True, eq=False)
class FunctionBody:
    """A node's replacement: nodes in topological order that read the node's inputs and write its
    outputs under the node's own names, to be imported with `opset_imports`."""

    name: str
    nodes: list[LoadedNode]
    opset_imports: dict[str, int]


@dataclass(slots=True, eq=False)
class LoadedModel:
    """A model that has been read and checked; `functions` expands nodes into their bodies."""

    graph: LoadedGraph
    opset_imports: dict[str, int]
    functions: FunctionTable
    ir_version: int
    path: str | None = None
    producer: str = ""
    domain: str = ""
    version: int = 0
    description: str = ""
    graph_description: str = ""
    metadata: dict[str, str] = field(default_factory=dict)
    files: dict[str, Source] = field(default_factory=dict)  # of external data, by their paths

    def is_current(self) -> bool:
        """Whether the files of external data are still those that were read."""
        return all(unchanged(path, source) for path, source in self.files.items())
