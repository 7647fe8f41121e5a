"""The official suite through rlx.backend: importer, passes, bind and kernels on the CPU."""

import pytest

from rlx import backend
from tests.onnx.official import OPERATORS, check_operator

_RANDOM = "expects the very numbers of NumPy's generator"
# Cases whose expected values are not the operator's: name -> reason, printed when left out.
EXCEPTIONS = {
    **dict.fromkeys(("test_bernoulli", "test_bernoulli_double", "test_bernoulli_seed",
                     "test_training_dropout", "test_training_dropout_default",
                     "test_training_dropout_default_mask", "test_training_dropout_mask"), _RANDOM),
}


@pytest.mark.parametrize("operator", OPERATORS)
def test_official_cases(operator):
    prepared = {}  # all data sets of a case run on one prepared model

    def run(model, inputs):
        if id(model) not in prepared:
            prepared[id(model)] = model, backend.prepare(model, "CPU")
        return list(prepared[id(model)][1].run(inputs))

    check_operator(operator, EXCEPTIONS, run)
