"""What cannot leave its process says so, and what to do instead; errors and facts can leave it."""

import copy
import pickle
import re

import numpy as np
import onnx
import pytest

import rlx
from rlx.ort import InferenceSession
from rlx.cuda.kernel import Kernel
from tests.api.toys import F, model, node, value

GROWING = model([node("Concat", "past x", "present", axis=0)],
                [value("past", F, ["p", 2]), value("x", F, ["n", 2])],
                [value("present", F, ["q", 2])])


@pytest.mark.parametrize("leave", [pickle.dumps, copy.copy, copy.deepcopy],
                         ids=["pickle", "copy", "deepcopy"])
def test_what_holds_compiled_code_stays(leave):
    session = rlx.load(GROWING, device="cpu")
    state = session.state({"past": "present"}, axis=0, capacity=8)
    for held, told in ((session, "^Session .* load it there"), (state, "^State .* for a state"),
                       (InferenceSession(GROWING.SerializeToString()), "^InferenceSession "),
                       (Kernel.__new__(Kernel), "^Kernel .* compile it there")):
        with pytest.raises(TypeError, match=told):
            leave(held)
    x = np.ones((1, 2), np.float32)
    np.testing.assert_array_equal(session.run({"past": x, "x": x})["present"], np.ones((2, 2)))


def test_errors_and_infos_leave():
    session = rlx.load(GROWING, device="cpu")
    assert pickle.loads(pickle.dumps(session.inputs)) == session.inputs
    with pytest.raises(rlx.InputError) as caught:
        session.run({"past": np.ones((1, 2)), "x": np.ones((1, 2), np.float32)})
    again = pickle.loads(pickle.dumps(caught.value))
    assert str(again) == str(caught.value) and again.expected == caught.value.expected


def test_reprs_are_short_and_name_no_folder(tmp_path):
    path = tmp_path / "grow.onnx"
    onnx.save(GROWING, path)
    with rlx.load(path, device="cpu") as session:
        state = session.state({"past": "present"}, axis=0, capacity=8)
        x = np.ones((1, 2), np.float32)
        profile = session.profile({"past": x, "x": x}, 3)
        assert repr(session) == "<Session 'grow.onnx' on cpu: past float32[p, 2], x float32[n, 2]>"
        assert repr(state) == "<State of 'grow.onnx' on cpu: past>"
        assert re.fullmatch(r"<Profile of 'grow.onnx' on cpu: 3 runs, median [0-9.e-]+ ms>",
                            repr(profile))
    assert "'grow.onnx' on cpu, closed" in repr(session)


def test_a_repr_of_many_inputs_is_cut():
    names = [f"x{k}" for k in range(9)]
    wide = model([node("Sum", " ".join(names), "y")], [value(n, F, [None, 0]) for n in names],
                 [value("y")])
    with rlx.load(wide, device="cpu") as session:
        assert repr(session) == ("<Session 'toy' on cpu: x0 float32[?, 0], x1 float32[?, 0], "
                                 "x2 float32[?, 0] and 6 more>")
