"""Types of the compiled module: one entry for each name that cpp/bindings exposes."""

from typing import Any

__version__: str

def build_info() -> dict[str, Any]: ...
