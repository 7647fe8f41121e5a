"""rlx check: whether a model will run here, told before its weights are loaded."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

EXAMPLES = """  rlx check model.onnx && echo it runs
  rlx check model.onnx --device cuda
  rlx check model.onnx --json"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", metavar="MODEL", help="the .onnx file")
    parser.add_argument("--device", default="auto", help="auto (default), cpu or cuda[:N]")


def run(arguments: argparse.Namespace) -> int:
    from rlx.cli import show
    from rlx.importer.reader import parse
    device, problems = _device(arguments.device)
    proto = parse(arguments.model)
    versions, wrong = _versions(proto)
    problems += wrong
    operators = []
    if not wrong:
        operators, wrong = _operators(proto, versions)
        problems += wrong
    absent: set[str] = set()
    needs: list[str] = []
    unchecked = None
    if not wrong:
        needs, unchecked, wrong = _types(arguments.model, absent)
        problems += wrong
    data = {"runs": not problems, "device": device, "ir_version": proto.ir_version,
            "opsets": {k or "ai.onnx": v for k, v in versions.items()},
            "operators": operators, "decided_by_inputs": needs, "absent_files": sorted(absent),
            "unchecked": unchecked, "problems": problems}
    show.print_json(data) if arguments.json else _print(data)
    return 1 if problems else 0


def _device(name: str) -> tuple[str | None, list[dict[str, Any]]]:
    from rlx import _core
    from rlx.errors import DeviceError
    try:
        return _core.make_device(name).name, []
    except DeviceError as error:
        return None, [_problem(error)]


def _versions(proto: Any) -> tuple[dict[str, int], list[dict[str, Any]]]:
    from rlx.errors import Error
    from rlx.importer.opsets import model_opsets
    try:
        return model_opsets(proto), []
    except Error as error:
        return {}, [_problem(error)]


def _operators(proto: Any, versions: dict[str, int]) -> tuple[list[dict], list[dict]]:
    """A row for each operator, and a problem for each that rlx lacks, naming its nodes."""
    from rlx.importer.opsets import domain_name
    local = {(domain_name(f.domain), f.name): f for f in proto.functions}
    nodes: dict[tuple[str, str, int], list[str]] = {}
    for node in _walk(proto.graph.node):
        _enter(node, versions, nodes)
    for function in proto.functions:
        imports = versions | {domain_name(o.domain): o.version for o in function.opset_import}
        for node in _walk(function.node):
            _enter(node, imports, nodes)
    rows, problems = [], []
    for (domain, name, version), labels in sorted(nodes.items()):
        status = "function of the model" if (domain, name) in local else _support(
            domain, name, version)
        rows.append({"operator": name, "domain": domain or "ai.onnx", "opset": version,
                     "nodes": len(labels), "status": status})
        if status == "missing":
            shown = ", ".join(labels[:5]) + (", ..." if len(labels) > 5 else "")
            problems.append({"kind": "UnsupportedError", "node": labels[0], "op": name, "message":
                             f"operator {name} of {domain or 'ai.onnx'} {version} is not "
                             f"supported{_end(domain, name, version)}; nodes: {shown}"})
    return rows, problems


def _enter(node: Any, versions: dict[str, int], nodes: dict) -> None:
    from rlx.importer.opsets import domain_name
    domain = domain_name(node.domain)
    label = node.name or next((f"(output {name})" for name in node.output if name), "(unnamed)")
    nodes.setdefault((domain, node.op_type, versions.get(domain, 0)), []).append(label)


def _walk(nodes: Iterable[Any]) -> Iterator[Any]:
    for node in nodes:
        yield node
        for attribute in node.attribute:
            for graph in (attribute.g, *attribute.graphs):
                yield from _walk(graph.node)


def _support(domain: str, name: str, version: int) -> str:
    import rlx.importer.ops  # noqa: F401  registers the operators
    from onnx import defs
    from rlx.importer.registry import find
    if find(domain, name, version):
        return "native"
    if defs.has(name, max_inclusive_version=max(version, 1), domain=domain):
        schema = defs.get_schema(name, max(version, 1), domain)
        if schema.has_function or schema.has_context_dependent_function:
            return "function"
    return "missing"


def _end(domain: str, name: str, version: int) -> str:
    from rlx.importer.registry import ended
    last = ended(domain, name, version)
    return "" if last is None else f": ONNX removed it in opset {last}"


def _types(path: str, absent: set[str]) -> tuple[list[str], str | None, list[dict[str, Any]]]:
    """Imports the model: types, shapes and attributes are checked, weights mapped and not read.

    Gives the values that decide the program, so that the rest is checked when they are known, and
    why nothing is checked. A weight whose file is not there (`absent` gets it) is such a value.
    """
    from rlx.errors import Error, ModelNotFoundError
    from rlx.importer.importer import import_model
    from rlx.importer.reader import read
    from rlx.ir.build import Specialise
    try:
        import_model(read(path, absent))
    except Specialise as need:
        return [f"{need.kind} of {need.value.name or 'a computed value'}"], None, []
    except ModelNotFoundError as error:  # of a tensor that is no initializer of the main graph
        return [], error.message, []
    except Error as error:
        return [], None, [_problem(error)]
    return [], None, []


def _problem(error: Any) -> dict[str, Any]:
    return {"kind": type(error).__name__, "node": error.node, "op": error.op,
            "message": str(error)}


def _print(data: dict[str, Any]) -> None:
    from rlx.cli import show
    counts = Counter(row["status"] for row in data["operators"])
    opsets = ", ".join(f"{name} {version}" for name, version in data["opsets"].items())
    show.table(f"IR {data['ir_version']}, {opsets}",
               ["operator", "domain", ">opset", ">nodes", "status"],
               [list(row.values()) for row in data["operators"]])
    show.line(", ".join(f"{n} {status}" for status, n in counts.items()))
    for name in data["absent_files"]:
        show.line(f"{name} is not there: its weights are known by their types and shapes only",
                  "yellow")
    if data["unchecked"]:
        show.line(f"types were not checked: {data['unchecked']}", "yellow")
    for need in data["decided_by_inputs"]:
        show.line(f"the {need} decides the program: the rest is checked when it is known")
    for problem in data["problems"]:
        show.line(problem["message"], "red")
    show.line(f"runs on {data['device']}" if data["runs"] else "does not run",
              "bold green" if data["runs"] else "bold red")
