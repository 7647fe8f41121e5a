"""ai.onnx.ml: scaling, encoding and looking up of features."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np

from rlx.errors import ModelError
from rlx.importer.ops.checks import rank_at_least
from rlx.importer.ops.ml_scores import rows_of
from rlx.importer.registry import FloatArray, IntArray, Texts, op
from rlx.importer.types import MapValue
from rlx.ir.build import DType, Value, as_int, product

_ML = "ai.onnx.ml"


def _by_feature(b, x: Value, table, name: str) -> Value:
    """A list of one number, or one a feature, as float32."""
    count = 0 if table is None else len(table)
    if count != 1:
        rank_at_least(x, 1)
        b.same_dim(x.shape[-1], count, f"the features and {name}")
    return b.const(np.asarray(table if count else np.zeros(0), np.float32))


@op("Scaler", since=1, domain=_ML)
def scaler(b, x, *, offset: FloatArray = None, scale: FloatArray = None):
    y = b.cast(x, DType.FLOAT32)
    if offset is not None:
        y = b.scalar("sub", y, _by_feature(b, x, offset, "offset"))
    return y if scale is None else b.scalar("mul", y, _by_feature(b, x, scale, "scale"))


@op("Normalizer", since=1, domain=_ML)
def normalizer(b, x, *, norm: Literal["MAX", "L1", "L2"] = "MAX"):
    rows_of(b, x)  # [C] or [N, C]
    y = b.cast(x, DType.FLOAT32)
    size = b.reduce({"MAX": "max", "L1": "l1", "L2": "l2"}[norm], y, (y.rank - 1,))
    zero = b.scalar("eq", size, b.like(0, size))
    return b.scalar("div", y, b.select(zero, b.like(1, size), size))


@op("Binarizer", since=1, domain=_ML)
def binarizer(b, x, *, threshold: float = 0.0):
    if x.dtype.is_integer:  # above a threshold is above its floor
        low = min(max(math.floor(threshold), -2**31), 2**31 - 1)
        return b.cast(b.scalar("gt", x, b.like(low, x)), x.dtype)
    return b.cast(b.scalar("gt", x, b.like(threshold, x)), x.dtype)


@op("Imputer", since=1, domain=_ML)
def imputer(b, x, *, imputed_value_floats: FloatArray = None, imputed_value_int64s: IntArray = None,
            replaced_value_float: float = 0.0, replaced_value_int64: int = 0):
    values = imputed_value_int64s if x.dtype.is_integer else imputed_value_floats
    old = replaced_value_int64 if x.dtype.is_integer else replaced_value_float
    if values is None or not len(values):
        raise ModelError("Imputer has no value of the input's kind to put in", got=str(x.type))
    if len(values) != 1:
        rank_at_least(x, 1)
        b.same_dim(x.shape[-1], len(values), "the features and imputed_value")
    missing = b.scalar("is_nan", x) if old != old else b.scalar("eq", x, b.like(old, x))
    return b.select(missing, b.const(np.asarray(values, x.dtype.numpy)), x)


@op("ArrayFeatureExtractor", since=1, domain=_ML)
def array_feature_extractor(b, x, indices):
    rank_at_least(x, 1)
    flat = b.reshape(indices, (product(indices.shape),))
    y = b.gather(x, flat, x.rank - 1)
    return b.unsqueeze(y, (0,)) if x.rank == 1 else y


@op("FeatureVectorizer", since=1, domain=_ML)
def feature_vectorizer(b, *xs, inputdimensions: IntArray = None):
    if not xs:
        raise ModelError("FeatureVectorizer has no inputs")
    rows = [b.cast(rows_of(b, x), DType.FLOAT32) for x in xs]
    if inputdimensions is not None and len(inputdimensions) != len(rows):
        raise ModelError("inputdimensions has one number for each input", expected=len(rows),
                         got=len(inputdimensions))
    for x, width in zip(rows, () if inputdimensions is None else inputdimensions.tolist()):
        b.same_dim(x.shape[1], width, "an input and inputdimensions")
    return b.concat(rows, 1)


# -- looking up ---------------------------------------------------------------------------------


def _matches(b, x: Value, keys: Value) -> Value:
    """bool [..., K]: which key each element is; NaN is itself here."""
    x = b.unsqueeze(x, (x.rank,))
    same = b.scalar("eq", x, keys)
    if keys.dtype.is_float and np.isnan(keys.const).any():
        same = b.scalar("or", same, b.scalar("and", b.scalar("is_nan", x),
                                             b.scalar("is_nan", keys)))
    return same


def looked_up(b, x: Value, keys: Value, values: Value, default: Value) -> Value:
    """The value beside the key that each element equals, or the default."""
    if as_int(keys.shape[0]) == 0:
        return b.expand(default, x.shape)
    same = b.cast(_matches(b, x, keys), DType.UINT8)
    place = b.reduce("argmax", same, (x.rank,), False)
    found = b.scalar("ne", b.reduce("max", same, (x.rank,), False), b.like(0, same))
    return b.select(found, b.gather(values, place, 0), default)


@op("LabelEncoder", since=2, domain=_ML)
def label_encoder(
    b, x, *, default_float: float = -0.0, default_int64: int = -1, default_string: str = "_Unused",
    default_tensor: Value = None, keys_floats: FloatArray = None, keys_int64s: IntArray = None,
    keys_strings: Texts = None, keys_tensor: Value = None, values_floats: FloatArray = None,
    values_int64s: IntArray = None, values_strings: Texts = None, values_tensor: Value = None,
):
    keys = _one_table(b, "keys", keys_floats, keys_int64s, keys_strings, keys_tensor)
    values = _one_table(b, "values", values_floats, values_int64s, values_strings, values_tensor)
    if keys.shape != values.shape:
        raise ModelError("keys and values differ in number", expected=str(keys.type),
                         got=str(values.type))
    if keys.dtype is not x.dtype:
        raise ModelError("the keys are of another type than the input", expected=str(x.type),
                         got=str(keys.type))
    if default_tensor is not None:
        default = b.reshape(default_tensor, ())
    else:
        given = {DType.STRING: default_string, DType.INT64: default_int64}
        other = 0 if values.dtype.is_integer else default_float
        default = b.const(np.array(given.get(values.dtype, other), values.dtype.numpy),
                          values.dtype)
    return looked_up(b, x, keys, values, default)


def _one_table(b, what: str, floats, ints, texts, tensor: Value | None) -> Value:
    given = [v for v in (floats, ints, texts, tensor) if v is not None]
    if len(given) != 1:
        raise ModelError(f"LabelEncoder takes one list of {what}", expected=1, got=len(given))
    if tensor is not None:
        return b.reshape(tensor, (tensor.const.size,))
    if texts is not None:
        return b.const(np.array(texts, object), DType.STRING)
    return b.const(given[0])


@op("LabelEncoder", since=1, domain=_ML)
def label_encoder_1(b, x, *, classes_strings: Texts, default_int64: int = -1,
                    default_string: str = "_Unused"):
    places = np.arange(len(classes_strings))
    return _mapped(b, x, places, classes_strings, default_int64, default_string)


@op("CategoryMapper", since=1, domain=_ML)
def category_mapper(b, x, *, cats_int64s: IntArray, cats_strings: Texts, default_int64: int = -1,
                    default_string: str = "_Unused"):
    if len(cats_int64s) != len(cats_strings):
        raise ModelError("cats_int64s and cats_strings differ in length",
                         expected=len(cats_int64s), got=len(cats_strings))
    return _mapped(b, x, cats_int64s, cats_strings, default_int64, default_string)


def _mapped(b, x: Value, numbers, texts, default_number: int, default_text: str) -> Value:
    """Strings to numbers, or numbers to strings, by what the input is."""
    numbers, texts = b.const(numbers, DType.INT64), b.const(np.array(texts, object), DType.STRING)
    if x.dtype is DType.STRING:
        return looked_up(b, x, texts, numbers, b.const(default_number, DType.INT64))
    return looked_up(b, b.cast(x, DType.INT64), numbers, texts,
                     b.const(np.array(default_text, object), DType.STRING))


@op("OneHotEncoder", since=1, domain=_ML)
def one_hot_encoder(b, x, *, cats_int64s: IntArray = None, cats_strings: Texts = None,
                    zeros: int = 1):
    if (cats_int64s is None) == (cats_strings is None):
        raise ModelError("OneHotEncoder takes either cats_int64s or cats_strings")
    if (x.dtype is DType.STRING) != (cats_strings is not None):
        raise ModelError("the categories are of another type than the input", got=str(x.type))
    if cats_strings is not None:
        keys = b.const(np.array(cats_strings, object), DType.STRING)
    else:
        x, keys = b.cast(x, DType.INT64), b.const(cats_int64s)
    if zeros:
        return b.cast(_matches(b, x, keys), DType.FLOAT32)
    # What is no category has no row, which is an error of the run.
    count = as_int(keys.shape[0])
    place = looked_up(b, x, keys, b.const(np.arange(count)), b.const(count, DType.INT64))
    return b.gather(b.const(np.eye(count, dtype=np.float32)), place, 0)


# -- maps, which exist at the borders of a model only -------------------------------------------


@op("ZipMap", since=1, domain=_ML)
def zip_map(b, x, *, classlabels_int64s: IntArray = None, classlabels_strings: Texts = None):
    if (classlabels_int64s is None) == (classlabels_strings is None):
        raise ModelError("ZipMap takes either classlabels_int64s or classlabels_strings")
    keys = classlabels_strings if classlabels_int64s is None else tuple(classlabels_int64s.tolist())
    rows = rows_of(b, x)
    b.same_dim(rows.shape[1], len(keys), "the columns and the keys of ZipMap")
    return MapValue(keys, rows)


@op("DictVectorizer", since=1, domain=_ML)
def dict_vectorizer(b, x, *, int64_vocabulary: IntArray = None, string_vocabulary: Texts = None):
    if not isinstance(x, MapValue) or not isinstance(x.keys, Value):
        raise ModelError("DictVectorizer takes a map that is an input of the model")
    if (int64_vocabulary is None) == (string_vocabulary is None):
        raise ModelError("DictVectorizer takes either int64_vocabulary or string_vocabulary")
    b.same_dim(x.keys.shape[0], x.values.shape[0], "the keys and values of a map")
    words = b.const(int64_vocabulary if string_vocabulary is None
                    else np.array(string_vocabulary, object))
    if words.dtype is not x.keys.dtype:
        raise ModelError("the vocabulary is of another type than the map's keys",
                         expected=x.keys.dtype.name.lower(), got=words.dtype.name.lower())
    # One more entry than the map has, for the words that it lacks.
    empty = b.const(np.array(["" if x.values.dtype is DType.STRING else 0], x.values.dtype.numpy),
                    x.values.dtype)
    same = b.cast(b.scalar("eq", b.unsqueeze(words, (1,)), x.keys), DType.UINT8)
    missing = b.const(np.zeros((len(words.const), 1), np.uint8))
    same = b.concat([same, missing], 1)
    place, found = b.reduce("argmax", same, (1,), False), b.reduce("max", same, (1,), False)
    given = b.gather(b.concat([x.values, empty], 0), place, 0)
    return b.select(b.scalar("ne", found, b.like(0, found)), given, b.reshape(empty, ()))
