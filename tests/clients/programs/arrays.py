"""Gives arrays of torch and JAX to rlx and results back to them; checks each by its own sums."""

import jax.numpy as jnp
import numpy as np
from onnx import TensorProto as T, helper
from shared import answer
import torch

import rlx


def double(element):
    """A session for y = x + x."""
    x, y = (helper.make_tensor_value_info(name, element, ["n", "m"]) for name in "xy")
    graph = helper.make_graph([helper.make_node("Add", ["x", "x"], ["y"])], "g", [x], [y])
    return rlx.Session(helper.make_model(graph, ir_version=8,
                                         opset_imports=[helper.make_opsetid("", 17)]))


checked = []
for name in ("float32", "float64", "float16", "int64", "bfloat16"):
    x = torch.arange(6).reshape(2, 3).to(getattr(torch, name)).t()  # strided
    y = double(helper.np_dtype_to_tensor_dtype(np.dtype(jnp.dtype(name)))).run({"x": x})["y"]
    back = torch.from_dlpack(rlx.to_dlpack(y))
    assert back.dtype == x.dtype and torch.equal(back, x + x), name
    assert back.data_ptr() == y.ctypes.data
    checked.append(f"torch {name}")
for name in ("float32", "float16", "int32", "bfloat16"):
    x = jnp.arange(6).reshape(2, 3).astype(name).T
    y = double(helper.np_dtype_to_tensor_dtype(np.dtype(x.dtype))).run({"x": x})["y"]
    assert y.dtype == x.dtype and np.array_equal(y, np.asarray(x + x)), name
    assert jnp.array_equal(jnp.from_dlpack(rlx.to_dlpack(y)), x + x), name
    checked.append(f"jax {name}")
try:
    double(T.FLOAT).run({"x": torch.ones(2, 3, requires_grad=True)})
except rlx.InputError as error:
    checked.append("grad" if "grad" in str(error) else str(error))
answer(checked)
