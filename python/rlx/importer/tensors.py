"""TensorProto and SparseTensorProto to Weight: every encoding of the ONNX text, checked."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence

import numpy as np

from rlx.errors import MemoryLimitError, ModelError, UnsupportedError, context
from rlx.importer.external import ExternalData
from rlx.importer.loaded import Weight
from rlx.importer.protos import SparseTensorProto, TensorProto
from rlx.importer.source import Source
from rlx.importer.wire import Cut
from rlx.ir.packing import bits_of, pack, packed_nbytes
from rlx.ir.types import DType

_DTYPES = {int(dtype): dtype for dtype in DType}
_MAX_RANK = 64  # NumPy's
_MAX_BYTES = 2**63 - 1

# The typed field of each element type, and the NumPy type that an entry is cut down to.
_INT32_TYPES = (
    DType.INT32, DType.INT16, DType.INT8, DType.INT4, DType.INT2, DType.UINT16, DType.UINT8,
    DType.UINT4, DType.UINT2, DType.BOOL, DType.FLOAT16, DType.BFLOAT16, DType.FLOAT8E4M3FN,
    DType.FLOAT8E4M3FNUZ, DType.FLOAT8E5M2, DType.FLOAT8E5M2FNUZ, DType.FLOAT8E8M0,
    DType.FLOAT4E2M1,
)
_FIELDS = {
    DType.FLOAT32: ("float_data", "<f4"),
    DType.COMPLEX64: ("float_data", "<f4"),
    DType.FLOAT64: ("double_data", "<f8"),
    DType.COMPLEX128: ("double_data", "<f8"),
    DType.INT64: ("int64_data", "<i8"),
    DType.UINT64: ("uint64_data", "<u8"),
    DType.UINT32: ("uint64_data", "<u4"),
    DType.STRING: ("string_data", "O"),
    **{t: ("int32_data", f"<u{max(1, bits_of(t) // 8)}") for t in _INT32_TYPES},
}
_ENTRIES = {
    "float_data": "f4", "double_data": "f8", "int32_data": "i4", "int64_data": "i8",
    "uint64_data": "u8", "string_data": "O",
}


class TensorReader:
    """Decodes the tensors of one model; knows where its cut and external bytes are."""

    def __init__(self, source: Source | None, cuts: dict[bytes, Cut], external: ExternalData):
        self.source, self.cuts, self.external = source, cuts, external
        self.lent: dict[bytes, Weight] = {}

    def lend(self, weight: Weight) -> TensorProto:
        """A stand-in without data, from which this reader's `weight` makes the Weight again."""
        token = os.urandom(24)
        self.lent[token] = weight
        return TensorProto(
            name=weight.name, dims=weight.dims, data_type=weight.dtype, raw_data=token
        )

    def weight(self, tensor: TensorProto, what: str = "tensor") -> Weight:
        """The tensor, checked. `what` says in errors what it is: an initializer, an attribute..."""
        if self.lent and tensor.raw_data in self.lent:
            return self.lent[tensor.raw_data]
        with context(f"reading {what}", repr(tensor.name)):
            dtype = element_type(tensor.data_type)
            dims = _dims(tensor.dims, dtype)
            if tensor.HasField("segment"):
                raise UnsupportedError("the tensor is one segment of a larger one")
            return self._read(tensor, dtype, dims)

    def _read(self, tensor: TensorProto, dtype: DType, dims: tuple[int, ...]) -> Weight:
        count = math.prod(dims)
        nbytes = packed_nbytes(count, dtype)
        external = tensor.data_location == TensorProto.EXTERNAL
        if external or tensor.HasField("raw_data"):
            if dtype is DType.STRING:
                raise ModelError("strings stand in string_data, not in raw or external bytes")
            source, offset, length, mapped = (
                self._external(tensor, nbytes) if external else self._raw(tensor)
            )
            _check_size(nbytes, length, "bytes", dims)
            data = _true_or_false(source.view(offset, nbytes), dtype)
            return Weight(tensor.name, dtype, dims, data, source.key(offset, nbytes), mapped)
        return Weight(tensor.name, dtype, dims, _typed(tensor, dtype, dims, count))

    def _external(self, tensor: TensorProto, nbytes: int) -> tuple[Source, int, int, bool]:
        source, offset = self.external.find(tensor, nbytes)
        return source, offset, nbytes, True

    def _raw(self, tensor: TensorProto) -> tuple[Source, int, int, bool]:
        filled = [name for name in _ENTRIES if len(getattr(tensor, name))]
        if filled:
            raise ModelError(f"the tensor has both raw_data and {filled[0]}")
        raw = tensor.raw_data
        cut = self.cuts.get(raw)
        if cut is None:
            return Source(raw), 0, len(raw), False
        return self.source, cut.offset, cut.nbytes, self.source.identity is not None

    def sparse(self, tensor: SparseTensorProto, what: str = "tensor") -> Weight:
        """A sparse tensor made dense: zeros (or empty strings) but at its indices."""
        values = self.weight(tensor.values, f"values of sparse {what}")
        indices = self.weight(tensor.indices, f"indices of sparse {what}")
        with context(f"reading sparse {what}", repr(values.name)):
            dims = _dims(tensor.dims, values.dtype)
            at = _flat_indices(values, indices, dims)
            if packed_nbytes(math.prod(dims), values.dtype) > _physical_memory():
                raise MemoryLimitError(
                    f"the dense form of {list(dims)} exceeds the machine's memory")
            return _dense(values, at, dims)


