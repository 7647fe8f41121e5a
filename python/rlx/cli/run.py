"""rlx run: run a model once and print its outputs."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from rlx.cli import arguments as common

if TYPE_CHECKING:
    import numpy as np

EXAMPLES = """  rlx run model.onnx
  rlx run model.onnx --dim batch=4 --seed 7
  rlx run classifier.onnx --input image=cat.jpg --mean 0.485,0.456,0.406 \\
      --std 0.229,0.224,0.225 --top-k 5 --labels imagenet.txt
  rlx run speech.onnx --input audio=hello.wav --input sr=16000
  rlx run model.onnx --input inputs.npz --output outputs.npz"""


MOST_VALUES = 100_000  # of an output in JSON


def add_arguments(parser: argparse.ArgumentParser) -> None:
    common.add_model(parser)
    common.add_inputs(parser)
    group = parser.add_argument_group("outputs")
    group.add_argument("--top-k", type=common.positive, metavar="K",
                       help="show the K largest numbers along the last axis")
    group.add_argument("--labels", metavar="FILE", help="one label a line, for --top-k")
    group.add_argument("--output", metavar="FILE.npz",
                       help="write the outputs here: an item of a sequence as NAME[I], maps as "
                            "NAME/keys and NAME/values")


def run(arguments: argparse.Namespace) -> int:
    from rlx.cli import inputs, show
    labels = _labels(arguments.labels)
    with common.load(arguments) as session:
        given = inputs.gather(session, arguments)
        results = session.run(given)
        device = session.device
    if arguments.output is not None:
        _write(arguments.output, results)
    tops = {name: _top(x, arguments.top_k, labels) for name, x in results.items()
            if arguments.top_k and _has_scores(x)}
    if arguments.json:
        show.print_json({"device": device, "inputs": inputs.describe(given),
                         "outputs": [{**_facts(name, x), "top": tops[name]} if name in tops
                                     else {**_facts(name, x), "values": _values(x)}
                                     for name, x in results.items()]})
        return 0
    for row in inputs.describe(given):
        show.line(f"{row['name']}: {row['dtype']}{show.shape(row['shape'])}", "dim")
    for name, x in results.items():
        _print(name, x, tops.get(name))
    if arguments.output:
        show.line(f"written to {arguments.output}", "dim")
    return 0


def _labels(path: str | None) -> list[str]:
    from rlx.errors import InputError
    if path is None:
        return []
    try:
        with open(path, encoding="utf-8") as file:
            return file.read().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot read the labels in {path!r}: {error}") from error


def _write(path: str, results: dict[str, Any]) -> None:
    import numpy as np
    from rlx.errors import writing
    arrays = {name: x.astype(str) if x.dtype == object else x for name, x in _arrays(results)}
    with writing("the outputs", path):
        with open(path, "wb") as file:  # savez would append .npz to other names
            np.savez(file, **arrays)


def _arrays(results: dict[str, Any]) -> Iterator[tuple[str, np.ndarray]]:
    """(name, array), the items of sequences by their place; what is absent has none.

    Maps, which have all the same keys, are named as those that are fed: keys, and rows of values.
    """
    import numpy as np
    for name, x in results.items():
        if _are_maps(x):
            yield f"{name}/keys", np.array(list(x[0]))
            yield f"{name}/values", np.array([list(row.values()) for row in x], np.float32)
        elif isinstance(x, list):
            yield from _arrays({f"{name}[{i}]": item for i, item in enumerate(x)})
        elif x is not None:
            yield name, x


def _are_maps(x: Any) -> bool:
    return isinstance(x, list) and len(x) > 0 and isinstance(x[0], dict)


def _has_scores(x: Any) -> bool:
    return getattr(x, "ndim", 0) > 0 and x.dtype.kind not in "OUSbc" and x.size > 0


def _top(x: Any, k: int, labels: list[str]) -> list[list[dict[str, Any]]]:
    """The k largest of each row, the first few rows: index, label, value."""
    rows = x.reshape(-1, x.shape[-1])[:4].astype(float)
    found = []
    for row in rows:
        best = (-row).argsort(kind="stable")[:k]
        found.append([{"index": int(i), "label": labels[i] if i < len(labels) else None,
                       "value": float(row[i])} for i in best])
    return found


def _facts(name: str, x: Any) -> dict[str, Any]:
    return {"name": name, "dtype": str(getattr(x, "dtype", type(x).__name__)),
            "shape": list(x.shape) if hasattr(x, "shape") else None}


def _values(x: Any) -> Any:
    """The numbers, unless there are more than anybody reads as JSON: --output is for those."""
    if _are_maps(x):
        return None if len(x) * len(x[0]) > MOST_VALUES else x
    if isinstance(x, list):
        return [_values(item) for item in x]
    return None if x is not None and x.size > MOST_VALUES else x


def _print(name: str, x: Any, top: list[list[dict[str, Any]]] | None) -> None:
    import numpy as np
    from rlx.cli import show
    if isinstance(x, dict):
        show.line(f"{name}: " + ", ".join(f"{key}: {number:.6g}" for key, number in x.items()))
        return
    if not hasattr(x, "dtype"):
        show.line(f"{name}: {'absent' if x is None else f'sequence of {len(x)}'}", "bold")
        for i, item in enumerate(x or ()):
            _print(f"{name}[{i}]", item, None)
        return
    text = f"{name}: {x.dtype}{show.shape(x.shape)}"
    if x.size and x.dtype.kind in "fiu":
        text += f"  min {x.min():.6g}  mean {x.astype(float).mean():.6g}  max {x.max():.6g}"
    show.line(text, "bold")
    if top is None:
        show.line(np.array2string(x, threshold=60, edgeitems=3, precision=6))
    for row in top or ():
        show.table("", ["rank", ">index", "label", ">value"], [
            (rank, t["index"], t["label"] or "", f"{t['value']:.6g}")
            for rank, t in enumerate(row, 1)])
