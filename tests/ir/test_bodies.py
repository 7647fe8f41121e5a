"""The bodies of Map are the same in ir/bodies.py, kernels/params/map.h, kernels/map and in the
table of references."""

import re
from pathlib import Path

from rlx.ir.bodies import BODIES, MAX_RANK
from rlx.ir.reference.mapping import BODY_REFERENCES

ROOT = Path(__file__).parents[2]
PARAMS = (ROOT / "kernels/params/map.h").read_text()
ROW = re.compile(r'\{"(\w+)", MapTypes::(\w+), (\d+), (\d+), (\d+)')


def test_table_of_the_kernels():
    rows = {name: (int(inputs), int(outputs))
            for name, _, _, inputs, outputs in ROW.findall(PARAMS)}
    assert rows == {name: (body.inputs, body.outputs) for name, body in BODIES.items()}
    assert list(rows) == sorted(rows)


def test_limits():
    limits = dict(re.findall(r"(map_\w+) = (\d+)", PARAMS))
    assert int(limits["map_rank"]) == MAX_RANK
    assert all(b.inputs + b.outputs <= int(limits["map_operands"]) for b in BODIES.values())


def test_every_body_has_a_header_and_a_reference():
    headers = {path.stem for path in (ROOT / "kernels/map").glob("*.h")}
    assert headers == set(BODIES) == set(BODY_REFERENCES)
    for name in headers:
        text = (ROOT / f"kernels/map/{name}.h").read_text()
        assert re.search(rf"template <class T> RLX_FN void {name}\(const params::Map& p", text)
