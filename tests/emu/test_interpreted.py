"""The interpreting kernel computes small Regions bit for bit as the generated ones do."""

import os
from pathlib import Path
import tempfile

import numpy as np
import pytest

import rlx
from rlx import _core
from rlx.emit import emit
from rlx.ir.graph import Graph, Node, Origin, tensor
from rlx.ir.prims import AxisMap, RegionOp
from rlx.ir.scalars import SCALAR_OPS
from rlx.ir.types import dtype_of
from tests.emu.case import BF16, BOOL, F16, F32, I64, emulated, identity, region, typed, values
from tests.passes.equivalence import model_of, node


def run(prim, inputs, outputs, device: str, force: str):
    """The results, and the rung that made them."""
    graph = Graph()
    given = [tensor(dtype_of(x.dtype), x.shape, f"x{k}") for k, x in enumerate(inputs)]
    made = [tensor(t.dtype, t.shape, f"y{k}") for k, t in enumerate(outputs)]
    graph.inputs, graph.outputs = given, made
    graph.nodes.append(Node(prim, given, made, Origin("node", "Region")))
    executable = _core.Executable(emit(graph), emulated(device), force=force, check_memory=True)
    results = executable.run({v.name: x for v, x in zip(given, inputs)})
    return [results[v.name] for v in made], executable.explain()[0]["rung"]


KERNELS = {"region_interpreted"}
both_orders = pytest.mark.parametrize("device", ["emu", "emu:descending"])


def agree(prim, inputs, outputs, device):
    want, generated = run(prim, inputs, outputs, device, "")
    got, interpreted = run(prim, inputs, outputs, device, "interpreted region")
    assert (generated, interpreted) == ("generated region", "interpreted region")
    for x, y in zip(got, want, strict=True):
        assert x.dtype == y.dtype and x.tobytes() == y.tobytes()
    return got


def load(dtype, k):
    return RegionOp("load", dtype, (k,))


FLOATS = np.concatenate([values((90,), seed=5, scale=3),
                         np.array([0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 88.0],
                                  np.float32)])


@both_orders
def test_every_function_of_floats(device):
    """Many a run, so that few kernels are generated."""
    rows = [row for row in SCALAR_OPS.values() if row.allows(F32) and row.name != "select"]
    assert len(rows) > 30
    for at in range(0, len(rows), 8):
        ops, results = [load(F32, 0), load(F32, 1)], []
        for row in rows[at:at + 8]:
            ops.append(RegionOp(row.name, row.result_dtype(F32), (0, 1)[:row.arity]))
            results.append(len(ops) - 1)
        outputs = [typed(ops[k].dtype, FLOATS.size) for k in results]
        agree(region(FLOATS.shape, [identity(1)] * 2, ops, tuple(results)),
              [FLOATS, FLOATS[::-1].copy()], outputs, device)


@both_orders
def test_truth_values_choices_and_casts(device):
    ops = [load(F16, 0), load(BF16, 1), RegionOp("cast", F32, (0,)), RegionOp("cast", F32, (1,)),
           RegionOp("lt", BOOL, (2, 3)), RegionOp("not", BOOL, (4,)), load(BOOL, 2),
           RegionOp("or", BOOL, (5, 6)), RegionOp("const", F32, (), 0.3),
           RegionOp("select", F32, (7, 2, 8)), RegionOp("cast", BF16, (9,)),
           RegionOp("cast", F32, (7,)), RegionOp("mul", F32, (9, 11)),
           RegionOp("cast", F16, (12,)), RegionOp("cast", BOOL, (12,))]
    shape = (7, 9)
    agree(region(shape, [identity(2)] * 3, ops, (10, 13, 14, 7)),
          [values(shape, F16), values(shape, BF16, 1), values(shape, BOOL, 2)],
          [typed(BF16, *shape), typed(F16, *shape), typed(BOOL, *shape), typed(BOOL, *shape)],
          device)


@both_orders
def test_strides_maps_and_powers(device):
    add = [load(F32, 0), load(F32, 1), RegionOp("add", F32, (0, 1)),
           RegionOp("const", F32, (), 3.0), RegionOp("pow", F32, (2, 3)),
           RegionOp("const", F32, (), 2.0), RegionOp("pow", F32, (4, 5))]
    agree(region((6, 8), [identity(2), (AxisMap(1), AxisMap(0))], add),
          [values((6, 8)), values((8, 6), seed=1)], [typed(F32, 6, 8)], device)
    got, = agree(region((4, 12), [(AxisMap(0), AxisMap(1, 3)), (AxisMap(1, 1, 4),)], add[:3]),
                 [values((4, 4)), values((4,), seed=1)], [typed(F32, 4, 12)], device)
    want = np.repeat(values((4, 4)), 3, 1) + np.tile(values((4,), seed=1), 3)
    np.testing.assert_array_equal(got, want)


def asked() -> int:
    """How many kernels this process has had compiled or found compiled."""
    folder = Path(tempfile.gettempdir()) / f"rlx-emu-{os.getuid()}"
    note = folder / f"asked.{os.getpid()}"
    return len(note.read_text().splitlines()) if note.exists() else 0


def test_a_first_run_by_the_interpreter_gives_what_later_ones_do():
    """On this device a generated kernel is compiled by the run that first needs it."""
    emulated("emu:late")
    x = np.stack([FLOATS, FLOATS[::-1]]).astype(np.float32)
    model = model_of([node("Sigmoid", "x", "s"), node("Mul", "s x", "m"), node("Erf", "m", "e"),
                      node("Add", "e w", "y")], {"x": ["n", x.shape[1]]}, ["y"],
                     {"w": values((x.shape[1],), seed=3)})
    with rlx.load(model, device="emu:late") as session:
        for given in (x, x[:1]):
            before = asked()
            first = session.run({"x": given})["y"]
            assert session.explain()[0]["rung"] == "generated region"
            assert asked() - before == (given is x), "the interpreter at most, and once"
            later = [session.run({"x": given})["y"] for _ in range(2)]
            assert asked() - before == 1 + (given is x), "the generated one, by the second run"
            assert {y.tobytes() for y in later} == {first.tobytes()}
    with rlx.load(model, device="emu") as session:
        assert session.run({"x": x[:1]})["y"].tobytes() == first.tobytes()


@pytest.mark.parametrize("ops", [
    [load(F32, 0), RegionOp("index", I64, (0,)), RegionOp("cast", F32, (1,)),
     RegionOp("add", F32, (0, 2))],
    [load(F32, 0), *[RegionOp("abs", F32, (k,)) for k in range(40)]],
], ids=["coordinates", "many steps"])
def test_what_it_lacks_is_generated(ops):
    x = values((12,))
    assert run(region((12,), [identity(1)], ops), [x], [typed(F32, 12)], "emu",
               "interpreted region")[1] == "generated region"
