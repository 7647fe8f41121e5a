"""rlx runs ONNX models; this file holds its public names and nothing else."""

from rlx._load import load_core

_core = load_core()
__version__: str = _core.__version__
