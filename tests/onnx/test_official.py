"""The official suite through rlx.backend: importer, passes, bind and kernels on the CPU."""

import onnx
import pytest

from rlx import backend
from rlx.errors import UnsupportedError
from tests.onnx.official import cases_by_operator, check, model_of

OPERATORS = sorted({s.name for s in onnx.defs.get_all_schemas() if s.domain == ""})

_RANDOM = "expects the very numbers of NumPy's generator"
_HALF = "expects the roundings of half arithmetic in its own order"
# Cases whose expected values are not the operator's: name -> reason, printed when left out.
EXCEPTIONS = {
    "test_attention_4d_causal_fp16": _HALF,
    **dict.fromkeys(("test_bernoulli", "test_bernoulli_double", "test_bernoulli_seed",
                     "test_training_dropout", "test_training_dropout_default",
                     "test_training_dropout_default_mask", "test_training_dropout_mask"), _RANDOM),
}


@pytest.mark.parametrize("operator", OPERATORS)
def test_official_cases(operator):
    """Each case that begins with the operator; what rlx says it does not have yet is printed."""
    cases = cases_by_operator().get(operator, [])
    if not cases:
        pytest.skip("the onnx package has no case that starts with it")
    failed, unsupported = [], []
    for case in cases:
        if case.name in EXCEPTIONS:
            print(f"left out: {case.name}: {EXCEPTIONS[case.name]}")
            continue
        try:
            prepared = backend.prepare(model_of(case), "CPU")
            check(case, lambda model, inputs, rep=prepared: list(rep.run(inputs)))
        except UnsupportedError as error:
            unsupported.append(f"{case.name}: {error}")
        except Exception as error:  # noqa: BLE001 - every failure is listed
            failed.append(f"{case.name}: {type(error).__name__}: {error}")
    assert not failed, "\n".join(failed)
    if len(unsupported) == len(cases):
        pytest.skip(unsupported[0])
    print(*unsupported, sep="\n")
