"""Other runtimes, for comparing speed and results; the one module that imports any."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from rlx.errors import InputError

Runner = Callable[[], dict[str, Any]]  # one run on fixed inputs: outputs by name


class Missing(Exception):
    """A peer cannot be compared with, and why."""


def open_peer(name: str, model: str, given: dict[str, Any], threads: int) -> tuple[str, Runner]:
    """The version of a peer and its Runner; Missing when it is not installed, broken or refuses."""
    openers = {"onnxruntime": _onnxruntime, "openvino": _openvino, "torch": _torch}
    if name not in openers:
        raise InputError(f"there is no peer {name!r}", expected=", ".join(openers))
    try:
        return openers[name](model, given, threads)
    except ImportError as error:
        package = {"torch": "torch onnx2torch"}.get(name, name)
        raise Missing(f"{error}; try: pip install {package}") from error
    except (OSError, RuntimeError) as error:  # what an installation that does not fit raises
        raise Missing(f"cannot be used here: {error}") from error


def _onnxruntime(model: str, given: dict[str, Any], threads: int) -> tuple[str, Runner]:
    import onnxruntime
    session = _session(onnxruntime, model, threads)
    names = [output.name for output in session.get_outputs()]
    feeds = _feeds(session, given)
    return onnxruntime.__version__, lambda: dict(zip(names, session.run(None, feeds)))


def _failures(onnxruntime: Any) -> tuple[type[Exception], ...]:
    """Its errors, which have no base of their own."""
    state = onnxruntime.capi.onnxruntime_pybind11_state
    return tuple(x for x in vars(state).values()
                 if isinstance(x, type) and issubclass(x, Exception))


def _session(onnxruntime: Any, model: Any, threads: int, optimise: bool = True) -> Any:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 3
    if not optimise:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    try:
        return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    except _failures(onnxruntime) as error:
        raise Missing(f"refuses the model: {error}") from error


def _feeds(session: Any, given: dict[str, Any]) -> dict[str, Any]:
    known = {i.name for i in (*session.get_inputs(), *session.get_overridable_initializers())}
    return {name: x for name, x in given.items() if name in known}


def _openvino(model: str, given: dict[str, Any], threads: int) -> tuple[str, Runner]:
    import openvino
    core = openvino.Core()
    options = {"INFERENCE_NUM_THREADS": threads, "PERFORMANCE_HINT": "LATENCY",
               "INFERENCE_PRECISION_HINT": "f32"}
    try:
        request = core.compile_model(model, "CPU", options).create_infer_request()
    except RuntimeError as error:
        raise Missing(f"refuses the model: {error}") from error
    outputs = list(request.model_outputs)
    return openvino.__version__.split("-")[0], lambda: {
        output.get_any_name(): x for output, x in zip(
            outputs, request.infer(given, share_inputs=True).values())}


def _torch(model: str, given: dict[str, Any], threads: int) -> tuple[str, Runner]:
    import onnx
    import torch
    from onnx2torch import convert
    torch.set_num_threads(threads)
    proto = onnx.load(model)
    try:
        module = convert(proto).eval()
    except (NotImplementedError, RuntimeError, ValueError) as error:
        raise Missing(f"onnx2torch refuses the model: {error}") from error
    defaults = {tensor.name for tensor in proto.graph.initializer}
    tensors = [torch.from_numpy(np.ascontiguousarray(given[i.name])) for i in proto.graph.input
               if i.name not in defaults]
    names = [output.name for output in proto.graph.output]

    def run() -> dict[str, Any]:
        with torch.inference_mode():
            results = module(*tensors)
        results = results if isinstance(results, (tuple, list)) else [results]
        return {name: x.numpy() for name, x in zip(names, results)}

    return torch.__version__, run


def references(model: str, given: dict[str, Any]) -> Callable[[set[str]], dict[str, list[Any]]]:
    """onnxruntime's values of names of the model's main graph, without its optimisations."""

    def evaluate(wanted: set[str]) -> dict[str, list[Any]]:
        import onnx
        try:
            import onnxruntime
        except ImportError as error:
            raise InputError(f"there is no onnxruntime to compare with: {error}",
                             remedy="pip install onnxruntime") from error
        proto = onnx.load(model)
        there = {output.name for output in proto.graph.output}
        inner = {name for node in proto.graph.node for name in node.output if name}
        proto.graph.output.extend(onnx.helper.make_empty_tensor_value_info(name)
                                  for name in sorted((wanted & inner) - there))
        try:
            session = _session(onnxruntime, proto.SerializeToString(), 0, optimise=False)
        except (Missing, ValueError) as error:
            raise InputError(f"onnxruntime gives no reference: {error}") from error
        names = [output.name for output in session.get_outputs()]
        return {name: [x] for name, x in zip(names, session.run(None, _feeds(session, given)))}

    return evaluate


def interleaved(runners: dict[str, Runner], seconds: float, runs: int | None,
                advance: Callable[[str], None]) -> dict[str, np.ndarray]:
    """Seconds of many runs of each, taken in turns of some runs so that a change of the
    machine's speed meets all alike."""
    single = {name: _warm(run) for name, run in runners.items()}
    turn = {name: max(1, int(TURN / t)) for name, t in single.items()}
    taken: dict[str, list[float]] = {name: [] for name in runners}
    stop = time.perf_counter() + seconds
    while runs is None and (time.perf_counter() < stop or min(map(len, taken.values())) < LEAST) \
            or runs is not None and min(map(len, taken.values())) < runs:
        for name, run in runners.items():
            time.sleep(PAUSE)  # the threads of the one before must stop spinning
            run()
            for _ in range(turn[name]):
                start = time.perf_counter()
                run()
                taken[name].append(time.perf_counter() - start)
        advance("")
    return {name: np.array(times[:runs]) for name, times in taken.items()}


TURN = 0.1     # seconds of one peer before the next has its turn
PAUSE = 0.1    # onnxruntime's threads spin for 80 ms after a run
LEAST = 5      # runs of each, however slow
WARM = 0.3     # seconds of warming up, at least two runs


def _warm(run: Runner) -> float:
    """Seconds of one run after a few."""
    stop, last, count = time.perf_counter() + WARM, 0.0, 0
    while count < 2 or time.perf_counter() < stop:
        start = time.perf_counter()
        run()
        last, count = time.perf_counter() - start, count + 1
    return last
