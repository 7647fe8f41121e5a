"""Seeded ONNX builders of standard networks at true size, written with numpy and onnx alone.

Each builder is a module with `build(seed, dtype, **narrow)`, `inputs(batch, size or length, seed,
dtype, **narrow)`, `PARAMETERS` (trained parameters at true size) and `NARROW`, a configuration
small enough for float64. `python -m models NAME -o file.onnx` writes one.
"""

from models import bert_base, gpt2, llama, mobilenet_v2, resnet50, tagger, unet, vit_b16, yolo
from models._net import parameters

BUILDERS = {
    "resnet50": resnet50,
    "mobilenet_v2": mobilenet_v2,
    "bert-base": bert_base,
    "gpt2": gpt2,
    "vit-b16": vit_b16,
    "unet": unet,
    "llama": llama,
    "yolo": yolo,
    "tagger": tagger,
}

__all__ = ["BUILDERS", "parameters"]