def _dense(values: Weight, at: np.ndarray, dims: tuple[int, ...]) -> Weight:
    fill = "" if values.dtype is DType.STRING else 0
    dense = np.full(math.prod(dims), fill, values.array.dtype)
    dense[at] = values.array
    if values.packed:
        dense = pack(dense, values.dtype)
    data = dense if values.dtype is DType.STRING else dense.view(np.uint8)
    data.flags.writeable = False
    return Weight(values.name, values.dtype, dims, data)


def _flat_indices(values: Weight, indices: Weight, dims: tuple[int, ...]) -> np.ndarray:
    """Row-major positions of a sparse tensor's values, from either of the two index forms."""
    count, rank = values.size, len(dims)
    if len(values.dims) != 1 or indices.dtype is not DType.INT64:
        raise ModelError("sparse values must have rank 1 and sparse indices be int64")
    if indices.dims not in ((count,), (count, rank)):
        raise ModelError(
            "sparse indices do not fit the values",
            expected=f"shape [{count}] or [{count}, {rank}]",
            got=f"shape {list(indices.dims)}",
        )
    at = indices.array
    limits = np.array(dims if at.ndim == 2 else [math.prod(dims)], np.int64)
    if count and ((at.reshape(count, -1) < 0) | (at.reshape(count, -1) >= limits)).any():
        raise ModelError(f"a sparse index lies outside the shape {list(dims)}")
    if at.ndim == 2:
        at = np.ravel_multi_index(tuple(at.T), dims) if count else np.empty(0, np.int64)
    if np.unique(at).size != count:
        raise ModelError("a sparse index is listed twice")
    return at


def element_type(number: int) -> DType:
    """The DType of a TensorProto.DataType number, checked."""
    dtype = _DTYPES.get(number)
    if dtype is not None:
        return dtype
    if number in TensorProto.DataType.values() and number != TensorProto.UNDEFINED:
        name = TensorProto.DataType.Name(number)
        raise UnsupportedError(f"rlx does not have the element type {name}")
    raise ModelError(f"there is no element type {number}")


def _dims(given: Sequence[int], dtype: DType) -> tuple[int, ...]:
    dims = tuple(given)
    if len(dims) > _MAX_RANK:
        raise UnsupportedError(f"the tensor has rank {len(dims)}, more than {_MAX_RANK}")
    largest = bits_of(dtype)
    for dim in dims:
        if dim < 0:
            raise ModelError(f"the tensor has a negative dim: {list(dims)}")
        largest *= dim or 1
    if largest > 8 * _MAX_BYTES:
        raise ModelError(f"the tensor's dims overflow: {list(dims)}")
    return dims


def _typed(tensor: TensorProto, dtype: DType, dims: tuple, count: int) -> np.ndarray:
    """The bytes of a tensor kept in one of the typed fields."""
    name, entry = _FIELDS[dtype]
    for other in _ENTRIES:
        if other != name and len(getattr(tensor, other)):
            raise ModelError(
                f"a tensor of {dtype.name.lower()} has its data in {other}, not {name}")
    entries = getattr(tensor, name)
    expected = count
    if dtype in (DType.COMPLEX64, DType.COMPLEX128):
        expected = 2 * count
    elif bits_of(dtype) < 8:
        expected = packed_nbytes(count, dtype)
    _check_size(expected, len(entries), f"entries of {name}", dims)
    if dtype is DType.STRING:
        data = np.empty(count, object)
        data[:] = [decode_text(item) for item in entries]
    else:
        # Small types stand bit by bit in the low end of a wider entry.
        values = np.asarray(entries, _ENTRIES[name]).astype(entry)
        data = _true_or_false(values.view(np.uint8), dtype)
    data.flags.writeable = False
    return data


def decode_text(data: bytes) -> str:
    """UTF-8 to str; ModelError if it is not."""
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ModelError(f"a string is not UTF-8: {data[:40]!r}") from error


def _true_or_false(data: np.ndarray, dtype: DType) -> np.ndarray:
    """Bools as bytes 0 and 1, whatever non-zero bytes a writer used for true."""
    if dtype is not DType.BOOL or not data.size or data.max() <= 1:
        return data
    fixed = (data != 0).view(np.uint8)
    fixed.flags.writeable = False
    return fixed


def _check_size(expected: int, got: int, unit: str, dims: tuple[int, ...]) -> None:
    if got != expected:
        raise ModelError(
            f"the tensor has too {'much' if got > expected else 'little'} data for its dims",
            expected=f"{expected} {unit} for {list(dims)}",
            got=str(got),
        )


def _physical_memory() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
