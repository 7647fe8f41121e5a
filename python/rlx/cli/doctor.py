"""rlx doctor: what this machine offers: CPU, threads, libraries, GPU, and what is missing."""

from __future__ import annotations

import argparse
import os
import platform
import sys
from typing import Any

EXAMPLES = """  rlx doctor
  rlx doctor --json"""

FEATURES = ("avx2", "fma", "f16c", "avx512f", "avx512bw", "avx512_vnni", "avx512_bf16",
            "amx_tile", "amx_int8", "amx_bf16")
PACKAGES = ("rlx", "numpy", "onnx", "ml_dtypes", "rich", "pillow", "onnxruntime", "openvino",
            "torch")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    pass


def run(arguments: argparse.Namespace) -> int:
    from rlx.cli import show
    report = {"versions": _versions(), "cpu": _cpu(), "build": _build(), "cuda": _cuda()}
    usable = report["cpu"]["usable"]
    show.print_json({"usable": usable, **report}) if arguments.json else _print(report)
    return 0 if usable else 1


def _versions() -> dict[str, str | None]:
    from importlib import metadata
    import rlx
    found: dict[str, str | None] = {"python": platform.python_version(), "rlx": rlx.__version__}
    for name in PACKAGES[1:]:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = None
    return found


def _cpu() -> dict[str, Any]:
    from rlx import _core
    model, flags = _cpuinfo()
    device = _core.make_device("cpu")
    return {"usable": "cpu" in _core.devices(), "model": model, "machine": platform.machine(),
            "features": [name for name in FEATURES if name in flags],
            "limited_to": os.environ.get("RLX_CPU_ISA"),
            "logical_cpus": os.cpu_count(),
            "allowed_cpus": len(os.sched_getaffinity(0)),
            "threads": device.default_threads}


def _cpuinfo() -> tuple[str, set[str]]:
    """Model name and feature flags as the kernel tells them."""
    model, flags = platform.processor() or platform.machine(), set()
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            for line in file:
                key, _, value = line.partition(":")
                if key.strip() == "model name":
                    model = value.strip()
                elif key.strip() in ("flags", "Features"):
                    return model, set(value.split())
    except OSError:
        pass  # only an ornament
    return model, flags


def _build() -> dict[str, Any]:
    """Facts of the compiled module; which oneDNN, with its OpenMP, this process has loaded."""
    from rlx import _core
    facts = dict(_core.build_info())
    with open("/proc/self/maps", encoding="utf-8") as file:
        mapped = {line.split()[-1] for line in file if ".so" in line}
    facts["loaded"] = sorted(path for path in mapped
                             if "libdnnl" in path or "libgomp" in path or "libiomp" in path)
    if facts["onednn"]:
        facts["onednn"] = _onednn_version(facts["loaded"])
    return facts


def _onednn_version(loaded: list[str]) -> str:
    """That of the oneDNN in the process: dnnl_version() gives three ints, then other facts."""
    import ctypes
    path = next((path for path in loaded if "libdnnl" in path), None)
    if path is None:  # linked in
        return "version unknown"
    ask = ctypes.CDLL(path).dnnl_version
    ask.restype = ctypes.POINTER(ctypes.c_int * 3)
    return ".".join(map(str, ask().contents))


def _cuda() -> dict[str, Any]:
    """What rlx's loader finds, and what to do about the rest."""
    from rlx import _core
    found = _core.cuda_probe()
    remedies = [lib["remedy"] for lib in found["libraries"] if not lib["usable"] and lib["remedy"]]
    pip = "pip install "
    wheels = dict.fromkeys(r.removeprefix(pip) for r in remedies if r.startswith(pip))
    others = dict.fromkeys(r for r in remedies if not r.startswith(pip))
    return {"usable": not found["reason"], **found,
            "remedies": [*others, *([pip + " ".join(wheels)] if wheels else [])]}


def _print(report: dict[str, Any]) -> None:
    from rlx.cli import show
    versions, cpu, build, cuda = (report[k] for k in ("versions", "cpu", "build", "cuda"))
    show.table("Versions", ["package", "version"],
               [(name, version or "not installed") for name, version in versions.items()])
    show.line()
    limit = f", limited to {cpu['limited_to']} by RLX_CPU_ISA" if cpu["limited_to"] else ""
    show.table("CPU", ["", ""], [
        ("model", cpu["model"]), ("features", " ".join(cpu["features"]) + limit),
        ("threads", f"{cpu['threads']} of {cpu['allowed_cpus']} allowed, "
                    f"{cpu['logical_cpus']} in the machine"),
        ("oneDNN", build["onednn"] or "none: rlx's own kernels only"),
        ("compiler", build["compiler"]),
        ("loaded", "\n".join(build["loaded"]))])
    show.line()
    show.table(f"CUDA {cuda['cuda_major']}", ["library", "version", "where", "found by"], [
        (lib["name"], lib["version"] if lib["usable"] else "missing",
         lib["path"] if lib["usable"] else lib["reason"], lib["how"])
        for lib in cuda["libraries"]])
    for gpu in cuda["gpus"]:
        show.line(f"{gpu['name']}: {gpu['gpu']}, {show.size(gpu['memory_bytes'])}, "
                  f"compute capability {gpu['capability'] / 10:.1f}")
    show.line()
    show.line("CPU: ready" if cpu["usable"] else "CPU: not usable",
              "bold green" if cpu["usable"] else "bold red")
    show.line("CUDA: ready" if cuda["usable"] else f"CUDA: not usable: {cuda['reason']}",
              "bold green" if cuda["usable"] else "yellow")
    for remedy in cuda["remedies"]:
        if remedy in cuda["reason"]:
            continue  # was said
        show.line(f"  {remedy}")
    if sys.platform != "linux":
        show.line("rlx is made for Linux", "yellow")
