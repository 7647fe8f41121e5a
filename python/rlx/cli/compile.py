"""rlx compile: the GPU kernels of a model into a folder, on a machine that needs no GPU."""

from __future__ import annotations

import argparse

from rlx.cli.arguments import add_inputs

EXAMPLES = """  rlx compile model.onnx -o kernels --arch sm_90
  rlx compile bert.onnx -o kernels --arch sm_80 --arch sm_90 --shape input_ids=1x128
  RLX_CUDA_PTX_CACHE=kernels rlx run model.onnx     there, on a machine with such a GPU"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", metavar="MODEL", help="the .onnx file")
    parser.add_argument("-o", "--output", required=True, metavar="FOLDER",
                        help="the kernel cache to fill")
    parser.add_argument("--arch", action="append", metavar="sm_NN", required=True,
                        help="compute capability to compile for; may be repeated")
    parser.add_argument("--no-tf32", action="store_true",
                        help="for sessions with tf32=False")
    add_inputs(parser)


def run(arguments: argparse.Namespace) -> int:
    from types import SimpleNamespace
    from rlx import ahead, compiler, feeds
    from rlx.cli import inputs, show
    model = compiler.read(arguments.model)
    known = SimpleNamespace(inputs=feeds.describe(model.graph.inputs), _model=model)
    given = inputs.gather(known, arguments)
    with show.progress(f"compiling for {', '.join(arguments.arch)}", None, arguments.json):
        files = ahead.compile(model, arguments.output, given, architectures=arguments.arch,
                              tf32=not arguments.no_tf32)
    if arguments.json:
        show.print_json({"folder": arguments.output, "files": files})
    else:
        show.line(f"{arguments.output}: {len(files)} kernels")
    return 0
