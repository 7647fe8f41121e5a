"""ImageDecoder, a host step."""

from __future__ import annotations

from typing import Literal

from rlx.errors import ModelError
from rlx.importer.ops.text import host
from rlx.importer.registry import op
from rlx.ir.build import DType, TensorType


@op("ImageDecoder", since=20)
def image_decoder(b, encoded, *, pixel_format: Literal["RGB", "BGR", "Grayscale"] = "RGB"):
    if encoded.dtype is not DType.UINT8 or encoded.rank != 1:
        raise ModelError("ImageDecoder takes a vector of bytes", expected="uint8[n]",
                         got=str(encoded.type))
    channels = 1 if pixel_format == "Grayscale" else 3
    shape = (None, None, channels)
    return host(b, "decode_image", [encoded], [TensorType(DType.UINT8, shape)],
                pixel_format=pixel_format)
