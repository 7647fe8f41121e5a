"""rlx ops: which operators are supported: domain, versions, element types."""

from __future__ import annotations

import argparse
import sys
from typing import Any

EXAMPLES = """  rlx ops
  rlx ops --missing
  rlx ops Conv Gemm
  rlx ops --domain com.microsoft --json"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("names", nargs="*", metavar="OP", help="only these operators")
    parser.add_argument("--domain", help="only this domain; ai.onnx is the standard one")
    parser.add_argument("--missing", action="store_true", help="only what is not supported")


def coverage() -> list[dict[str, Any]]:
    """A row for each operator of the ONNX standard and of rlx: name, domain, status, versions
    of the standard, and the element types of its inputs and outputs.

    status: "native", "function" (expanded into others) or "missing".
    """
    import rlx.importer.ops  # noqa: F401  registers the operators
    from onnx import defs
    from rlx.importer.opsets import domain_name
    from rlx.importer.registry import entries
    own: dict[tuple[str, str], list[int]] = {}
    for entry in entries():
        own.setdefault((entry.domain, entry.name), []).append(entry.since)
    schemas: dict[tuple[str, str], list[Any]] = {}
    for schema in defs.get_all_schemas_with_history():
        if not schema.domain.startswith("ai.onnx.preview"):
            schemas.setdefault((domain_name(schema.domain), schema.name), []).append(schema)
    rows = []
    for domain, name in sorted({*own, *schemas}):
        history = sorted(schemas.get((domain, name), ()), key=lambda s: s.since_version)
        newest = history[-1] if history else None
        if newest is not None and newest.deprecated and (domain, name) not in own:
            continue
        rows.append({"name": name, "domain": domain or "ai.onnx",
                     "status": _status(own.get((domain, name)), newest),
                     "versions": [s.since_version for s in history if not s.deprecated],
                     "since": min(own.get((domain, name), [0])),
                     "types": _types(newest)})
    return rows


def run(arguments: argparse.Namespace) -> int:
    from rlx.cli import show
    from rlx.errors import InputError
    rows = coverage()
    unknown = sorted(set(arguments.names) - {row["name"] for row in rows})
    problem = InputError(f"no operator {', '.join(unknown)} is known")
    if unknown and set(unknown) == set(arguments.names):
        raise problem
    if arguments.domain is not None:
        rows = [row for row in rows if row["domain"] == (arguments.domain or "ai.onnx")]
    if arguments.names:
        rows = [row for row in rows if row["name"] in arguments.names]
    counts = {status: sum(row["status"] == status for row in rows)
              for status in ("native", "function", "missing")}
    if arguments.missing:
        rows = [row for row in rows if row["status"] == "missing"]
    if arguments.json:
        show.print_json({"counts": counts, "operators": rows, "unknown": unknown})
    else:
        show.table("", ["operator", "domain", "status", "versions", "element types"], [
            (row["name"], row["domain"], row["status"], " ".join(map(str, row["versions"])),
             " ".join(row["types"])) for row in rows])
        show.line(", ".join(f"{n} {status}" for status, n in counts.items()))
    if unknown:
        print(f"InputError: {problem}", file=sys.stderr)
    return 2 if unknown else 0


def _status(since: list[int] | None, newest: Any) -> str:
    if since:
        return "native"
    function = newest.has_function or newest.has_context_dependent_function
    return "function" if function else "missing"


def _types(schema: Any) -> list[str]:
    """Element types that the newest version allows anywhere, short names."""
    if schema is None:
        return []
    texts = {t for c in schema.type_constraints for t in c.allowed_type_strs}
    texts |= {i.type_str for i in (*schema.inputs, *schema.outputs) if "tensor(" in i.type_str}
    return sorted({t.rpartition("tensor(")[2].rstrip(")") for t in texts if "tensor(" in t})
