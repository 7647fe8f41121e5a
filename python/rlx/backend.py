"""The ONNX Backend API (onnx.backend.base) on rlx, as the official test suite uses it.

TF32 is off here, so that results are compared at float32's precision.
"""

from __future__ import annotations

from typing import Any

import onnx
from onnx.backend.base import Backend as _Backend
from onnx.backend.base import BackendRep as _BackendRep

import rlx
from rlx.session import Session


class RlxBackendRep(_BackendRep):
    """A prepared model: run(inputs in the model's order) -> tuple of outputs."""

    def __init__(self, session: Session):
        self.session = session

    def run(self, inputs: Any, **kwargs: Any) -> tuple:
        """Outputs in the model's order; sequences are lists, an absent optional is None."""
        names = [info.name for info in self.session.inputs]
        given = inputs if isinstance(inputs, dict) else dict(zip(names, inputs))
        results = self.session.run(given)
        return tuple(results[info.name] for info in self.session.outputs)


class RlxBackend(_Backend):
    """Prepares and runs models through rlx.Session."""

    @classmethod
    def prepare(cls, model: onnx.ModelProto, device: str = "CPU", **kwargs: Any) -> RlxBackendRep:
        """Compiles a model for "CPU" or "CUDA[:n]"; raises rlx.Error when it cannot."""
        return RlxBackendRep(Session(model, device=device.lower(), **{"tf32": False} | kwargs))

    @classmethod
    def supports_device(cls, device: str) -> bool:
        """Whether the device of that name works on this machine."""
        kind = device.lower().partition(":")[0]
        return any(name.partition(":")[0] == kind for name in rlx.devices())


is_compatible = RlxBackend.is_compatible
prepare = RlxBackend.prepare
run_model = RlxBackend.run_model
supports_device = RlxBackend.supports_device
