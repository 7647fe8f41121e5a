"""InferenceSession: onnxruntime's way to load and run a model, on an rlx.Session."""

from __future__ import annotations

import copy
import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import onnx

from rlx import background
from rlx.errors import DeviceError
from rlx.live import Live
from rlx.ort import model as models
from rlx.ort.binding import IOBinding, written
from rlx.ort.options import RunOptions, SessionOptions
from rlx.ort.profile import Trace
from rlx.ort.providers import CPU, Provider, chosen, device_of
from rlx.ort.settings import threads_of
from rlx.ort.status import Fail, InvalidArgument, NoModel, made, translated
from rlx.ort.types import ModelMetadata, NodeArg, numpy_of
from rlx.ort.values import OrtValue
from rlx.session import Session


class InferenceSession(Live):
    """A loaded model.

    path_or_bytes: a path or the bytes of a model. providers: names or (name, options) pairs,
    best first; what is not available is left out with a warning. Other keywords of onnxruntime
    are accepted.
    """

    def __init__(self, path_or_bytes: str | bytes | os.PathLike,
                 sess_options: SessionOptions | None = None,
                 providers: Sequence[Any] | None = None,
                 provider_options: Sequence[dict] | None = None, **kwargs: Any):
        options = SessionOptions() if sess_options is None else sess_options
        if not isinstance(options, SessionOptions):
            raise TypeError(f"sess_options is a {type(options).__name__}, no SessionOptions")
        self._options = copy.copy(options)
        self._trace = Trace(options.enable_profiling, options.profile_file_prefix)
        with self._trace.event("model_loading"):
            self._model = models.load(path_or_bytes, options)
        graph = self._model.graph
        self._given = graph.inputs
        self._output_names = list(graph.outputs)
        self._outputs: list[NodeArg] | None = None
        optional = [n for n, t in graph.inputs.items() if t.HasField("optional_type")]
        self._absent = dict.fromkeys(optional)  # what optional inputs are when they are not fed
        self._required = graph.inputs.keys() - graph.defaults - set(optional)
        if providers is None and options.has_providers():
            providers = options._providers
        with self._trace.event("session_initialization"):
            self._start(providers, provider_options)
        if options.optimized_model_filepath:
            models.save(path_or_bytes, options.optimized_model_filepath)

    def _start(self, providers: Sequence[Any] | None, options: Sequence[dict] | None) -> None:
        """Makes the rlx.Session on the first provider that works, as onnxruntime falls back."""
        try:
            self._providers = chosen(providers, options)
        except ValueError as error:
            self._providers = [(CPU, {})]
            _warn_of_fallback(error, providers)
        with translated():
            try:
                self._session = self._made(self._providers[0])
            except DeviceError as error:
                if self._providers[0][0] == CPU:
                    raise
                _warn_of_fallback(error, providers)
                self._providers = [(CPU, {})]
                self._session = self._made(self._providers[0])

    def _made(self, provider: Provider) -> Session:
        threads = threads_of(self._options)
        return Session(self._model, device=device_of(provider), disable=self._options.left_out(),
                       **({"threads": threads} if threads else {}))

    def run(self, output_names: Sequence[str] | None, input_feed: Mapping[str, Any],
            run_options: RunOptions | None = None) -> list[Any]:
        """The outputs of those names (None for all) as arrays, in their order.

        input_feed: input name -> array, list of numbers, OrtValue, list of arrays for a sequence,
        or None for an absent optional. Raises ValueError for a missing input, InvalidArgument for
        a name, type or shape that does not fit, Fail where a node cannot compute.
        """
        names = self._names(output_names)
        results = self._run(input_feed, run_options)
        return [results[name] for name in names]

    def run_with_ort_values(self, output_names: Sequence[str] | None,
                            input_dict_ort_values: Mapping[str, OrtValue],
                            run_options: RunOptions | None = None) -> list[OrtValue]:
        """`run` with OrtValues in and out."""
        names = self._names(output_names)
        results = self._run(input_dict_ort_values, run_options)
        return [self._wrapped(name, results[name]) for name in names]

    def run_async(self, output_names: Sequence[str] | None, input_feed: Mapping[str, Any],
                  callback: Callable[[list[Any], Any, str], None], user_data: Any,
                  run_options: RunOptions | None = None) -> None:
        """`run` on another thread, which then calls callback(outputs, user_data, error text)."""
        self._check_fed(input_feed)

        def done(future: background.RunFuture) -> None:
            error = future.exception()
            callback([] if error else future.result(), user_data, str(error) if error else "")

        background.submit(lambda: self.run(output_names, input_feed, run_options)
                          ).add_done_callback(done)

    def io_binding(self) -> IOBinding:
        """A new IOBinding for run_with_iobinding."""
        return IOBinding(self)

    def run_with_iobinding(self, iobinding: IOBinding,
                           run_options: RunOptions | None = None) -> None:
        """Runs on what is bound; results are in the binding. Raises RuntimeError."""
        outputs = iobinding._outputs
        if not outputs:
            raise RuntimeError("Error in execution: At least one output should be requested.")
        copied = iobinding._overlapping()
        out = {name: array for name, array in outputs.items()
               if array is not None and name not in copied}
        try:
            names = self._names(list(outputs))
            results = self._run(iobinding._inputs, run_options, out or None)
            for name in copied:
                results[name] = written(outputs[name], results[name])
        except (Fail, InvalidArgument, NoModel, ValueError) as error:
            raise RuntimeError(f"Error in execution: {error}") from error
        iobinding._results = [self._wrapped(name, results[name]) for name in names]

    def _names(self, output_names: Sequence[str] | None) -> Sequence[str]:
        if isinstance(output_names, str):
            raise TypeError("output_names is a list of names, or None for all outputs")
        for name in output_names or ():
            if name not in self._output_names:
                raise made(InvalidArgument, f"Invalid output name:{name}")
        return output_names or self._output_names

    def _check_fed(self, feed: Mapping[str, Any]) -> None:
        if not feed.keys() >= self._required:
            missing = [name for name in self._given if name in self._required - feed.keys()]
            raise ValueError(f"Required inputs ({missing}) are missing from input feed "
                             f"({list(feed)}).")

    def _run(self, feed: Mapping[str, Any], run_options: RunOptions | None,
             out: dict[str, np.ndarray] | None = None) -> dict[str, Any]:
        self._check_fed(feed)
        if run_options is not None:
            if not isinstance(run_options, RunOptions):
                raise TypeError(f"run_options is a {type(run_options).__name__}, no RunOptions")
            if run_options.terminate:
                raise made(Fail, "Exiting due to terminate flag being set to true.")
        given = {**self._absent, **feed} if self._absent else dict(feed)
        for name, value in given.items():
            if type(value) is not np.ndarray:
                given[name] = self._converted(name, value)
        with translated():
            if not self._trace.enabled:
                return self._session.run(given, out)
            self._trace.last, self._trace.provider = given, self._providers[0][0]
            with self._trace.event("model_run"):
                return self._session.run(given, out)

    def _converted(self, name: str, value: Any) -> Any:
        """Lists of numbers take the input's type, as in onnxruntime."""
        if isinstance(value, OrtValue):
            return value._value
        proto = self._given.get(name)
        if isinstance(value, (list, tuple)) and proto is not None \
                and proto.HasField("tensor_type"):
            try:
                return np.array(value, numpy_of(proto.tensor_type.elem_type))
            except (TypeError, ValueError) as error:
                raise made(InvalidArgument, f"input {name!r} is no array: {error}") from error
        return value

    def _wrapped(self, name: str, value: Any) -> OrtValue:
        proto = self._model.graph.output_types.get(name) or onnx.TypeProto()
        return OrtValue(value, proto.sequence_type.elem_type.tensor_type.elem_type)

    def get_inputs(self) -> list[NodeArg]:
        """The inputs that must be fed."""
        return models.inputs_of(self._model)

    def get_overridable_initializers(self) -> list[NodeArg]:
        """The inputs that have an initializer and may be fed."""
        return models.inputs_of(self._model, overridable=True)

    def get_outputs(self) -> list[NodeArg]:
        """The outputs."""
        if self._outputs is None:
            self._outputs = models.outputs_of(self._model)
        return list(self._outputs)

    def get_modelmeta(self) -> ModelMetadata:
        """What the model says about itself."""
        return models.metadata_of(self._model)

    def get_session_options(self) -> SessionOptions:
        """A copy of the options that the session was made with."""
        return copy.copy(self._options)

    def get_providers(self) -> list[str]:
        """The providers in use, best first."""
        return [name for name, _ in self._providers]

    def get_provider_options(self) -> dict[str, dict[str, str]]:
        """The options of each provider in use."""
        return {name: dict(options) for name, options in self._providers}

    def set_providers(self, providers: Sequence[Any] | None = None,
                      provider_options: Sequence[dict] | None = None) -> None:
        """Loads the model anew on these providers."""
        self._start(providers, provider_options)

    def disable_fallback(self) -> None:
        """Nothing to disable: a run never moves to another provider."""

    def enable_fallback(self) -> None:
        """Accepted; a run never moves to another provider."""

    def end_profiling(self) -> str:
        """Writes the profile; its file name, "" when profiling was not enabled or has ended."""
        return self._trace.end(self._session)

    def get_profiling_start_time_ns(self) -> int:
        """When profiling began on the monotonic clock, 0 when it did not."""
        return self._trace.started_ns


def _warn_of_fallback(error: Exception, providers: Any) -> None:
    warnings.warn(f"EP Error {error} when using {providers}; falling back to {[CPU]}",
                  stacklevel=4)
