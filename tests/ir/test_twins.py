"""ir/prims.py and cpp/program/prims.h say the same: fields, kinds, scalar functions, types."""

from dataclasses import fields

import pytest

from rlx import _core
from rlx.ir import prims
from rlx.ir.scalars import SCALAR_OPS
from rlx.ir.types import DType
from rlx.ir.verify_prims import KINDS

STRUCTS = (*prims.PRIMS, prims.AxisMap, prims.MovePart, prims.RegionOp)


def bound_fields(struct) -> set[str]:
    return {name for name, member in vars(struct).items() if isinstance(member, property)}


@pytest.mark.parametrize("kind", STRUCTS, ids=lambda kind: kind.__name__)
def test_fields(kind):
    bound = getattr(_core.prims, kind.__name__)
    assert bound_fields(bound) == {f.name for f in fields(kind)}


def test_no_struct_on_one_side_only():
    bound = {name for name, item in vars(_core.prims).items() if isinstance(item, type)}
    assert bound == {kind.__name__ for kind in STRUCTS}


def test_kinds():
    ours = {(kind.__name__, field): names for kind, by_field in KINDS.items()
            for field, names in by_field.items()}
    assert ours == _core.prims.KINDS


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_kinds_are_those_documented(kind):
    for names in KINDS[kind].values():
        for name in names:
            assert name in kind.__doc__, f"{kind.__name__} does not document {name!r}"


def test_kinds_are_set_and_read_as_strings():
    for (struct, field), names in _core.prims.KINDS.items():
        made = getattr(_core.prims, struct)()
        for name in names:
            setattr(made, field, name)
            assert getattr(made, field) == name
        with pytest.raises(ValueError, match="no such kind"):
            setattr(made, field, "nonsense")


def test_scalar_functions():
    assert _core.prims.SCALAR_OPS == {name: op.arity for name, op in SCALAR_OPS.items()}


def test_element_types():
    value = _core.program.Value()
    for dtype in DType:
        value.dtype = dtype
        assert value.dtype == dtype
        assert _core.program.dtype_name(dtype) == dtype.name.lower()
        assert _core.program.dtype_size(dtype) == dtype.itemsize
    with pytest.raises(ValueError, match="no such element type"):
        value.dtype = max(DType) + 1


@pytest.mark.parametrize("op, dtype, imm, expected", [
    ("const", DType.FLOAT16, 0.5, 0.5),
    ("const", DType.UINT64, 2**64 - 1, 2**64 - 1),
    ("const", DType.INT64, -(2**63), -(2**63)),
    ("const", DType.BOOL, True, 1),
    ("const", DType.FLOAT32, 3, 3.0),
    ("cast", DType.FLOAT8E5M2, 1, 1),
    ("dim", DType.INT64, 5, 5),
])
def test_region_op_immediates(op, dtype, imm, expected):
    made = _core.prims.RegionOp()
    made.op, made.dtype, made.imm = op, dtype, imm
    assert made.imm == expected


def test_region_op_names():
    made = _core.prims.RegionOp()
    for name in ("load", "const", "index", "dim", "cast", *SCALAR_OPS):
        made.op = name
        assert made.op == name
    with pytest.raises(ValueError, match="no such region op"):
        made.op = "scalar"
