"""Einsum: operands are joined one by one; a pair that contracts becomes a matrix product."""

from __future__ import annotations

from rlx.errors import ModelError
from rlx.importer.registry import op
from rlx.ir.build import Value, product


@op("Einsum", since=12)
def einsum(b, *xs, equation: str):
    terms, result = _parse(equation, xs)
    operands = [_unique(b, x, t) for x, t in zip(xs, terms)]
    value, term = operands[0]
    for k in range(1, len(operands)):
        later = set(result).union(*(t for _, t in operands[k + 1:]))
        value, term = _join(b, value, term, *operands[k], later)
    gone = tuple(i for i, c in enumerate(term) if c not in result)
    if gone:
        value = b.reduce("sum", value, gone, False)
        term = [c for c in term if c in result]
    return b.transpose(value, [term.index(c) for c in result])


def _parse(equation: str, xs) -> tuple[list[list[str]], list[str]]:
    """Labels of each operand and of the result; "..." becomes labels of its own."""
    left, arrow, right = equation.replace(" ", "").partition("->")
    parts = left.split(",")
    if len(parts) != len(xs):
        raise ModelError("the equation names another number of operands", expected=len(xs),
                         got=len(parts))
    terms = [_labels(part, x.rank) for part, x in zip(parts, xs)]
    wide = max((sum(c.startswith(".") for c in t) for t in terms), default=0)
    dots = [f".{k}" for k in range(wide, 0, -1)]
    if arrow:
        before, _, after = right.partition("...")
        result = [*before, *(dots if "..." in right else []), *after]
    else:
        letters = [c for t in terms for c in t if not c.startswith(".")]
        result = dots + sorted(c for c in set(letters) if letters.count(c) == 1)
    unknown = [c for c in result if not any(c in term for term in terms)]
    if unknown or len(set(result)) < len(result):
        raise ModelError("a label of the result is repeated or in no operand", got=equation)
    return terms, result


def _labels(part: str, rank: int) -> list[str]:
    before, dots, after = part.partition("...")
    wide = rank - len(before) - len(after)
    if wide < 0 or (wide and not dots):
        raise ModelError("the equation does not fit an operand's rank", expected=part, got=rank)
    return [*before, *(f".{k}" for k in range(wide, 0, -1)), *after]


def _unique(b, x: Value, term: list[str]) -> tuple[Value, list[str]]:
    """x with repeated labels replaced by their diagonal."""
    while len(set(term)) < len(term):
        c = next(d for d in term if term.count(d) > 1)
        i, j = [k for k, d in enumerate(term) if d == c][:2]
        b.same_dim(x.shape[i], x.shape[j], f"the dims of {c!r}")
        same = b.scalar("eq", b.iota(x.shape, i), b.iota(x.shape, j))
        x = b.reduce("sum", b.select(same, x, b.like(0, x)), (j,), False)
        term = term[:j] + term[j + 1:]
    return x, term


def _join(b, x: Value, tx: list[str], y: Value, ty: list[str], later: set[str]):
    """The product of two operands, summed over labels that nobody needs later."""
    for side, other in ((0, set(ty)), (1, set(tx))):
        value, term = (x, tx) if side == 0 else (y, ty)
        gone = tuple(i for i, c in enumerate(term) if c not in later and c not in other)
        if gone:
            value = b.reduce("sum", value, gone, False)
            term = [c for c in term if c in later or c in other]
            x, tx, y, ty = (value, term, y, ty) if side == 0 else (x, tx, value, term)
    batch = [c for c in tx if c in ty and c in later]
    inner = [c for c in tx if c in ty and c not in later]
    rows, columns = [c for c in tx if c not in ty], [c for c in ty if c not in tx]
    dims = {c: d for t, v in ((ty, y), (tx, x)) for c, d in zip(t, v.shape)}
    for c in batch + inner:
        d = b.broadcast((x.shape[tx.index(c)],), (y.shape[ty.index(c)],))[0]
        dims[c] = d
    left = _arrange(b, x, tx, [batch, rows, inner], dims)
    right = _arrange(b, y, ty, [batch, inner, columns], dims)
    z = b.matmul(left, right)
    order = batch + rows + columns
    return b.reshape(z, tuple(dims[c] for c in order)), order


def _arrange(b, x: Value, term: list[str], groups: list[list[str]], dims: dict) -> Value:
    """x transposed to the groups' order, the last two groups flattened to one dim each."""
    order = [c for g in groups for c in g]
    x = b.transpose(x, [term.index(c) for c in order])
    x = b.expand(x, tuple(dims[c] for c in order))
    batch, first, second = groups
    return b.reshape(x, (*(dims[c] for c in batch), product(dims[c] for c in first),
                         product(dims[c] for c in second)))
