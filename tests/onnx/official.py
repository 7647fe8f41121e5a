"""The official test cases of the installed onnx package, by the operator of their first node."""

from collections import defaultdict
from collections.abc import Iterator
from functools import lru_cache
import glob
import os
import warnings

import onnx
from onnx.backend.test.loader import load_model_tests
from onnx.backend.test.runner import Runner, _normalize_tensor


@lru_cache(maxsize=1)
def cases_by_operator() -> dict[str, list]:
    """Operator -> onnx TestCases; function bodies ("_expanded") are left out."""
    found = defaultdict(list)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for kind in ("node", "simple", "pytorch-converted", "pytorch-operator"):
            for case in load_model_tests(kind=kind):
                if "_expanded" not in case.name:
                    found[model_of(case).graph.node[0].op_type].append(case)
    return found


def model_of(case) -> onnx.ModelProto:
    if case.model is not None:
        return case.model
    return onnx.load(os.path.join(case.model_dir, "model.onnx"))


def data_sets(case, model: onnx.ModelProto) -> Iterator[tuple[list, list]]:
    """(inputs, expected outputs), each a list in the model's order."""
    if case.model is not None:
        for inputs, outputs in case.data_sets:
            yield [_normalize_tensor(x) for x in inputs], [_normalize_tensor(x) for x in outputs]
        return
    for folder in sorted(glob.glob(os.path.join(case.model_dir, "test_data_set*"))):
        yield (_stored(folder, "input", model.graph.input),
               _stored(folder, "output", model.graph.output))


def _stored(folder: str, what: str, infos) -> list:
    values: list = []
    for i in range(len(glob.glob(os.path.join(folder, f"{what}_*.pb")))):
        Runner._load_proto(None, os.path.join(folder, f"{what}_{i}.pb"), values, infos[i].type)
    return values
