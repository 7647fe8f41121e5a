"""rlx run: what is fed, and what is shown."""

import json
import re
import struct
import wave

import numpy as np
import onnx
import pytest

from tests.api.toys import F, model, node, value


def identity(path, shape, dtype=F):
    """A model that gives its input back."""
    onnx.save(model([node("Identity", "x", "y")], [value("x", dtype, shape)],
                    [value("y", dtype, shape)]), path)
    return path


def ran(rlx, tmp_path, *arguments):
    """The outputs that the command wrote."""
    rlx("run", *arguments, "--output", tmp_path / "out.npz")
    return dict(np.load(tmp_path / "out.npz"))


def test_the_three_is_a_three(rlx, rlx_json, digits, three, tmp_path):
    labels = tmp_path / "labels.txt"
    labels.write_text("\n".join("zero one two three four five six seven eight nine".split()))
    options = ("run", digits, "--input", f"image={three}", "--top-k", 2, "--labels", labels)
    text = rlx(*options).stdout
    assert re.search(r"1 +│ +3 │ three │ +0.9999", text)
    top = rlx_json(*options)["outputs"][0]["top"][0]
    assert [len(top), top[0]["index"], top[0]["label"]] == [2, 3, "three"]


def test_random_inputs_follow_the_seed_and_dims(rlx, mlp, tmp_path):
    one = ran(rlx, tmp_path, mlp, "--dim", "n=3", "--seed", 1)["y"]
    assert one.shape == (3, 4)
    assert np.array_equal(one, ran(rlx, tmp_path, mlp, "--dim", "n=3", "--seed", 1)["y"])
    assert not np.array_equal(one, ran(rlx, tmp_path, mlp, "--dim", "n=3", "--seed", 2)["y"])
    assert ran(rlx, tmp_path, mlp, "--shape", "x=5x8")["y"].shape == (5, 4)


def test_arrays_and_literals(rlx, tmp_path):
    path = identity(tmp_path / "i.onnx", ["n"])
    np.save(tmp_path / "x.npy", np.float32([1, 2, 3]))
    np.savez(tmp_path / "x.npz", x=np.float32([4, 5]))
    for given, expected in [("x.npy", [1, 2, 3]), ("x.npz", [4, 5])]:
        for text in (str(tmp_path / given), f"x={tmp_path / given}"):
            assert ran(rlx, tmp_path, path, "--input", text)["y"].tolist() == expected
    assert ran(rlx, tmp_path, path, "--input", "x=[7, 8]")["y"].tolist() == [7, 8]
    assert ran(rlx, tmp_path, path, "--input", "x=9")["y"].tolist() == [9]


def test_a_sound(rlx, tmp_path):
    with wave.open(str(tmp_path / "s.wav"), "wb") as file:
        file.setnchannels(2), file.setsampwidth(2), file.setframerate(16000)
        file.writeframes(struct.pack("<6h", 16384, 0, -32768, -32768, 8192, 8192))
    given = f"x={tmp_path / 's.wav'}"
    free = ran(rlx, tmp_path, identity(tmp_path / "f.onnx", [1, "n"]), "--input", given)["y"]
    assert free.tolist() == [[0.25, -1, 0.25]]
    longer = ran(rlx, tmp_path, identity(tmp_path / "l.onnx", [1, 5]), "--input", given)["y"]
    assert longer.tolist() == [[0.25, -1, 0.25, 0, 0]]


def test_a_picture(rlx, tmp_path):
    image = pytest.importorskip("PIL.Image")
    pixels = np.zeros((2, 4, 3), np.uint8)
    pixels[..., 0] = 255
    image.fromarray(pixels).save(tmp_path / "red.png")
    given = ("--input", f"x={tmp_path / 'red.png'}")
    first = ran(rlx, tmp_path, identity(tmp_path / "f.onnx", [1, 3, "h", "w"]), *given)["y"]
    assert first.shape == (1, 3, 2, 4) and (first[0, 0] == 1).all() and not first[0, 1:].any()
    last = ran(rlx, tmp_path, identity(tmp_path / "l.onnx", ["n", 8, 8, 3]), *given,
               "--mean", "0.5", "--std", "0.5,1,1")["y"]
    assert last.shape == (1, 8, 8, 3) and (last == np.float32([1, -0.5, -0.5])).all()
    raw = ran(rlx, tmp_path, identity(tmp_path / "u.onnx", [1, 3, 2, 4], onnx.TensorProto.UINT8),
              *given)["y"]
    assert raw.dtype == np.uint8 and (raw[0, 0] == 255).all()


@pytest.mark.parametrize("dtype", [onnx.TensorProto.BFLOAT16, onnx.TensorProto.INT4,
                                   onnx.TensorProto.STRING])
def test_outputs_that_were_written_are_inputs_again(rlx, rlx_json, tmp_path, dtype):
    path, written = identity(tmp_path / "i.onnx", ["n"], dtype), tmp_path / "y.npz"
    given = '["a", "", "long"]' if dtype == onnx.TensorProto.STRING else "[1, -2, 3]"
    rlx("run", path, "--input", f"x={given}", "--output", written)
    found = rlx_json("run", path, "--input", f"x={written}")["outputs"][0]["values"]
    assert found == json.loads(given)


