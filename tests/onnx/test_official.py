"""The official suite through rlx.backend: importer, passes, bind and kernels on the CPU."""

import pytest

import rlx
from rlx import backend
from tests.onnx.official import OPERATORS, cases, check, check_operator, model_of

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


@pytest.mark.parametrize("name", ["4d_causal", "4d_causal_fp16"])
def test_what_onnx_writes_attention_out_as_is_recognised(name):
    """With all roundings to float16 that the written-out steps have, two values of the official
    data are out of its tolerance."""
    case = cases()[f"test_attention_{name}_expanded"]

    def run(model, inputs):
        with rlx.load(model, device="cpu") as session:
            results = session.run(inputs)
            assert [row["prim"] for row in session.explain()] == ["Attention"]
            return list(results.values())

    assert len(model_of(case).graph.node) > 40
    check(case, run)
