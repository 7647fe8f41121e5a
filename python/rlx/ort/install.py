"""Puts rlx.ort in onnxruntime's place, so that programs that import onnxruntime get it."""

from __future__ import annotations

import sys
from importlib import import_module

# Module that a program imports -> the one it gets.
MODULES = {
    "onnxruntime": "rlx.ort",
    "onnxruntime.capi": "rlx.ort.capi",
    "onnxruntime.capi._pybind_state": "rlx.ort.capi.onnxruntime_pybind11_state",
    "onnxruntime.capi.onnxruntime_inference_collection": "rlx.ort",
    "onnxruntime.capi.onnxruntime_pybind11_state": "rlx.ort.capi.onnxruntime_pybind11_state",
}


def install() -> None:
    """Makes `import onnxruntime` give rlx.ort, in this process and from now on.

    Call it before anything imports onnxruntime; afterwards it raises ImportError, since parts of
    the library would already be in use. The library itself is neither loaded nor needed.
    """
    found = sys.modules.get("onnxruntime")
    if found is not None and found is not sys.modules["rlx.ort"]:
        raise ImportError("onnxruntime is imported already: call rlx.ort.install() before")
    for name, ours in MODULES.items():
        sys.modules[name] = import_module(ours)
        parent, _, child = name.rpartition(".")
        if parent:
            setattr(sys.modules[parent], child, sys.modules[name])
