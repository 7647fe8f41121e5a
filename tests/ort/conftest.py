"""Both libraries, so that a test can hold rlx.ort against what it stands for."""

import onnxruntime
import pytest

import rlx.ort


@pytest.fixture(params=[onnxruntime, rlx.ort], ids=["onnxruntime", "rlx"])
def library(request):
    """One of the two: what a test asserts of it holds for both."""
    onnxruntime.set_default_logger_severity(4)
    return request.param


@pytest.fixture
def raises(library):
    """raises("Fail"): pytest.raises for the library's own exception of that name."""
    return lambda name: pytest.raises(getattr(library.capi.onnxruntime_pybind11_state, name))
