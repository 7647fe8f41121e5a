"""The official test cases of the installed onnx package, by the operator of their first node."""

from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import lru_cache
import glob
import os
import warnings

import numpy as np
import onnx
import pytest
from onnx.backend.test.loader import load_model_tests
from onnx.backend.test.runner import Runner, _normalize_tensor

from rlx.errors import UnsupportedError
from rlx.ir.types import dtype_of

DOMAINS = ("", "ai.onnx.ml", "ai.onnx.preview", "ai.onnx.preview.training")
OPERATORS = sorted({s.name for s in onnx.defs.get_all_schemas() if s.domain in DOMAINS})


@lru_cache(maxsize=1)
def cases() -> dict[str, object]:
    """Name -> onnx TestCase; the package can make them once in a process."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {case.name: case
                for kind in ("node", "simple", "pytorch-converted", "pytorch-operator")
                for case in load_model_tests(kind=kind)}


@lru_cache(maxsize=1)
def cases_by_operator() -> dict[str, list]:
    """Operator -> onnx TestCases; function bodies ("_expanded") are left out."""
    found = defaultdict(list)
    for name, case in cases().items():
        if "_expanded" not in name:
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


def check_operator(operator: str, exceptions: dict[str, str],
                   run: Callable[[onnx.ModelProto, list], list]) -> None:
    """Each case that begins with the operator, but for the exceptions (name -> reason).

    Skips when the suite has none or all are refused; prints single refusals.
    """
    cases = cases_by_operator().get(operator, [])
    if not cases:
        pytest.skip("the onnx package has no case that starts with it")
    failed, unsupported = [], []
    for case in cases:
        if case.name in exceptions:
            print(f"left out: {case.name}: {exceptions[case.name]}")
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


def check(case, run: Callable[[onnx.ModelProto, list], list]) -> None:
    """Every output of every data set within the suite's own tolerance."""
    model = model_of(case)
    for inputs, expected in data_sets(case, model):
        outputs = run(model, inputs)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            Runner.assert_similar_outputs([_readable(x) for x in expected],
                                          [_readable(x) for x in outputs], case.rtol, case.atol)


def _readable(x):
    """8-bit floats as float32, scalars in sequences as vectors: the suite cannot compare all of
    them, not even with themselves."""
    if isinstance(x, list):
        return [np.atleast_1d(e) if isinstance(e, (np.ndarray, np.generic)) else e for e in x]
    if isinstance(x, np.ndarray) and x.dtype.kind == "V" and x.dtype.itemsize == 1 and (
            dtype_of(x.dtype).is_float):
        return x.astype(np.float32)
    return x
