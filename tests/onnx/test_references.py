"""The official node tests through importer, passes and the NumPy references, without C++."""

import numpy as np
import onnx
import pytest

from rlx.importer.importer import Facts, import_model
from rlx.importer.reader import read
from rlx.ir.build import Specialise
from rlx.ir.evaluate import AssumptionFailed, evaluate_graph
from rlx.ir.verify import verify
from rlx.passes import run_pipeline
from tests.onnx.official import OPERATORS, check_operator

# Cases whose expected values are not the operator's: name -> reason, printed when left out.
EXCEPTIONS = {
    "test_dft_inverse": "expects a rounding of float32 where the truth is 0",
    "test_dft_inverse_opset19": "expects a rounding of float32 where the truth is 0",
    "test_dynamicquantizelinear": "expects a tie of float32 that float64 decides otherwise",
}


@pytest.mark.parametrize("operator", OPERATORS)
def test_official_cases(operator):
    check_operator(operator, EXCEPTIONS, run)


def run(model: onnx.ModelProto, inputs: list) -> list:
    """The outputs; specialised as a Session does when the import asks for a fact."""
    loaded = read(model)
    given = dict(zip(loaded.graph.inputs, inputs))
    facts = {"ranks": {}, "shapes": {}, "values": {}, "present": {}, "denied": frozenset()}
    while True:
        try:
            graph = run_pipeline(import_model(loaded, Facts(**facts)))
            verify(graph)
            found = evaluate_graph(graph, {n: _array(x) for n, x in given.items()})
            return list(found.values())
        except AssumptionFailed as failed:
            assert failed.assumption not in facts["denied"], failed
            facts["denied"] |= {failed.assumption}
        except Specialise as need:
            _learn(facts, need, given)


def _array(x):
    return x if x is None or isinstance(x, list) else np.asarray(x)


def _learn(facts: dict, need: Specialise, given: dict) -> None:
    name = need.value.name
    if need.kind == "presence":
        facts["present"][name] = given[name] is not None
        return
    x = given[name][0] if isinstance(given[name], list) else given[name]
    x = np.asarray(x)
    where = {"rank": "ranks", "shape": "shapes", "value": "values"}[need.kind]
    assert name not in facts[where], f"asked twice: {need}"
    facts[where][name] = {"rank": x.ndim, "shape": x.shape, "value": x}[need.kind]
