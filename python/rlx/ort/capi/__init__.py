"""Stands for onnxruntime.capi, whose modules programs import by name."""

from rlx.ort.capi import onnxruntime_pybind11_state

__all__ = ["onnxruntime_pybind11_state"]
