"""Which CUDA driver and libraries there are, where they were found, and what is missing.

Looks in the order that rlx opens them: already in the process, pip's nvidia-* wheels, conda, the
system's loader, CUDA_HOME. Opens the driver only, and no library.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import os
import re
import sys
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

# name -> stem of the file, the wheels of CUDA 12 and 13, whether rlx can do without it.
LIBRARIES = {
    "NVRTC": ("libnvrtc", "nvidia-cuda-nvrtc-cu12", "nvidia-cuda-nvrtc", False),
    "cuBLAS": ("libcublas", "nvidia-cublas-cu12", "nvidia-cublas", True),
    "cuBLASLt": ("libcublasLt", "nvidia-cublas-cu12", "nvidia-cublas", True),
    "cuDNN": ("libcudnn", "nvidia-cudnn-cu12", "nvidia-cudnn-cu13", True),
}


def probe() -> dict[str, Any]:
    """libraries (name, path, version, found_by, problem), usable, verdict, remedies."""
    driver = _driver()
    rows = [driver] + [_library(name) for name in LIBRARIES]
    major = 13 if (driver["api"] or 0) >= 13000 else 12
    missing = [row["name"] for row in rows[1:] if not row["path"]]
    needed = [name for name in missing if not LIBRARIES[name][3]]
    remedies = []
    if driver["problem"]:
        remedies.append("install NVIDIA's driver; nvidia-smi shows whether it works")
    if missing:
        wheels = dict.fromkeys(LIBRARIES[name][1 if major == 12 else 2] for name in missing)
        remedies.append(f"pip install {' '.join(wheels)}    (all of them: "
                        f"pip install 'rlx[cuda{major}]')")
    usable = not driver["problem"] and not needed
    if usable:
        verdict = "ready" + (f"; without {', '.join(missing)}" if missing else "")
    else:
        verdict = "not usable: " + ", ".join(
            ["driver " + driver["problem"]] * bool(driver["problem"])
            + [f"{name} is missing" for name in needed])
    return {"usable": usable, "verdict": verdict, "remedies": remedies, "cuda_major": major,
            "libraries": rows}


def _driver() -> dict[str, Any]:
    row = {"name": "driver", "path": None, "version": None, "found_by": None, "problem": None,
           "api": None}
    try:
        library = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return row | {"problem": "is missing (libcuda.so.1)"}
    version, count = ctypes.c_int(), ctypes.c_int()
    status = library.cuInit(0)
    if status == 0:
        status = library.cuDeviceGetCount(ctypes.byref(count))
    library.cuDriverGetVersion(ctypes.byref(version))
    row |= {"path": _mapped("libcuda") or "libcuda.so.1", "found_by": "system loader",
            "api": version.value, "devices": count.value,
            "version": f"CUDA {version.value // 1000}.{version.value % 1000 // 10}"}
    if status != 0 or count.value == 0:
        row["problem"] = f"has no usable device (code {status})"
    return row


def _library(name: str) -> dict[str, Any]:
    stem, *wheels, _ = LIBRARIES[name]
    for found_by, path in _candidates(stem):
        return {"name": name, "path": path, "version": _version(wheels, path),
                "found_by": found_by, "problem": None}
    return {"name": name, "path": None, "version": None, "found_by": None,
            "problem": f"missing ({stem}.so)"}


def _candidates(stem: str) -> Iterator[tuple[str, str]]:
    """Where the library is, best place first."""
    mapped = _mapped(stem)
    if mapped:
        yield "this process", mapped
    for folder in sys.path:
        yield from _files("pip wheel", Path(folder) / "nvidia", "*/lib", stem)
        yield from _files("pip wheel", Path(folder) / "nvidia", "*/lib/x86_64", stem)
    if "CONDA_PREFIX" in os.environ:
        yield from _files("conda", Path(os.environ["CONDA_PREFIX"]), "lib", stem)
    known = ctypes.util.find_library(stem.removeprefix("lib"))
    if known:
        yield "system loader", known
    for variable in ("CUDA_HOME", "CUDA_PATH"):
        if variable in os.environ:
            yield from _files(variable, Path(os.environ[variable]), "lib64", stem)


def _files(found_by: str, root: Path, pattern: str, stem: str) -> Iterator[tuple[str, str]]:
    for folder in sorted(root.glob(pattern)) if root.is_dir() else ():
        for path in sorted(folder.glob(f"{stem}.so*"), reverse=True):
            yield found_by, str(path)


def _mapped(stem: str) -> str | None:
    """The file of a library that this process has loaded."""
    with open("/proc/self/maps", encoding="utf-8") as file:
        found = re.search(rf"(/\S*/{stem}\.so\S*)", file.read())
    return found[1] if found else None


def _version(wheels: list[str], path: str) -> str | None:
    """Of the wheel that the file belongs to, else what its name says."""
    for wheel in wheels:
        try:
            if "/nvidia/" in path:
                return metadata.version(wheel)
        except metadata.PackageNotFoundError:
            continue
    found = re.search(r"\.so\.([\d.]+)", os.path.realpath(path))
    return found[1] if found else None
