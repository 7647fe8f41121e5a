"""Kernels of your own: CUDA C++ compiled by NVRTC and launched on arrays of any library.

    k = rlx.cuda.compile(source, "axpy")
    k(grid, block, 2.0, x, y, n)

See `compile` for the options and `Kernel` for what a call takes. Nothing of CUDA is opened before
the first call.
"""

from rlx.cuda.arrays import to_device
from rlx.cuda.compiler import compile, compile_async
from rlx.cuda.kernel import Kernel, Launch

__all__ = ["Kernel", "Launch", "compile", "compile_async", "to_device"]
