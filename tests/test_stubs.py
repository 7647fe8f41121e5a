"""The stub of rlx._core names exactly what the compiled module exposes."""

import ast
import inspect

import rlx


def stub_names(body: list[ast.stmt], prefix: str = "") -> set[str]:
    """Dotted public names that a stub declares, members of classes too."""
    names = set()
    for node in body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            names.add(prefix + node.name)
        elif isinstance(node, ast.AnnAssign):
            names.add(prefix + node.target.id)
        if isinstance(node, ast.ClassDef):
            names |= stub_names(node.body, f"{prefix}{node.name}.")
    return {name for name in names if not name.rpartition(".")[2].startswith("_")}


def exposed_names(owner: object, prefix: str = "") -> set[str]:
    """Dotted public names of a module or class, not those that a base class brings."""
    names = set()
    for name, value in vars(owner).items():
        if not name.startswith("_"):
            names.add(prefix + name)
            if inspect.isclass(value):
                names |= exposed_names(value, f"{prefix}{name}.")
    return names


def test_stub_names_what_the_module_exposes(source):
    stub = ast.parse((source / "python/rlx/_core.pyi").read_text())
    assert stub_names(stub.body) == exposed_names(rlx._core)
