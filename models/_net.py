"""Writes one ONNX graph: nodes under scoped names, seeded weights, constants.

It knows no network; the files beside it do.
"""

from __future__ import annotations

import contextlib
import math

import numpy as np
import onnx
from onnx import helper

# The IR version that came with each opset used here.
_IR_VERSION = {17: 8, 18: 8, 19: 9, 20: 9, 21: 10}
_BUFFER = "buffer"


class Net:
    """One graph being written; `net.MatMul(a, b)` adds that node and returns its output's name.

    Weights are rounded to float32, then stored in `dtype`, so one seed means the same network
    in float64, float32 and float16. Python floats become constants of `dtype`, ints int64.
    """

    def __init__(self, name: str, opset: int, seed: int = 0, dtype=np.float32):
        self.model = onnx.ModelProto(ir_version=_IR_VERSION[opset], producer_name="rlx.models")
        self.model.opset_import.append(helper.make_opsetid("", opset))
        # Weights are written into the model at once: appending a message would copy it.
        self.graph = self.model.graph
        self.graph.name = name
        self.opset = opset
        self.dtype = np.dtype(dtype)
        self.random = np.random.default_rng(seed)
        self._scope: list[str] = []
        self._names: dict[str, int] = {}

    @property
    def elem_type(self) -> int:
        """ONNX's number for the float type of this network, as Cast's `to` wants it."""
        return helper.np_dtype_to_tensor_dtype(self.dtype)

    @contextlib.contextmanager
    def scope(self, *parts):
        """Prefixes the names of nodes and weights, as modules do in PyTorch."""
        self._scope.extend(str(part) for part in parts)
        yield
        del self._scope[len(self._scope) - len(parts) :]

    def input(self, name: str, shape, dtype=None) -> str:
        self.graph.input.append(_value(name, shape, dtype or self.dtype))
        return name

    def output(self, name: str, shape, dtype=None) -> None:
        """Declares an existing value as an output of the graph."""
        self.graph.output.append(_value(name, shape, dtype or self.dtype))

    def __getattr__(self, op_type: str):
        if not op_type[:1].isupper():
            raise AttributeError(op_type)
        return lambda *inputs, **rest: self.node(op_type, *inputs, **rest)

    def node(self, op_type: str, *inputs, out=1, **attributes):
        """Adds a node. `out` is a count of outputs, a name, or a list of names."""
        name = self._unique("/" + "/".join([*self._scope, op_type]))
        if isinstance(out, str):
            names = [out]
        elif isinstance(out, int):
            names = [f"{name}_output_{i}" for i in range(out)]
        else:
            names = list(out)
        given = [x if isinstance(x, str) else self.constant(x) for x in inputs]
        self.graph.node.append(helper.make_node(op_type, given, names, name=name, **attributes))
        return names[0] if len(names) == 1 else names

    def constant(self, value, dtype=None) -> str:
        """A Constant node; every use writes its own, as exporters do."""
        array = np.asarray(value)
        if dtype is not None:
            array = array.astype(dtype)
        elif array.dtype.kind == "f":
            array = array.astype(self.dtype)
        tensor = onnx.TensorProto()
        _fill(tensor, array)
        return self.node("Constant", value=tensor)

    def fill(self, value: float) -> onnx.TensorProto:
        """The `value` attribute of a ConstantOfShape of this network's float type."""
        tensor = onnx.TensorProto()
        _fill(tensor, np.array([value], self.dtype))
        return tensor

    def weight(self, name: str, array: np.ndarray) -> str:
        """A trained parameter."""
        return self._initializer(name, array, "")

    def buffer(self, name: str, array: np.ndarray) -> str:
        """An initialiser that is no trained parameter: running statistics, masks, tables."""
        return self._initializer(name, array, _BUFFER)

    def normal(self, name: str, shape, std: float, mean: float = 0.0) -> str:
        """A weight with normally distributed entries."""
        array = self.random.standard_normal(shape, dtype=np.float32)
        array *= np.float32(std)
        if mean:
            array += np.float32(mean)
        return self.weight(name, array)

    def matrix(self, name: str, rows: int, columns: int, gain: float = 1.0) -> str:
        """A matrix that turns vectors of variance 1 / gain^2 into vectors of variance 1.

        Its columns sum to zero: a mean that ReLU or GELU leaves behind would grow from layer to
        layer, the same for every input, and drown what differs between positions and images.
        """
        array = self.random.standard_normal((rows, columns), dtype=np.float32)
        array -= array.mean(axis=0)
        array *= np.float32(gain / math.sqrt(rows))
        return self.weight(name, array)

    def filters(self, name: str, shape, gain: float = 1.0) -> str:
        """Convolution filters or a transposed matrix, [outputs, ...]; otherwise like `matrix`."""
        array = self.random.standard_normal(shape, dtype=np.float32)
        array -= array.mean(axis=tuple(range(1, array.ndim)), keepdims=True)
        array *= np.float32(gain / math.sqrt(math.prod(shape[1:])))
        return self.weight(name, array)

    def scale_and_shift(self, channels: int, scale: float = 1.0) -> tuple[str, str]:
        """The `weight` and `bias` of a normalisation, away from one and zero."""
        spread = self.random.uniform(0.8, 1.2, channels).astype(np.float32)
        return self.weight("weight", scale * spread), self.normal("bias", channels, 0.1)

    def body(self, name: str) -> Net:
        """A subgraph for Loop, Scan or If; it sees this graph's values."""
        inner = Net(name, self.opset, dtype=self.dtype)
        inner.random, inner._names, inner._scope = self.random, self._names, [*self._scope, name]
        return inner

    def _initializer(self, name: str, array: np.ndarray, kind: str) -> str:
        if array.dtype.kind == "f":
            array = array.astype(np.float32, copy=False).astype(self.dtype, copy=False)
        tensor = self.graph.initializer.add(name=".".join([*self._scope, name]))
        if kind:
            tensor.doc_string = kind
        _fill(tensor, array)
        return tensor.name

    def _unique(self, name: str) -> str:
        count = self._names.get(name, 0)
        self._names[name] = count + 1
        return f"{name}_{count}" if count else name


def _fill(tensor: onnx.TensorProto, array: np.ndarray) -> None:
    tensor.data_type = helper.np_dtype_to_tensor_dtype(array.dtype)
    tensor.dims.extend(array.shape)
    tensor.raw_data = array.tobytes()


def _value(name: str, shape, dtype) -> onnx.ValueInfoProto:
    elem_type = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    return helper.make_tensor_value_info(name, elem_type, shape)


def parameters(model: onnx.ModelProto) -> int:
    """The number of trained parameters: every initialiser entry but those of buffers."""
    return sum(math.prod(t.dims) for t in model.graph.initializer if t.doc_string != _BUFFER)
