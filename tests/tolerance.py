"""Every tolerance of the tests, by what is compared and in which type."""

import numpy as np

# (rtol, atol). "exact order": the same float64 sums in another order or grouping. "rounded":
# one side has rounded constants or intermediates to the type named. "scalar function": one
# evaluation, a few units in the last place; results below the normal numbers may become 0.
# "tail": the same for an ill-conditioned function, whose small results are judged by its
# argument's size.
# "score": a model's probability against another library's; "cancelled": by a model that subtracts
# nearly equal numbers. "tf32": products whose operands of the order of 1 are rounded to TF32.
# "sum": of terms whose sizes add up to 1. "softmax", "norm": of values of the order of 1.
_TABLE = {
    ("tail", "float64"): (4e-15, 1e-15),
    ("tail", "float32"): (6e-7, 3e-7),
    ("tail", "float16"): (5.1e-4, 3e-7),
    ("tail", "bfloat16"): (4e-3, 3e-7),
    ("scalar function", "float64"): (4e-15, 1e-300),
    ("scalar function", "float32"): (6e-7, 1.3e-37),
    ("scalar function", "float16"): (5.1e-4, 6.2e-8),
    ("scalar function", "bfloat16"): (4e-3, 1.3e-37),
    ("scalar function", "complex64"): (5e-7, 5e-7),
    ("scalar function", "complex128"): (1e-15, 1e-15),
    ("exact order", "float64"): (1e-9, 1e-9),
    ("rounded", "float32"): (1e-4, 1e-5),
    ("rounded", "float16"): (2e-2, 1e-3),
    ("rounded", "bfloat16"): (6.4e-2, 3.2e-2),
    ("sum", "float64"): (1e-13, 1e-13),
    ("sum", "float32"): (6e-7, 2e-7),
    ("sum", "float16"): (2e-3, 1e-3),
    ("sum", "bfloat16"): (1.6e-2, 8e-3),
    ("softmax", "float64"): (1e-13, 1e-14),
    ("softmax", "float32"): (2e-6, 2e-7),
    ("softmax", "float16"): (1e-3, 1e-4),
    ("softmax", "bfloat16"): (8e-3, 1e-4),
    ("tf32", "float32"): (2e-3, 2e-3),
    ("score", "float32"): (1e-4, 1e-5),
    ("cancelled score", "float32"): (1e-2, 1e-3),
    ("norm", "float64"): (1e-12, 1e-12),
    ("norm", "float32"): (3e-6, 3e-6),
    ("norm", "float16"): (1e-3, 1e-3),
    ("norm", "bfloat16"): (8e-3, 8e-3),
}


def tolerance(what: str, dtype: str) -> dict[str, float]:
    """Keyword arguments of np.testing.assert_allclose."""
    rtol, atol = _TABLE[what, dtype]
    return {"rtol": rtol, "atol": atol}


# Of a whole network's float output: the largest error over the largest value of the truth.
_NETWORK = {"float32": 1e-4, "float16": 2e-2}


def assert_network_output(found: np.ndarray, truth: np.ndarray, dtype: str, name: str) -> None:
    """Same shape; integers equal; floats within what a run in `dtype` rounds over many layers."""
    assert found.shape == truth.shape, name
    if found.dtype.kind != "f":
        np.testing.assert_array_equal(found, truth, err_msg=name)
        return
    error = np.abs(found - truth).max(initial=0) / max(np.abs(truth).max(initial=0), 1e-6)
    assert error <= _NETWORK[dtype], f"{name}: {error:.2e} of the largest value"
