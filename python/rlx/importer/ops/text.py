"""Strings: casts, StringNormalizer, StringConcat, StringSplit, RegexFullMatch, TfIdfVectorizer."""

from __future__ import annotations

from typing import Literal

import numpy as np

from rlx.errors import ModelError
from rlx.importer.ops.checks import in_range, rank_at_least
from rlx.importer.registry import FloatArray, IntArray, Texts, op
from rlx.ir.build import DType, Host, TensorType, Value, apply, as_int


_WIDEST = 1 << 26  # columns of TfIdfVectorizer's result


def host(b, function: str, inputs, types, **attributes) -> list[Value]:
    """A host step; None among the dims of a type is known once the step has run."""
    outputs = []
    for t in types:
        value = Value(t)
        value.type = TensorType(t.dtype, tuple(value.dim(k) if d is None else d
                                               for k, d in enumerate(t.shape)))
        outputs.append(value)
    return b.stage(Host(function, tuple(attributes.items())), list(inputs), outputs)


def require_text(x: Value, what: str = "the input") -> None:
    """ModelError unless x holds strings."""
    if x.dtype is not DType.STRING:
        raise ModelError(f"{what} must hold strings", expected="string", got=str(x.type))


def cast_text(b, x: Value, dtype: DType) -> Value:
    """Cast from or to string."""
    if x.dtype is DType.STRING:
        return host(b, "parse", [x], [TensorType(dtype, x.shape)], dtype=dtype.numpy)[0]
    return host(b, "format", [x], [TensorType(DType.STRING, x.shape)])[0]


@op("StringNormalizer", since=10)
def string_normalizer(b, x, *, case_change_action: Literal["NONE", "LOWER", "UPPER"] = "NONE",
                      is_case_sensitive: int = 0, locale: str = "", stopwords: Texts = ()):
    require_text(x)
    if x.rank not in (1, 2):
        raise ModelError("StringNormalizer takes [C] or [1, C]", got=str(x.type))
    if x.rank == 2:
        b.same_dim(x.shape[0], 1, "the first dim of StringNormalizer's input")
    shape = (None,) if x.rank == 1 else (1, None)
    return host(b, "normalise", [x], [TensorType(DType.STRING, shape)],
                action=case_change_action, case_sensitive=bool(is_case_sensitive),
                stopwords=stopwords)


@op("StringConcat", since=20)
def string_concat(b, x, y):
    require_text(x, "the left input")
    require_text(y, "the right input")
    return host(b, "concat", [x, y], [TensorType(DType.STRING, b.broadcast(x.shape, y.shape))])


@op("StringSplit", since=20)
def string_split(b, x, *, delimiter: str = "", maxsplit: int | None = None):
    require_text(x)
    if maxsplit is not None:
        in_range("maxsplit", maxsplit, 0)
    types = [TensorType(DType.STRING, (*x.shape, None)), TensorType(DType.INT64, x.shape)]
    return host(b, "split", [x], types, delimiter=delimiter, maxsplit=maxsplit)


@op("RegexFullMatch", since=20)
def regex_full_match(b, x, *, pattern: str):
    require_text(x)
    return host(b, "full_match", [x], [TensorType(DType.BOOL, x.shape)], pattern=pattern)


def unique_text(b, x: Value, axis: int | None) -> list[Value]:
    """Unique of strings, sorted."""
    axis = None if axis is None else b.axis(axis, x.rank)
    y = (None,) if axis is None else tuple(None if k == axis else d for k, d in enumerate(x.shape))
    vector = TensorType(DType.INT64, (None,))
    return host(b, "unique", [x], [TensorType(DType.STRING, y), vector, vector, vector], axis=axis)


