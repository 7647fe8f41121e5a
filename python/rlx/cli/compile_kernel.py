"""rlx compile-kernel: CUDA C++ into a CUBIN or PTX, on a machine that needs no GPU."""

from __future__ import annotations

import argparse
from pathlib import Path

from rlx.errors import InputError, writing

EXAMPLES = """  rlx compile-kernel axpy.cu --arch sm_90 -o axpy.cubin
  rlx compile-kernel axpy.cu --arch compute_80 -o axpy.ptx -D N=4 -I include
  rlx compile-kernel axpy.cu --arch sm_90 -o axpy.cubin --name 'axpy<float>' --lto"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("source", metavar="FILE.cu", type=Path, help="CUDA C++")
    parser.add_argument("-o", "--output", required=True, metavar="FILE", type=Path,
                        help="the result, whose name ends in .cubin or .ptx")
    parser.add_argument("--arch", metavar="sm_NN", required=True,
                        help="the architecture; compute_NN for PTX that any later GPU takes")
    parser.add_argument("--name", action="append", default=[], metavar="EXPRESSION",
                        help="a kernel to instantiate, as in 'axpy<float>'; may be repeated, and "
                             "its symbol is told")
    parser.add_argument("--std", type=int, default=17, metavar="NN", help="14, 17 (default) or 20")
    parser.add_argument("-D", "--define", action="append", default=[], metavar="NAME[=VALUE]")
    parser.add_argument("-I", "--include", action="append", default=[], metavar="FOLDER",
                        help="where includes are searched, beside the source's own folder")
    parser.add_argument("--fast-math", action="store_true", help="faster, less exact mathematics")
    parser.add_argument("--max-registers", type=int, metavar="N", help="of a thread")
    parser.add_argument("--lto", action="store_true", help="optimise when linking, by nvJitLink")
    parser.add_argument("--option", action="append", default=[], metavar="FLAG",
                        help="a further flag of NVRTC, as in --option=-lineinfo")


def run(arguments: argparse.Namespace) -> int:
    from rlx.cli import show
    from rlx.cuda.compiler import compile_program
    kind = arguments.output.suffix
    if kind not in (".cubin", ".ptx"):
        raise InputError("the result's name says what it is", expected="*.cubin or *.ptx",
                         got=arguments.output)
    with show.progress(f"compiling {arguments.source}", None, arguments.json):
        program = compile_program(
            arguments.source, arguments.name, arch=arguments.arch, lto=arguments.lto,
            std=arguments.std, fast_math=arguments.fast_math, options=arguments.option,
            max_registers=arguments.max_registers, defines=arguments.define,
            include_paths=arguments.include)
    image = program.cubin if kind == ".cubin" else program.ptx
    if not image:
        raise InputError(f"there is no {kind[1:].upper()} of this", got=program.architecture,
                         remedy="--arch sm_NN" if kind == ".cubin"
                         else "without --lto, or --arch compute_NN")
    with writing("the result", arguments.output):
        arguments.output.write_bytes(image)
    symbols = dict(zip(arguments.name, program.lowered))
    if arguments.json:
        show.print_json({"file": str(arguments.output), "bytes": len(image), "symbols": symbols,
                         "architecture": program.architecture, "log": program.log})
        return 0
    for expression, symbol in symbols.items():
        show.line(f"{expression}: {symbol}")
    if program.log:
        show.line(program.log.rstrip())
    show.line(f"{arguments.output}: {show.size(len(image))} for {program.architecture}")
    return 0
