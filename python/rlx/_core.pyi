"""Types of the compiled module: one entry for each name that cpp/bindings exposes."""

from types import ModuleType
from typing import Any

__version__: str

def build_info() -> dict[str, Any]: ...

# The structs of cpp/program, field for field: primitives, and what a Program is made of.
prims: ModuleType
program: ModuleType

class Respecialise(Exception): ...

class Program:
    """An immutable program; the keywords are its fields."""

    def __init__(self, **fields: Any) -> None: ...
    constants: list[Any]
    exprs: list[Any]
    guards: list[Any]
    input_names: list[str]
    inputs: list[int]
    origins: list[Any]
    output_names: list[str]
    outputs: list[int]
    stages: list[Any]
    states: list[Any]
    strings: list[str]
    symbols: list[Any]
    values: list[Any]
