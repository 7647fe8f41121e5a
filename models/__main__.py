"""`python -m models NAME -o file.onnx` writes one network."""

from __future__ import annotations

import argparse

import numpy as np
import onnx

from models import BUILDERS


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m models", description=__doc__)
    parser.add_argument("name", choices=BUILDERS)
    parser.add_argument("-o", "--output", required=True, help="the .onnx file to write")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--dtype", choices=["float16", "float32", "float64"], default="float32")
    parser.add_argument("--narrow", action="store_true", help="the small copy that tests use")
    arguments = parser.parse_args()
    builder = BUILDERS[arguments.name]
    narrow = builder.NARROW if arguments.narrow else {}
    onnx.save(builder.build(arguments.seed, np.dtype(arguments.dtype), **narrow), arguments.output)


if __name__ == "__main__":
    main()
