"""Products without cuBLASLt, on a GPU that computes nothing: which kernel of ours, and that no
number of rows compiles another."""

import pytest

RUN = """
import numpy as np, rlx
from tests.products import product, random
for name, k, n in {products}:
    made, w, b = product(name, k, n, {dtype!r})
    with rlx.load(made, device="cuda", {options}) as s:
        for m in {rows}:
            feeds = {{"x": random(m, k, seed=3).astype({dtype!r})}}
            s.run(feeds)
            s.prepare(feeds)  # waits for all that was asked
            row = s.explain()[0]
            compiled = rlx._core.cuda_statistics()[0]["kernels_compiled"]
            print(row["rung"], row["reason"], compiled, sep="|")
"""
ROWS = (1, 3, 16, 17, 64, 200, 2048)
PRODUCTS = [("none", 256, 768), ("none", 4096, 4096), ("none", 45, 37), ("gelu", 6, 2),
            ("none", 64, 50257)]
FEW = ["gemv"] * 3 + ["tiled kernel"] * 4


@pytest.fixture
def used(python, fake_driver, fake_nvrtc):
    """For each product the rung, the reason and the kernels so far, at each number of rows."""

    def run(dtype="float32", options="", products=PRODUCTS, rows=ROWS):
        code = RUN.format(products=products, dtype=dtype, options=options, rows=rows)
        done = python(code, fake_nvrtc, LD_LIBRARY_PATH=str(fake_driver))
        lines = [line.split("|") for line in done.stdout.strip().split("\n")]
        return [lines[i:i + len(rows)] for i in range(0, len(lines), len(rows))]

    return run


@pytest.mark.parametrize("rows", [ROWS, ROWS[::-1]], ids=["more", "fewer"])
@pytest.mark.parametrize("dtype, options", [
    ("float16", ""), ("float32", ""), ("float32", "tf32=False"),
    ("float32", "weights='f16'"), ("float32", "weights='bf16', tf32=False")])
def test_a_number_of_rows_compiles_nothing(used, dtype, options, rows):
    """But for one row, where the Region of a bias has another form in every kernel."""
    cores = dtype == "float16" or not options
    wanted = ["tensor cores"] * len(ROWS) if cores else FEW
    for found in used(dtype, options, rows=rows):
        assert len({kernels for m, (_, _, kernels) in zip(rows, found) if m > 1}) == 1
        assert [rung for rung, _, _ in found] == (wanted if rows == ROWS else wanted[::-1])


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_tiles_follow_the_rows(used, dtype):
    aligned, odd = used(dtype, products=[("none", 4096, 4096), ("none", 45, 37)])
    tiles = [[reason.split("tiles of ")[1].split(",")[0] for _, reason, _ in rows]
             for rows in (aligned, odd)]
    heights = [int(tile.split(" ")[0]) for tile in tiles[0]]
    assert heights == sorted(heights) and set(heights) == {16, 64, 128}
    assert set(tiles[1]) == {"64 x 64"}


@pytest.mark.parametrize("force, rung", [("cudnn + region", "tensor cores"), ("gemv", "gemv"),
                                         ("tensor core attention", "tensor cores"),
                                         ("kernel", "tiled kernel")])
def test_a_rung_of_other_primitives_changes_no_product(used, force, rung):
    ((row,),) = used("float16", f"force={force!r}", [("none", 256, 768)], (3,))
    assert row[0] == rung


def test_launches_of_one_kernel_keep_their_shared_memory(python, fake_driver, fake_nvrtc):
    """Tiles for many rows and for few are one function: what one is allowed the other keeps."""
    done = python("""
import rlx
from tests.products import product, random
made, _, _ = product("none", 4096, 4096, "float16")
with rlx.load(made, device="cuda", mode="stream") as s:
    for m in (2048, 3, 2048, 3):
        s.run({"x": random(m, 4096, seed=3).astype("float16")})
        print(s.explain()[0]["reason"].split("tiles of ")[1].split(",")[0])
""", fake_nvrtc, LD_LIBRARY_PATH=str(fake_driver))
    assert done.stdout.split("\n")[:-1] == ["128 x 128", "16 x 64"] * 2


@pytest.mark.parametrize("m, reason", [(3, "few rows: as fast as B is read"),
                                       (64, "more rows than gemv takes")])
def test_who_passes_tensor_cores_over_says_why(used, m, reason):
    ((row,),) = used(options="tf32=False", products=[("none", 256, 768)], rows=(m,))
    assert "float32 without TF32; " + reason in row[1]