def test_items_of_a_sequence_are_written_too(rlx, tmp_path):
    path = tmp_path / "s.onnx"
    onnx.save(model([node("SplitToSequence", "x", "y")], [value("x", F, ["n"])],
                    [onnx.helper.make_tensor_sequence_value_info("y", F, None)]), path)
    found = ran(rlx, tmp_path, path, "--input", "x=[5, 6]")
    assert {name: x.tolist() for name, x in found.items()} == {"y[0]": [5], "y[1]": [6]}


@pytest.mark.parametrize("keys", [[3, 5], ["cat", "dog"]])
def test_maps_are_written_and_shown_too(rlx, rlx_json, tmp_path, keys):
    path, numbers = tmp_path / "z.onnx", np.float32([[0.1, 0.9], [0.75, 0.25]])
    of, text = onnx.TensorProto, isinstance(keys[0], str)
    maps = onnx.helper.make_sequence_type_proto(onnx.helper.make_map_type_proto(
        of.STRING if text else of.INT64, onnx.helper.make_tensor_type_proto(F, [])))
    zip_map = onnx.helper.make_node("ZipMap", ["x"], ["z"], domain="ai.onnx.ml", **{
        "classlabels_strings" if text else "classlabels_int64s": keys})
    made = model([zip_map], [value("x", F, [None, 2])],
                 [onnx.helper.make_value_info("z", maps)])
    made.opset_import.append(onnx.helper.make_opsetid("ai.onnx.ml", 1))
    onnx.save(made, path)
    given = ("--input", f"x={numbers.tolist()}")
    found = ran(rlx, tmp_path, path, *given)
    assert list(found) == ["z/keys", "z/values"] and found["z/keys"].tolist() == keys
    np.testing.assert_array_equal(found["z/values"], numbers, strict=True)
    shown = [{str(key): number for key, number in zip(keys, row)} for row in numbers.tolist()]
    assert rlx_json("run", path, *given)["outputs"][0]["values"] == shown
    text = rlx("run", path, *given).stdout
    assert "z: sequence of 2" in text and f"z[0]: {keys[0]}: 0.1, {keys[1]}: 0.9\n" in text


@pytest.mark.parametrize("arguments, told", [
    (["--input", "z=1"], "no input 'z'"),
    (["--input", "x=nothing.npy"], "no file"),
    (["--input", "x=[[1]]"], "x"),
    (["--dim", "m=3"], "no input has this dim"),
    (["--dim", "n=three"], "no whole number"),
    (["--shape", "x=2x9"], "expected"),
    (["--labels", "nothing.txt"], "labels"),
    (["--output", "/nothing/out.npz"], "outputs"),
    (["--output", ""], "outputs"),
    (["--seed", "-1"], "negative"),
    (["--std", "0"], "divided by 0"),
    (["--mean", "nan"], "finite"),
    (["--dim", "n=99999999999999"], "cannot be made"),
    (["--dim", "n=99999999999999999999999999"], "cannot be made"),
    (["--device", "tpu"], "tpu"),
    (["--disable", "nothing"], "disable"),
])
def test_what_does_not_fit_is_told(rlx, mlp, arguments, told):
    assert told in rlx("run", mlp, *arguments, code=2).stderr


def test_an_archive_that_is_none_is_named(rlx, mlp, tmp_path):
    path = tmp_path / "x.npz"
    path.write_bytes(b"PK\x03\x04" + bytes(100))
    assert f"cannot read {str(path)!r}" in rlx("run", mlp, "--input", path, code=2).stderr
    np.savez(path, x=np.ones((2, 8), np.float32))
    whole = path.read_bytes()
    path.write_bytes(whole.replace(np.ones(16, np.float32).tobytes(), bytes(64)))
    assert f"cannot read {str(path)!r}" in rlx("run", mlp, "--input", path, code=2).stderr
    with open(path, "wb") as file:
        np.save(file, np.ones((2, 8), np.float32))
    told = rlx("run", mlp, "--input", path, code=2).stderr
    assert f"{str(path)!r} is one array, no archive" in told


def test_inputs_without_shape_must_be_given(rlx, tmp_path):
    path = tmp_path / "free.onnx"
    onnx.save(model([node("Relu", "x", "y")], [value("x", F, None)], [value("y", F, None)]), path)
    assert "--shape x=" in rlx("run", path, code=2).stderr
    assert ran(rlx, tmp_path, path, "--shape", "x=2x3")["y"].shape == (2, 3)


def test_a_loop_of_a_builders_network(rlx, rlx_json, tagger):
    path, inputs = tagger
    found = rlx_json("run", path, "--input", inputs)
    assert found["outputs"] and all(2 in o["shape"] for o in found["outputs"])
    assert "min" in rlx("run", path, "--input", inputs).stdout
