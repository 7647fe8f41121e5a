"""Finds the large raw_data fields of a serialised ModelProto, so that parsing need not copy them.

Knows the protobuf wire format and which fields of onnx.proto lead to tensors; nothing of tensors.
"""

from __future__ import annotations

import os
from typing import NamedTuple

from rlx.errors import ModelError

# Below this a copy costs less than the bookkeeping.
CUT_FROM = 4096
# upb's limit on nested messages.
MAX_DEPTH = 100

_CUT, _LEAVE = object(), object()

# Field number -> message it holds, _CUT (raw_data), or _LEAVE: one of possibly millions of entries
# beside which no large tensor stands; the rest of that message is left as it is.
_TENSOR: dict[int, object] = {n: _LEAVE for n in (4, 5, 6, 7, 10, 11)}
_SPARSE: dict[int, object] = {1: _TENSOR, 2: _TENSOR}
_ATTRIBUTE: dict[int, object] = {n: _LEAVE for n in (7, 8, 9)}
_NODE: dict[int, object] = {5: _ATTRIBUTE}
_GRAPH: dict[int, object] = {1: _NODE, 5: _TENSOR, 15: _SPARSE}
_FUNCTION: dict[int, object] = {7: _NODE, 11: _ATTRIBUTE}
_TRAINING: dict[int, object] = {1: _GRAPH, 2: _GRAPH}
_MODEL: dict[int, object] = {7: _GRAPH, 20: _TRAINING, 25: _FUNCTION}
_TENSOR[9] = _CUT
_ATTRIBUTE |= {5: _TENSOR, 6: _GRAPH, 10: _TENSOR, 11: _GRAPH, 22: _SPARSE, 23: _SPARSE}


class Cut(NamedTuple):
    """Where a raw_data field's bytes lie in the serialised model."""

    offset: int
    nbytes: int


def cut_raw_data(buffer: memoryview) -> tuple[bytes, dict[bytes, Cut]]:
    """The model with each large raw_data replaced by an unguessable token, and token -> its bytes.

    All else, order included, is unchanged, so whatever a parser makes of the model stays the same.
    Raises ModelError where a field reaches beyond its message; leaves other checks to the parser.
    """
    scan = _Scan(buffer)
    size, pieces = scan.message(0, len(buffer), _MODEL, 0)
    return b"".join(pieces), scan.cuts


class _Scan:
    def __init__(self, buffer: memoryview) -> None:
        self.buffer = buffer
        self.cuts: dict[bytes, Cut] = {}
        self.secret = os.urandom(16)

    def varint(self, pos: int, end: int) -> tuple[int, int]:
        """A base-128 number and the position after it."""
        value = 0
        for shift in range(0, 70, 7):
            if pos >= end:
                raise _broken(pos, "it ends within a number")
            byte = self.buffer[pos]
            pos += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value, pos
        raise _broken(pos, "a number has more than 10 bytes")

    def message(self, pos: int, end: int, fields: dict, depth: int) -> tuple[int, list]:
        """The new size of the message at pos:end and the pieces it is made of."""
        if depth > MAX_DEPTH:
            raise ModelError(f"the model nests more than {MAX_DEPTH} protobuf messages")
        buffer, varint = self.buffer, self.varint
        pieces: list = []
        size, kept_from = 0, pos
        while pos < end:
            start = pos
            key = buffer[pos]
            pos += 1
            if key >= 0x80:
                key, pos = varint(start, end)
            kind = fields.get(key >> 3)
            if kind is _LEAVE:
                break
            if key & 7 != 2:
                pos = self.skip(key, pos, end, depth)
                continue
            # One and two bytes are the lengths of nearly all fields; varint() takes the others.
            length, body = buffer[pos] if pos < end else 0x80, pos + 1
            if length >= 0x80:
                length, body = varint(pos, end)
            pos = body + length
            if pos > end:
                raise _broken(start, f"a field needs {length} bytes, and {end - body} are left")
            if kind is None or length < CUT_FROM:
                continue
            if kind is _CUT:
                inner_size, inner = self.cut(body, length)
            else:
                inner_size, inner = self.message(body, pos, kind, depth + 1)
                if inner_size == length:
                    continue
            head = bytes(buffer[kept_from:start]) + _varint_bytes(key) + _varint_bytes(inner_size)
            pieces += (head, *inner)
            size += len(head) + inner_size
            kept_from = pos
        if pos > end:
            raise _broken(end, "a field reaches beyond its message")
        pieces.append(buffer[kept_from:end])
        return size + end - kept_from, pieces

    def cut(self, offset: int, length: int) -> tuple[int, list]:
        token = self.secret + len(self.cuts).to_bytes(8, "little")
        self.cuts[token] = Cut(offset, length)
        return len(token), [token]

    def skip(self, key: int, pos: int, end: int, depth: int) -> int:
        """The position after a field that has no length prefix."""
        wire_type = key & 7
        if wire_type == 0:
            return self.varint(pos, end)[1]
        if wire_type == 1:
            return pos + 8
        if wire_type == 5:
            return pos + 4
        if wire_type == 3:
            return self.skip_group(key >> 3, pos, end, depth + 1)
        raise _broken(pos, f"{wire_type} is no wire type here")

    def skip_group(self, number: int, pos: int, end: int, depth: int) -> int:
        if depth > MAX_DEPTH:
            raise ModelError(f"the model nests more than {MAX_DEPTH} protobuf messages")
        while True:
            key, pos = self.varint(pos, end)
            if key & 7 == 4:
                if key >> 3 != number:
                    raise _broken(pos, "a group ends that did not begin")
                return pos
            if key & 7 == 2:
                length, pos = self.varint(pos, end)
                pos += length
            else:
                pos = self.skip(key, pos, end, depth)
            if pos > end:
                raise _broken(end, "a field reaches beyond its message")


def _varint_bytes(value: int) -> bytes:
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _broken(pos: int, reason: str) -> ModelError:
    return ModelError(
        f"the model is not a whole ONNX file: at byte {pos}, {reason}",
        remedy="check that the file was downloaded or written completely",
    )
