"""IOBinding: inputs and outputs that a session is given once, for many runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from rlx.ort.values import OrtValue, host, view_of

if TYPE_CHECKING:
    from rlx.ort.session import InferenceSession


def written(array: np.ndarray, result: np.ndarray) -> np.ndarray:
    """The array, with the result in it; ValueError when that does not fit."""
    if (array.shape, array.dtype) != (result.shape, result.dtype):
        raise ValueError(f"the bound output is {array.dtype}{list(array.shape)}, the result "
                         f"{result.dtype}{list(result.shape)}")
    np.copyto(array, result)
    return array


class IOBinding:
    """Bound values of an InferenceSession; see InferenceSession.run_with_iobinding."""

    def __init__(self, session: InferenceSession):
        self._session = session
        self._inputs: dict[str, Any] = {}
        self._outputs: dict[str, np.ndarray | None] = {}
        self._results: list[OrtValue] = []

    def bind_cpu_input(self, name: str, arr_on_cpu: np.ndarray) -> None:
        """Binds an input to an array; later changes of the array are seen by later runs."""
        if name not in self._session._given:
            raise RuntimeError(f"Failed to find NodeArg with name: {name} in the def list")
        self._inputs[name] = arr_on_cpu

    def bind_input(self, name: str, device_type: str, device_id: int, element_type: Any,
                   shape: Any, buffer_ptr: int) -> None:
        """Binds an input to memory that the caller keeps valid."""
        host(device_type, device_id)
        self.bind_cpu_input(name, view_of(buffer_ptr, shape, element_type))

    def bind_ortvalue_input(self, name: str, ortvalue: OrtValue) -> None:
        """Binds an input to an OrtValue."""
        self.bind_cpu_input(name, ortvalue._value)

    def bind_output(self, name: str, device_type: str = "cpu", device_id: int = 0,
                    element_type: Any = None, shape: Any = None,
                    buffer_ptr: int | None = None) -> None:
        """Asks for an output: a new array each run, or written to memory of the caller's."""
        host(device_type, device_id)
        self._outputs[name] = (None if buffer_ptr is None
                               else view_of(buffer_ptr, shape, element_type))

    def bind_ortvalue_output(self, name: str, ortvalue: OrtValue) -> None:
        """Asks for an output to be written into the OrtValue."""
        self._outputs[name] = ortvalue.numpy()

    def _overlapping(self) -> list[str]:
        """Outputs to be written over a bound input, as decoders do with their past: rlx writes
        while it reads, so that those are copied when the run is over."""
        given = [x for x in self._inputs.values() if isinstance(x, np.ndarray)]
        return [name for name, array in self._outputs.items() if array is not None
                and any(np.may_share_memory(array, x) for x in given)]

    def clear_binding_inputs(self) -> None:
        """Forgets all bound inputs."""
        self._inputs.clear()

    def clear_binding_outputs(self) -> None:
        """Forgets all bound outputs and their results."""
        self._outputs.clear()
        self._results = []

    def get_outputs(self) -> list[OrtValue]:
        """The bound outputs of the last run, in the order they were bound in."""
        return list(self._results)

    get_outputs_as_ortvaluevector = get_outputs

    def copy_outputs_to_cpu(self) -> list[Any]:
        """The bound outputs of the last run as arrays (lists for sequences)."""
        return [value._value for value in self._results]

    def synchronize_inputs(self) -> None:
        """Nothing to wait for: inputs are read when a run begins."""

    def synchronize_outputs(self) -> None:
        """Nothing to wait for: outputs are complete when a run ends."""
