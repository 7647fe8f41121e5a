"""What only a card shows: memory as it was planned, and a context that is lost."""

import subprocess
import sys

import pytest

from tests.memory import check_plan

# A kernel that writes where no memory is, launched beside rlx in the context they share.
LOSS = r'''
import ctypes, sys
import numpy as np
import rlx
from tests.models.test_builders import SIZES, inputs, narrow
device = sys.argv[1]
sessions = [rlx.load(narrow(name), device=device) for name in ("bert-base", "gpt2")]
for session, name in zip(sessions, ("bert-base", "gpt2")):
    session.run(inputs(name, SIZES[name][0]))
ptx = b"""
.version 7.0
.target sm_70
.address_size 64
.visible .entry lose() {
  .reg .u64 %a;
  .reg .u32 %v;
  mov.u64 %a, 16;
  mov.u32 %v, 1;
  st.global.u32 [%a], %v;
  ret;
}
"""
cuda = ctypes.CDLL("libcuda.so.1")
context, module, kernel = (ctypes.c_void_p() for _ in range(3))
def call(code): assert code == 0, code
call(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), int(device.partition(":")[2] or 0)))
call(cuda.cuCtxSetCurrent(context))
call(cuda.cuModuleLoadData(ctypes.byref(module), ptx))
call(cuda.cuModuleGetFunction(ctypes.byref(kernel), module, b"lose"))
call(cuda.cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, None, None, None))
assert cuda.cuCtxSynchronize() == 700
for session, name in zip((*sessions, *sessions), ("bert-base", "gpt2") * 2):
    try:
        session.run(inputs(name, SIZES[name][0]))
    except rlx.Error as error:
        print(type(error).__name__)
'''


@pytest.mark.parametrize("name", ["bert-base", "resnet50"])
def test_the_plan_is_what_is_allocated(gpu, name):
    check_plan(gpu, name)


def test_a_lost_context_makes_every_session_stale(gpu):
    done = subprocess.run([sys.executable, "-c", LOSS, gpu], text=True, capture_output=True,
                          timeout=300)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["DeviceError", *["StaleHandleError"] * 3]
