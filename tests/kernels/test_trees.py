"""Trees and pairwise coupling, on the CPU and on the emulated GPU in two orders of its threads."""

import numpy as np
import pytest

from rlx.ir.prims import Map
from rlx.ir.reference.mapping import BODY_REFERENCES
from rlx.ir.types import DType, TensorType
from tests.emu.case import emulated
from tests.kernels.run_prim import run_prim


@pytest.fixture(scope="module", params=["cpu", "emu", "emu:descending"])
def device(request):
    return None if request.param == "cpu" else emulated(request.param)


@pytest.mark.parametrize("dtype", [DType.FLOAT32, DType.FLOAT64], ids=lambda d: d.name)
@pytest.mark.parametrize("kind", [0, 1, 2])
def test_tree_ensemble(device, dtype, kind):
    """Trees of random shape: each new inner node takes the place of a leaf."""
    rng = np.random.default_rng(kind)
    words, roots, rows, leaves = dtype.itemsize // 4, [], [], 0
    for _ in range(21):
        roots.append(-1 - leaves)
        places, leaves = [(roots, len(roots) - 1)], leaves + 1
        for _ in range(rng.integers(0, 9)):
            owner, k = places.pop(rng.integers(len(places)))
            flags = int(rng.integers(0, 6)) + 8 * int(rng.integers(2))
            test = int(rng.integers(0, 5)) | flags << 28
            rows.append([rng.standard_normal(), np.uint32(test).astype(np.int32), owner[k],
                         -1 - leaves])
            places += [(rows[-1], 2), (rows[-1], 3)]
            owner[k], leaves = len(rows) - 1, leaves + 1
    nodes = np.zeros((len(rows), 4 if words == 1 else 6), np.int32)
    nodes[:, :words] = np.array([r[0] for r in rows], dtype.numpy).view(np.int32).reshape(-1, words)
    nodes[:, words:words + 3] = [r[1:] for r in rows]
    starts = np.r_[0, np.cumsum(rng.integers(1, 3, leaves))].astype(np.int32)
    targets = rng.integers(0, 2, starts[-1]).astype(np.int32)
    x = rng.standard_normal((13, 5)).astype(dtype.numpy)
    x[3] = np.nan
    weights = (rng.integers(1, 100, starts[-1]) / 8).astype(dtype.numpy)
    inputs = [x, nodes, np.array(roots, np.int32), starts, targets, weights]
    for shares in (1, 3, 21):
        type = TensorType(DType.FLOAT64, (13, shares, 2))
        prim = Map("tree_ensemble", 13 * shares, (kind,))
        wanted = BODY_REFERENCES["tree_ensemble"](prim, inputs, [type], lambda n: n)[0]
        found, = run_prim(prim, inputs, [type], threads=2, device=device)
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("dtype", [DType.FLOAT32, DType.FLOAT64], ids=lambda d: d.name)
@pytest.mark.parametrize("classes", [3, 5, 11])
def test_pairwise_coupling(device, dtype, classes):
    """The iteration stops where no class is further than 0.005 / classes from the balance."""
    rng = np.random.default_rng(classes)
    pairs = rng.uniform(0.1, 0.9, (7, classes * (classes - 1) // 2)).astype(dtype.numpy)
    outputs = [TensorType(dtype, (7, classes)),
               TensorType(DType.FLOAT64, (7, classes, classes + 1))]
    prim = Map("pairwise_coupling", 7)
    p, _ = run_prim(prim, [pairs], outputs, threads=2, device=device)
    exact = BODY_REFERENCES["pairwise_coupling"](prim, [pairs], outputs, lambda n: n)[0]
    assert abs(p.sum(1) - 1).max() < 1e-6 and (p > 0).all()
    assert abs(p - exact).max() < 0.02 and (p.argmax(1) == exact.argmax(1)).all()