@op("TfIdfVectorizer", since=9)
def tfidf_vectorizer(b, x, *, max_gram_length: int, max_skip_count: int, min_gram_length: int,
                     mode: Literal["TF", "IDF", "TFIDF"], ngram_counts: IntArray,
                     ngram_indexes: IntArray, pool_int64s: IntArray = None,
                     pool_strings: Texts = None, weights: FloatArray = None):
    """Counts for each n-gram of the pool the places where it stands, with 0 to max_skip_count
    tokens left out between its own; then one column for each n-gram by ngram_indexes."""
    if (pool_int64s is None) == (pool_strings is None):
        raise ModelError("TfIdfVectorizer takes either pool_int64s or pool_strings")
    _check_lengths(x, min_gram_length, max_gram_length, max_skip_count)
    pool = np.asarray(pool_int64s) if pool_strings is None else np.array(pool_strings, object)
    rows = b.unsqueeze(x, (0,)) if x.rank == 1 else x
    rows = rows if pool_strings is not None else b.cast(rows, DType.INT64)
    columns, total = [], 0
    for length, grams in _grams(pool, ngram_counts):
        total += len(grams)
        if min_gram_length <= length <= max_gram_length and len(grams):
            columns.append(_counts(b, rows, grams, 0 if length == 1 else max_skip_count))
        elif len(grams):
            columns.append(b.fill((rows.shape[0], len(grams)), 0.0, DType.FLOAT32))
    if len(ngram_indexes) != total:
        raise ModelError("ngram_indexes has one index for each n-gram", expected=total,
                         got=len(ngram_indexes))
    for i in (ngram_indexes.min(initial=0), ngram_indexes.max(initial=0)):
        in_range("an entry of ngram_indexes", int(i), 0, _WIDEST)
    found = b.concat(columns, 1) if columns else b.fill((rows.shape[0], 0), 0.0, DType.FLOAT32)
    y = _placed(b, _weighted(b, found, mode, weights), rows, ngram_indexes)
    return b.squeeze(y, (0,)) if x.rank == 1 else y


def _check_lengths(x: Value, least: int, most: int, skips: int) -> None:
    rank_at_least(x, 1)
    if x.rank > 2:
        raise ModelError("TfIdfVectorizer takes [C] or [N, C]", got=str(x.type))
    in_range("min_gram_length", least, 1)
    in_range("max_gram_length", most, least)
    in_range("max_skip_count", skips, 0)


def _grams(pool: np.ndarray, counts: np.ndarray):
    """(length, n-grams [G, length]): the pool by ngram_counts, where each length begins."""
    starts = [*counts.tolist(), pool.size]
    for length, (start, end) in enumerate(zip(starts, starts[1:]), 1):
        if not 0 <= start <= end or (end - start) % length:
            raise ModelError("ngram_counts does not cut the pool into n-grams", got=starts[:-1],
                             expected=f"n-grams of {length} from {start} to {end}")
        yield length, pool[start:end].reshape(-1, length)


def _counts(b, rows: Value, grams: np.ndarray, skips: int) -> Value:
    """float32 [N, G]: how often each n-gram stands in each row."""
    length, total = grams.shape[1], None
    dtype = rows.dtype
    for skip in range(skips + 1):
        span = (length - 1) * (skip + 1)
        places = apply("max", 0, apply("sub", rows.shape[1], span))
        if as_int(places) == 0:
            break
        match = None
        for k in range(length):
            start = apply("min", k * (skip + 1), rows.shape[1])
            token = b.unsqueeze(b.narrow(rows, 1, start, places), (2,))
            same = b.scalar("eq", token, b.const(grams[:, k].reshape(1, 1, -1), dtype))
            match = same if match is None else b.scalar("and", match, same)
        count = b.reduce("sum", b.cast(match, DType.FLOAT32), (1,), False)
        total = count if total is None else b.scalar("add", total, count)
    return total if total is not None else b.fill(
        (rows.shape[0], len(grams)), 0.0, DType.FLOAT32)


def _weighted(b, found: Value, mode: str, weights) -> Value:
    if mode != "TF" and weights is None:
        weights = np.ones(as_int(found.shape[1]), np.float32)
    if mode != "TF" and len(weights) != as_int(found.shape[1]):
        raise ModelError("weights has one weight for each n-gram", got=len(weights),
                         expected=as_int(found.shape[1]))
    if mode == "TFIDF":
        return b.scalar("mul", found, b.const(weights[None], DType.FLOAT32))
    if mode == "IDF":
        there = b.scalar("gt", found, b.like(0, found))
        return b.select(there, b.const(weights[None], DType.FLOAT32), b.like(0, found))
    return found


def _placed(b, found: Value, rows: Value, indexes: np.ndarray) -> Value:
    """Columns in the order of ngram_indexes; an index that none has gives zeros."""
    width = int(indexes.max(initial=-1)) + 1
    source = np.full(width, len(indexes), np.int64)
    source[indexes] = np.arange(len(indexes))
    if len(set(indexes.tolist())) != len(indexes):
        raise ModelError("ngram_indexes repeats an index")
    padded = b.concat([found, b.fill((rows.shape[0], 1), 0.0, DType.FLOAT32)], 1)
    return b.gather(padded, b.const(source), 1)
