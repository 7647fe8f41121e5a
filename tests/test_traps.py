"""Faults that systems like this one have had, and the tests that would see them here.

TRAPS is the table: what went wrong elsewhere, and where it is looked for, as file::test.
"""

import ast
import re

import numpy as np
import pytest

import rlx
from rlx import _core
from tests.api.toys import F, arange, model, node, value
from tests.tolerance import tolerance

TRAPS = {
    1: ("a buffer that grows loses what it held",
        ["cuda/test_traps.py::test_weights_stay_while_later_ones_arrive",
         "api/test_state.py::test_a_state_grows_from_nothing"]),
    2: ("a pool forgets how large a block is",
        ["cuda/test_traps.py::test_blocks_of_the_pool_keep_their_size"]),
    3: ("the key of a compiled kernel lacks architecture or options",
        ["cuda/test_cache.py::test_the_key_covers_definitions_and_architecture",
         "cuda/test_cache.py::test_a_second_process_reads_what_the_first_compiled"]),
    4: ("attention leaves large heads untouched", ["test_traps.py::test_heads_of_any_size"]),
    5: ("one formula for both variants of Gelu", ["test_traps.py::test_two_gelus"]),
    6: ("integers and doubles are kept as floats", ["test_traps.py::test_wide_types_are_exact"]),
    7: ("another variant of a kernel is taken for the one asked for",
        ["cuda/test_traps.py::test_each_variant_of_a_kernel_is_its_own",
         "cuda/test_cache.py::test_the_key_covers_definitions_and_architecture"]),
    8: ("a detour over the host defeats the recording of a graph",
        ["cuda/test_traps.py::test_what_used_to_need_the_host_is_recorded"]),
    9: ("counts in the documents are written by hand",
        ["test_traps.py::test_no_count_is_written_by_hand",
         "docs/test_docs.py::test_the_site_builds"]),
    10: ("an unsupported node does nothing in silence",
         ["test_traps.py::test_what_is_unsupported_is_refused_when_loaded",
          "test_traps.py::test_what_is_unsupported_in_a_branch_is_refused_when_taken",
          "test_traps.py::test_a_branch_is_no_empty_step"]),
    11: ("a backend is compared with itself only",
         ["test_traps.py::test_references_know_nothing_of_the_core",
          "emu/test_kernels.py::test_against_the_reference",
          "onnx/test_official.py::test_official"]),
}


@pytest.mark.parametrize("number", TRAPS)
def test_each_trap_has_its_tests(number, source):
    for place in TRAPS[number][1]:
        file, name = place.split("::")
        tree = ast.parse((source / "tests" / file).read_text())
        functions = {n.name for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)}
        assert any(f.startswith(name) for f in functions), place


@pytest.fixture(params=["cpu", "emu"])
def device(request):
    try:
        _core.make_device(request.param)
    except rlx.DeviceError:
        pytest.skip("this build has no emulator: configure with -DRLX_EMULATOR=ON")
    return request.param


@pytest.mark.parametrize("size", [127, 128, 129, 200, 320])
def test_heads_of_any_size(size, device):
    q, k, v = (np.random.default_rng(s).standard_normal((1, 2, 6, size), np.float32)
               for s in range(3))
    made = model([node("Attention", "q k v", "y")],
                 [value(n, F, [1, 2, "s", size]) for n in "qkv"], [value("y")], opset=23)
    s = q.astype(float) @ k.astype(float).swapaxes(-1, -2) / np.sqrt(size)
    p = np.exp(s - s.max(-1, keepdims=True))
    expected = p / p.sum(-1, keepdims=True) @ v
    found = rlx.run(made.SerializeToString(), {"q": q, "k": k, "v": v}, device=device)["y"]
    np.testing.assert_allclose(found, expected, **tolerance("rounded", "float32"))


def test_two_gelus(device):
    from math import erf
    x = np.linspace(-4, 4, 1001).astype(np.float32)
    z = x.astype(float)
    expected = {
        "none": z * 0.5 * (1 + np.array([erf(t / 2**0.5) for t in z])),
        "tanh": z * 0.5 * (1 + np.tanh((2 / np.pi) ** 0.5 * (z + 0.044715 * z**3))),
    }
    assert np.abs(expected["none"] - expected["tanh"]).max() > 4e-4
    for form, y in expected.items():
        made = model([node("Gelu", "x", "y", approximate=form)], [value("x", F, ["n"])],
                     [value("y")], opset=20)
        found = rlx.run(made.SerializeToString(), x, device=device)["y"]
        np.testing.assert_allclose(found, y, **tolerance("rounded", "float32"))


@pytest.mark.parametrize("dtype, numbers", [
    (np.int64, [2**24 + 1, 2**53 + 1, -2**62 + 3]), (np.uint64, [2**63 + 1, 2**53 + 1, 7]),
    (np.int32, [2**24 + 1, 2**30 + 7, -5]), (np.float64, [1 + 2**-50, 1e300, -2**-1000]),
])
def test_wide_types_are_exact(dtype, numbers, device):
    import onnx
    kind = onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    x = np.array(numbers, dtype)
    made = model([node("Concat", "x x", "t", axis=0), node("Add", "t z", "y")],
                 [value("x", kind, ["n"])], [value("y")], {"z": np.array([0], dtype)})
    found = rlx.run(made.SerializeToString(), x, device=device)["y"]
    assert found.dtype == dtype
    np.testing.assert_array_equal(found, np.concatenate([x, x]))


def test_no_count_is_written_by_hand(source):
    """The operators' page is made from the registry; a number of kernels or operators elsewhere
    would be wrong some day."""
    counted = re.compile(r"\b\d[\d,]*\s+(?:CUDA |GPU |ONNX )?(?:kernels|operators|ops)\b")
    pages = [source / "README.md", *(source / "docs").rglob("*.md")]
    found = [f"{p.name}: {m[0]}" for p in pages for m in counted.finditer(p.read_text())]
    assert found == []


def branches(op):
    from onnx import helper
    branch = helper.make_graph([helper.make_node(op, ["x"], ["b"], name="inner")], "branch", [],
                               [value("b", F, ["n"])])
    return model([node("If", "c", "y", then_branch=branch, else_branch=branch)],
                 [value("c", 9, []), value("x", F, ["n"])], [value("y")])


def test_what_is_unsupported_is_refused_when_loaded():
    with pytest.raises(rlx.UnsupportedError, match="NoSuchOp"):
        rlx.load(model([node("NoSuchOp", "x", "y")], [value("x", F, ["n"])], [value("y")]),
                 device="cpu")


def test_what_is_unsupported_in_a_branch_is_refused_when_taken(device):
    """Not before: the branch may never be; but never is it a step that does nothing."""
    with rlx.load(branches("NoSuchOp"), device=device) as session:
        with pytest.raises(rlx.UnsupportedError, match="inner"):
            session.run({"c": np.array(True), "x": arange(3)})


@pytest.mark.parametrize("condition", [True, False])
def test_a_branch_is_no_empty_step(condition, device):
    feeds = {"c": np.array(condition), "x": arange(3)}
    made = branches("Neg").SerializeToString()
    np.testing.assert_array_equal(rlx.run(made, feeds, device=device)["y"], -arange(3))


def test_references_know_nothing_of_the_core(source):
    for path in (source / "python/rlx/ir/reference").glob("*.py"):
        assert "_core" not in path.read_text(), path.name
