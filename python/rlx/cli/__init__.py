"""The command line: `rlx COMMAND`, one file for each command.

A command's module has its summary as the first line of its docstring, EXAMPLES,
add_arguments(parser) and run(arguments), which returns the exit code: 0 when all is well, 1 for a
failure or a mismatch, 2 for bad usage or input. No module imports NumPy, onnx or rich before its
command runs, so that --help is there at once.
"""

from __future__ import annotations

import argparse
import os
import sys
from importlib import import_module
from traceback import walk_tb
from types import ModuleType

from rlx.errors import DeviceError, Error, InputError, InternalError

COMMANDS = ("run", "explain", "check", "bench", "profile", "verify", "doctor", "cache", "compile",
            "compile-kernel", "ops")
RUNNERS = {"rlx.session", "rlx.ahead", "rlx.ir.evaluate"}  # modules that take inputs
EPILOG = """examples:
  rlx run model.onnx                          random inputs, a summary of the outputs
  rlx run model.onnx --input image=cat.png --top-k 5 --labels labels.txt
  rlx bench model.onnx --vs onnxruntime
  rlx COMMAND --help                          more of them

exit codes: 0 all is well, 1 failure or mismatch, 2 bad usage or input"""


def main(argv: list[str] | None = None) -> int:
    """Runs one command; its exit code."""
    try:
        try:
            arguments, unknown = _parser().parse_known_args(argv)
            if unknown:  # told by the command's parser, with the command's usage
                arguments.parser.error(f"unrecognized arguments: {' '.join(unknown)}")
            return _run(arguments)
        finally:
            print(end="", flush=True)  # here, where a failure can be told
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:  # the reader of a pipe has seen enough
        _drop_output()
        return 0
    except OSError as error:  # a full disk behind stdout, say
        _drop_output()
        print(f"rlx: {error}", file=sys.stderr)
        return 1


def _run(arguments: argparse.Namespace) -> int:
    try:
        return arguments.run(arguments)
    except Error as error:
        _tell(error, arguments)
        return 1 if isinstance(error, InternalError) else 2
    except OSError as error:
        if error.filename is None:  # stdout's has no name, and nowhere to be told as JSON
            raise
        _tell(InputError(str(error)), arguments)
        return 2


def _drop_output() -> None:
    """What is still to be written goes nowhere, else the interpreter's end would complain."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _tell(error: Error, arguments: argparse.Namespace) -> None:
    if getattr(arguments, "json", False):
        from rlx.cli.show import print_json
        fields = {name: getattr(error, name) for name in (
            "message", "node", "op", "domain", "opset", "expected", "got", "remedy", "contexts")}
        print_json({"error": {"kind": type(error).__name__,
                              **{k: v for k, v in fields.items() if v}}})
    print(f"{type(error).__name__}: {error}", file=sys.stderr)
    if getattr(arguments, "made", None) and _inputs_may_be_why(error):
        print(f"the inputs were random: {arguments.made}; --input, --shape and --dim give others",
              file=sys.stderr)


def _inputs_may_be_why(error: Error) -> bool:
    """Whether it came out of a run, and neither of the device nor of a file."""
    if isinstance(error, (DeviceError, InternalError)) or isinstance(error.__cause__, OSError):
        return False
    return any(frame.f_globals.get("__name__") in RUNNERS
               for frame, _ in walk_tb(error.__traceback__))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="rlx", description="Runs ONNX models, and tells what it does.", epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--version", action=_Version, nargs=0, help="print the version and stop")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for name in COMMANDS:
        module = import_module(f"rlx.cli.{name.replace('-', '_')}")
        summary = _summary(module)
        command = commands.add_parser(
            name, help=summary, description=summary, epilog=f"examples:\n{module.EXAMPLES}",
            formatter_class=argparse.RawDescriptionHelpFormatter)
        module.add_arguments(command)
        command.add_argument("--json", action="store_true", help="print JSON instead of tables")
        command.set_defaults(run=module.run, parser=command)
    return parser


def _summary(module: ModuleType) -> str:
    return module.__doc__.partition("\n")[0].partition(": ")[2]


class _Version(argparse.Action):
    def __call__(self, parser, *_) -> None:
        import rlx
        print(rlx.__version__)
        parser.exit()
