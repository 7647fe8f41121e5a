"""The official node tests through importer, passes and the NumPy references, without C++."""

import numpy as np
import onnx
import pytest

from rlx.errors import UnsupportedError
from rlx.importer.importer import Facts, import_model
from rlx.importer.reader import read
from rlx.ir.build import Specialise
from rlx.ir.evaluate import AssumptionFailed, evaluate_graph
from rlx.ir.verify import verify
from rlx.passes import run_pipeline
from tests.onnx.official import cases_by_operator, check

OPERATORS = sorted({s.name for s in onnx.defs.get_all_schemas() if s.domain == ""})

# Cases whose expected values are not the operator's: name -> reason, printed when left out.
EXCEPTIONS = {
    "test_attention_4d_causal_fp16": "expects the roundings of half arithmetic in its own order",
    "test_dynamicquantizelinear": "expects a tie of float32 that float64 decides otherwise",
}


@pytest.mark.parametrize("operator", OPERATORS)
def test_official_cases(operator):
    cases = cases_by_operator().get(operator, [])
    if not cases:
        pytest.skip("the onnx package has no case that starts with it")
    failed, unsupported = [], []
    for case in cases:
        if case.name in EXCEPTIONS:
            print(f"left out: {case.name}: {EXCEPTIONS[case.name]}")
            continue
        try:
            check(case, run)
        except UnsupportedError as error:
            unsupported.append(f"{case.name}: {error}")
        except Exception as error:  # noqa: BLE001 - every failure is listed
            failed.append(f"{case.name}: {type(error).__name__}: {error}")
    assert not failed, "\n".join(failed)
    if len(unsupported) == len(cases):
        pytest.skip(unsupported[0])
    print(*unsupported, sep="\n")


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
