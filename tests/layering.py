"""Checks the import direction between the rooms; prints what breaks it when run as a program."""

import ast
from collections.abc import Iterator
from pathlib import Path
import re
import sys

# What a room may import of rlx, besides itself. The longest prefix that fits a module is its
# room; a module outside every room (session, cli, backend ...) may import all.
PYTHON_ROOMS = {
    "rlx.errors": (),
    "rlx.ir": ("rlx.errors",),
    "rlx.passes": ("rlx.ir", "rlx.errors"),
    # protos gives onnx's own messages, and onnx is open to every room.
    "rlx.importer.ops": ("rlx.ir.build", "rlx.importer.registry", "rlx.importer.types",
                         "rlx.importer.protos", "rlx.errors"),
    # Control flow builds graphs inside graphs, which takes the walk's own scopes.
    "rlx.importer.ops.control": ("rlx.ir.build", "rlx.importer.registry", "rlx.importer.context",
                                 "rlx.importer.scope", "rlx.errors"),
    "rlx.importer": ("rlx.ir", "rlx.importer.ops", "rlx.errors"),
    "rlx.emit": ("rlx.ir", "rlx._core", "rlx.errors"),
    "rlx.host": ("rlx.errors",),
}
# Peers that rlx measures itself against and must never compute with.
PEERS = ("onnx.reference", "onnxruntime")
PEERS_ALLOWED_IN = "rlx.cli.peers"

# What a C++ room may include, besides itself; a path of the repository names its room.
CPP_ROOMS = {
    "cpp/core": (),
    # scalar_ops.h is the one list of scalar functions, for kernels and programs alike.
    "cpp/program": ("cpp/core", "kernels/include/scalar_ops.h"),
    "cpp/backend.h": ("cpp/program", "cpp/core"),
    "cpp/plan": ("cpp/backend.h", "cpp/program", "cpp/core"),
    "cpp/exec": ("cpp/backend.h", "cpp/plan", "cpp/program", "cpp/core"),
    "cpp/cpu": ("cpp/backend.h", "cpp/plan", "cpp/program", "cpp/core", "kernels"),
    "cpp/cuda": ("cpp/backend.h", "cpp/plan", "cpp/program", "cpp/core", "kernels/params"),
    "cpp/emu": ("cpp/cuda", "cpp/cpu/arena.h", "cpp/exec/devices.h", "cpp/backend.h", "cpp/plan",
                "cpp/program", "cpp/core", "kernels"),
    "cpp/bindings": ("cpp",),
    "kernels": (),
}
# Headers of a library that one room alone may know.
LIBRARY_HEADERS = {"dnnl": "cpp/cpu/onednn"}
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.MULTILINE)


def is_within(name: str, prefix: str, separator: str) -> bool:
    return name == prefix or name.startswith(prefix + separator)


def room_of(name: str, rooms: dict[str, tuple[str, ...]], separator: str) -> str | None:
    """The longest prefix among `rooms` that `name` lies in."""
    fitting = [room for room in rooms if is_within(name, room, separator)]
    return max(fitting, key=len, default=None)


def may_import(name: str, target: str, rooms: dict[str, tuple[str, ...]], separator: str) -> bool:
    room = room_of(name, rooms, separator)
    if room is None or room_of(target, rooms, separator) == room:
        return True
    return any(is_within(target, allowed, separator) for allowed in rooms[room])


def module_name(path: Path, root: Path) -> str:
    parts = path.relative_to(root).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imported_names(tree: ast.AST, package: str) -> Iterator[tuple[int, str]]:
    """Line and full dotted name of everything a module imports, in functions too."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                above = package.split(".")[: len(package.split(".")) - node.level + 1]
                base = ".".join(above + ([base] if base else []))
            yield from ((node.lineno, f"{base}.{alias.name}") for alias in node.names)
        elif isinstance(node, ast.Call) and node.args:
            callee = node.func.attr if isinstance(node.func, ast.Attribute) else \
                getattr(node.func, "id", "")
            name = node.args[0]
            if callee in ("import_module", "__import__") and isinstance(name, ast.Constant):
                yield node.lineno, str(name.value)


def python_violations(root: Path) -> list[str]:
    """Imports under root/rlx that go against the direction, as printable lines."""
    found = []
    for path in sorted((root / "rlx").rglob("*.py")):
        name = module_name(path, root)
        package = name if path.name == "__init__.py" else name.rpartition(".")[0]
        for line, target in imported_names(ast.parse(path.read_text()), package):
            where = f"{path.relative_to(root.parent)}:{line}: {name} imports {target}"
            if is_within(target, "rlx", "."):
                if not may_import(name, target, PYTHON_ROOMS, "."):
                    found.append(where)
            elif name != PEERS_ALLOWED_IN and any(is_within(target, p, ".") for p in PEERS):
                found.append(where)
    return found


def included_path(name: str, source: Path, root: Path) -> str | None:
    """Where an include with quotes leads, from the file's folder, cpp/ or the repository."""
    for folder in (source.parent, root / "cpp", root):
        if (folder / name).exists():
            return (folder / name).resolve().relative_to(root.resolve()).as_posix()
    return None


def as_nvrtc_sees(text: str) -> str:
    """The text with the lines blanked that a test of __CUDACC__ keeps for the host's compiler."""
    lines, seen = [], []  # seen: per open conditional, is its branch compiled, is it on __CUDACC__
    for line in text.splitlines():
        directive = re.match(r"\s*#\s*(ifdef|ifndef|if|else|elif|endif)\b(.*)", line)
        kind, condition = directive.groups() if directive else ("", "")
        if kind.startswith("if"):
            host = kind == "ifndef" or "!" in condition
            seen.append((not host if "__CUDACC" in condition else True, "__CUDACC" in condition))
        elif kind == "else" and seen and seen[-1][1]:
            seen[-1] = (not seen[-1][0], True)
        elif kind == "endif" and seen:
            seen.pop()
        lines.append(line if all(compiled for compiled, _ in seen) else "")
    return "\n".join(lines)


def cpp_violations(root: Path) -> list[str]:
    """Includes under root/cpp and root/kernels that go against the direction."""
    found = []
    files = [p for room in ("cpp", "kernels") for p in (root / room).rglob("*")
             if p.suffix in (".h", ".cpp", ".cu")]
    for path in sorted(files):
        name = path.relative_to(root).as_posix()
        text = path.read_text()
        if is_within(name, "kernels", "/"):
            text = as_nvrtc_sees(text)
        for match in INCLUDE.finditer(text):
            line = text.count("\n", 0, match.start()) + 1
            where = f"{name}:{line}: includes {match[2]}"
            if match[1] == "<":
                # NVRTC finds no header but ours, so kernels do without the system's.
                home = LIBRARY_HEADERS.get(re.split(r"[_./]", match[2])[0], name)
                if is_within(name, "kernels", "/") or not is_within(name, home, "/"):
                    found.append(where)
                continue
            if match[2].startswith("generated/"):  # written for each kernel by its select function
                if not is_within(name, "kernels", "/"):
                    found.append(where)
                continue
            target = included_path(match[2], path, root)
            if target is None:
                found.append(f"{where}, which does not exist")
            elif not may_import(name, target, CPP_ROOMS, "/"):
                found.append(where)
    return found


if __name__ == "__main__":
    source = Path(__file__).resolve().parent.parent
    lines = python_violations(source / "python") + cpp_violations(source)
    print(*lines, sep="\n")
    sys.exit(bool(lines))
