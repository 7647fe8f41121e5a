"""Finds and maps external tensor data, confined to the folder of the model."""

from __future__ import annotations

import os
import re

from rlx.errors import ModelError
from rlx.importer.protos import TensorProto
from rlx.importer.source import Source, open_file


class ExternalData:
    """The external files of one model; each is mapped once."""

    def __init__(self, model_path: str | None) -> None:
        self.folders: list[str] = []
        self.base: str | None = None
        self.files: dict[str, Source] = {}
        if model_path is not None:
            self.base = os.path.dirname(os.path.abspath(model_path))
            # Download caches keep the model and its data side by side behind links of the same
            # folder, so the folder of the file that the model's link leads to is allowed too.
            real_model = os.path.realpath(model_path)
            self.folders = [os.path.realpath(self.base), os.path.dirname(real_model)]

    def find(self, tensor: TensorProto, nbytes: int) -> tuple[Source, int]:
        """The file and offset of a tensor's `nbytes` bytes."""
        entries = {entry.key: entry.value for entry in tensor.external_data}
        location = entries.get("location", "")
        if self.base is None:
            raise ModelError(
                f"the tensor keeps its data in another file, {location!r}, and a model given as"
                " bytes or ModelProto has no folder to look in",
                remedy="pass the model's path, or a ModelProto that onnx.load(path) has completed",
            )
        source = self.open(location)
        offset = _number(entries, "offset", 0)
        length = _number(entries, "length", nbytes)
        if length != nbytes:
            raise ModelError(
                "the external data's length does not fit the tensor",
                expected=f"{nbytes} bytes",
                got=f"{length} bytes",
            )
        if offset + nbytes > source.nbytes:
            raise ModelError(
                f"the external file {location!r} is too short",
                expected=f"{nbytes} bytes at offset {offset}",
                got=f"a file of {source.nbytes} bytes",
                remedy="check that the data file was downloaded or written completely",
            )
        return source, offset

    def open(self, location: str) -> Source:
        """Map the file at a location relative to the model."""
        parts = re.split(r"[/\\]", location) if os.sep == "\\" else location.split("/")
        if not location or "\0" in location:
            raise ModelError(f"external data has no usable location: {location!r}")
        if os.path.isabs(location) or location[0] in "/\\" or re.match(r"[A-Za-z]:", location):
            raise ModelError(f"external data location {location!r} is absolute", expected=_RULE)
        if ".." in parts:
            raise ModelError(f"external data location {location!r} leaves the folder",
                             expected=_RULE)
        path = os.path.realpath(os.path.join(self.base, location))
        if not any(os.path.commonpath((folder, path)) == folder for folder in self.folders):
            raise ModelError(
                f"external data location {location!r} leads out of the model's folder by a link",
                expected=_RULE,
                got=path,
                remedy="copy the data file beside the model",
            )
        if path not in self.files:
            self.files[path] = open_file(path)
        return self.files[path]


_RULE = "a path relative to the model's folder, and inside it"


def _number(entries: dict[str, str], key: str, default: int) -> int:
    text = entries.get(key)
    if text is None:
        return default
    if not re.fullmatch(r"[0-9]{1,18}", text.strip()):
        raise ModelError(f"external data has a {key} that is not a size: {text!r}")
    return int(text)
