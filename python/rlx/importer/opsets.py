"""Checks IR version and operator set imports; knows which versions rlx was written for."""

from __future__ import annotations

from collections.abc import Iterable

from rlx.errors import ModelError, UnsupportedError
from rlx.importer.protos import ModelProto, OperatorSetIdProto

NEWEST_IR = 14
# The operator sets of the ONNX standard; other domains have no versions that rlx must tell apart.
NEWEST_OPSETS = {"": 28, "ai.onnx.ml": 5, "ai.onnx.preview": 1, "ai.onnx.preview.training": 1}
# Before this IR version, initializers are constants that are listed among the inputs.
IR_WITH_DEFAULTS = 4
# Before this one, a model imports no operator sets and means the first.
IR_WITH_OPSETS = 3


def domain_name(domain: str) -> str:
    """The domain as rlx spells it: the standard one is ""."""
    return "" if domain == "ai.onnx" else domain


def model_opsets(model: ModelProto) -> dict[str, int]:
    """Domain -> version that a model imports, checked, together with its IR version."""
    ir_version = model.ir_version
    if ir_version < 1:
        raise ModelError(
            "the model states no IR version: it is no ONNX model, or damaged", got=str(ir_version)
        )
    if ir_version > NEWEST_IR:
        raise UnsupportedError(
            f"the model has IR version {ir_version}, rlx knows up to {NEWEST_IR}",
            remedy="export for an older ONNX version, or update rlx",
        )
    if not model.opset_import and ir_version < IR_WITH_OPSETS:
        return {"": 1}
    if not model.opset_import:
        raise ModelError("the model imports no operator set", expected="at least one opset_import")
    return read_imports(model.opset_import)


def read_imports(imports: Iterable[OperatorSetIdProto]) -> dict[str, int]:
    """Domain -> version of a list of imports, checked."""
    versions: dict[str, int] = {}
    for entry in imports:
        domain, version = domain_name(entry.domain), entry.version
        shown = domain or "ai.onnx"
        if not isinstance(domain, str) or version < 1:
            raise ModelError(f"the import of operator set {shown!r} has version {version}")
        newest = NEWEST_OPSETS.get(domain, version)
        if version > newest:
            raise UnsupportedError(
                f"the model uses operator set {shown} {version}, rlx knows up to {newest}",
                domain=shown,
                opset=version,
                remedy=f"export with opset {newest} or older, or update rlx",
            )
        if versions.setdefault(domain, version) != version:
            raise ModelError(
                f"operator set {shown} is imported as version {versions[domain]} and {version}"
            )
    return versions


def require_domain(imports: dict[str, int], domain: str, op_type: str, node: str) -> None:
    """Check that a node's domain is imported. Custom domains that are not are taken as version 1,
    since exporters forget them and they have no other version."""
    if domain in imports:
        return
    if domain in NEWEST_OPSETS:
        raise ModelError(
            f"the node's operator set {domain or 'ai.onnx'} is not imported by the model",
            node=node,
            op=op_type,
            remedy=f"add an opset_import for {domain or 'ai.onnx'!r}",
        )
    imports[domain] = 1
