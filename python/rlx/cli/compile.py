"""rlx compile: the GPU kernels of a model into a folder, on a machine that needs no GPU."""

from __future__ import annotations

import argparse

from rlx.cli import arguments as common

EXAMPLES = """  rlx compile model.onnx -o kernels --arch sm_90
  rlx compile bert.onnx -o kernels --arch sm_80 --arch sm_90 --shape input_ids=1x128
  rlx compile bert.onnx -o kernels --arch sm_90 --weights f16
  RLX_CUDA_PTX_CACHE=kernels rlx run model.onnx     there, on a machine with such a GPU"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    common.add_model(parser, runs=False)
    parser.add_argument("-o", "--output", required=True, metavar="FOLDER",
                        help="the kernel cache to fill")
    parser.add_argument("--arch", action="append", metavar="sm_NN", required=True,
                        help="compute capability to compile for; may be repeated")
    common.add_inputs(parser)


def run(arguments: argparse.Namespace) -> int:
    from types import SimpleNamespace
    from rlx import ahead, compiler, feeds
    from rlx.cli import inputs, show
    model = compiler.read(arguments.model)
    known = SimpleNamespace(inputs=feeds.describe(model.graph.inputs), _model=model)
    given = inputs.gather(known, arguments)
    with show.progress(f"compiling for {', '.join(arguments.arch)}", None, arguments.json):
        files = ahead.compile(model, arguments.output, given, architectures=arguments.arch,
                              **common.session_options(arguments))
    if arguments.json:
        show.print_json({"folder": arguments.output, "files": files})
    else:
        show.line(f"{arguments.output}: {len(files)} kernels")
    return 0
