"""Every tolerance of the tests, by what is compared and in which type."""

# (rtol, atol). "exact order": the same float64 sums in another order or grouping. "rounded":
# one side has rounded constants or intermediates to the type named.
_TABLE = {
    ("exact order", "float64"): (1e-9, 1e-9),
    ("rounded", "float32"): (1e-4, 1e-5),
}


def tolerance(what: str, dtype: str) -> dict[str, float]:
    """Keyword arguments of np.testing.assert_allclose."""
    rtol, atol = _TABLE[what, dtype]
    return {"rtol": rtol, "atol": atol}
