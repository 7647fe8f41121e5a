"""Files and literals as inputs: what they give, and that broken or unfit ones are told."""

import io
import struct
import wave
import zipfile

import ml_dtypes
import numpy as np
import pytest

from rlx.cli import files, media
from rlx.errors import InputError
from rlx.feeds import Info


def info(dtype="float32", *shape) -> Info:
    return Info("x", dtype, shape or ("n",))


@pytest.fixture(scope="module")
def archive() -> bytes:
    made = io.BytesIO()
    np.savez(made, x=np.arange(3, dtype=np.float32))
    return made.getvalue()


def npy(x, **more) -> bytes:
    made = io.BytesIO()
    np.save(made, x, **more)
    return made.getvalue()


HUGE = b"{'descr': '<f4', 'fortran_order': False, 'shape': (9999999999999,), }".ljust(117) + b"\n"
BROKEN = {
    "objects.npy": npy(np.array([{1: 2}], object)),
    "huge.npy": b"\x93NUMPY\x01\x00v\x00" + HUGE,
    "text.npz": b"PK\x03\x04junk",
    "nothing.npz": b"",
    "tensor.pb": b"\x08\x03\x10\x01",
}


@pytest.mark.parametrize("name", [*BROKEN, "short.npz", "flipped.npz", "objects.npz"])
def test_broken_files(tmp_path, archive, name):
    data = BROKEN.get(name)
    if name == "short.npz":
        data = archive[:len(archive) // 2]
    if name == "flipped.npz":
        data = archive[:-200] + bytes([archive[-200] ^ 1]) + archive[-199:]
        assert zipfile.ZipFile(io.BytesIO(archive)).namelist() == ["x.npy"]
    if name == "objects.npz":
        made = io.BytesIO()
        np.savez(made, x=np.array(["a"], object))
        data = made.getvalue()
    path = tmp_path / name
    path.write_bytes(data)
    with pytest.raises(InputError, match=name):
        files.array(str(path), info())
    with pytest.raises(InputError, match=name):
        files.archive(str(path), {"x": info()})


def test_what_a_file_is_tells_its_content(tmp_path, archive):
    (tmp_path / "array.npz").write_bytes(npy(np.float32([5])))
    (tmp_path / "archive.npy").write_bytes(archive)
    assert files.array(str(tmp_path / "array.npz"), info()).tolist() == [5]
    assert files.array(str(tmp_path / "archive.npy"), info()).tolist() == [0, 1, 2]
    with pytest.raises(InputError, match="no archive"):
        files.archive(str(tmp_path / "array.npz"), {"x": info()})
    np.savez(tmp_path / "empty.npz")
    with pytest.raises(InputError, match="no array 'x'"):
        files.array(str(tmp_path / "empty.npz"), info())


@pytest.mark.parametrize("dtype", ["bfloat16", "int4", "uint4", "float8e4m3fn"])
def test_types_that_numpy_does_not_name_in_its_files(tmp_path, dtype):
    own = files.numpy_dtype(info(dtype))
    x = np.arange(5).astype(own)
    np.save(tmp_path / "x.npy", x)
    found = files.array(str(tmp_path / "x.npy"), info(dtype))
    assert found.dtype == own
    np.testing.assert_array_equal(found.astype(np.float32), x.astype(np.float32))


LITERALS = [
    ("2.0", "int64", [2]), ("[1, 2]", "uint8", [1, 2]), ("true", "int32", [1]),
    ("-8", "int4", [-8]), ("1", "bool", [True]), ("[]", "float32", []), ("NaN", "float32", None),
    ("1e400", "float32", [np.inf]), ("99999999999999999999999", "float32", [1e23]),
    ('["a", "b"]', "string", ["a", "b"]), ("3", "complex64", [3]), ("1.5", "bfloat16", [1.5]),
]


@pytest.mark.parametrize("text, dtype, expected", LITERALS)
def test_literals(text, dtype, expected):
    made = files.literal(info(dtype), text)
    assert made.dtype == np.dtype(files.numpy_dtype(info(dtype))) and made.ndim == 1
    if expected is None:
        assert np.isnan(made).all()
    elif dtype == "string":
        assert made.tolist() == expected
    else:
        np.testing.assert_array_equal(made, np.asarray(expected, made.dtype))


@pytest.mark.parametrize("text, dtype", [
    ("2.7", "int64"), ("2.7", "uint8"), ("300", "uint8"), ("-1", "uint16"), ("300", "int4"),
    ("8", "int4"), ("2", "bool"), ("0.5", "bool"), ("NaN", "bool"), ("1e400", "int32"),
    ("null", "float32"), ("null", "bool"), ("{}", "bool"), ("{}", "float32"), ('"1"', "float32"),
    ('"1"', "int64"), ("3", "string"), ("[null]", "string"), ("[1, [2]]", "float32"),
    ("99999999999999999999999", "int64"), ("1_0", "int64"), ("[" * 50000, "float32"),
    ("1", "seq(float32)"),
])
def test_literals_that_the_type_does_not_hold(text, dtype):
    with pytest.raises(InputError) as caught:
        files.literal(info(dtype), text)
    assert len(str(caught.value)) < 500


def wav(path, width: int, data: bytes, channels=1, bits=None, form=1) -> str:
    bits = 8 * width if bits is None else bits
    rates = struct.pack("<HHIIHH", form, channels, 16000, 16000 * channels * width,
                        channels * width, bits)
    path.write_bytes(b"RIFF" + struct.pack("<I", 36 + len(data)) + b"WAVEfmt \x10\0\0\0" + rates
                     + b"data" + struct.pack("<I", len(data)) + data)
    return str(path)


def test_a_sound_that_is_cut_short_ends_with_its_last_whole_sample(tmp_path):
    samples = struct.pack("<4h", 16384, 0, -32768, 8192)
    path = wav(tmp_path / "odd.wav", 2, samples[:-1], channels=2)
    assert media.sound(path, info("float32", 1, "n")).tolist() == [[0.25]]


@pytest.mark.parametrize("width, dtype", [
    (2, "int8"), (3, "int16"), (2, "uint16"), (1, "uint8"), (2, "bool"), (2, "string"),
    (2, "complex64"), (2, "int4"), (2, "seq(float32)")])
def test_samples_that_the_input_does_not_hold(tmp_path, width, dtype):
    path = wav(tmp_path / "s.wav", width, bytes(12))
    with pytest.raises(InputError, match="'x'"):
        media.sound(path, info(dtype, 1, "n"))


@pytest.mark.parametrize("width, dtype, expected", [
    (2, "int16", [-2, 256]), (1, "int8", [126, 127, -128, -127]), (2, "int32", [-2, 256]),
    (2, "bfloat16", [-2**-14, 2**-7]), (2, "float8e5m2", [-2**-14, 2**-7])])
def test_samples_in_the_inputs_type(tmp_path, width, dtype, expected):
    found = media.sound(wav(tmp_path / "s.wav", width, b"\xfe\xff\x00\x01"), info(dtype, "n"))
    assert found.dtype == files.numpy_dtype(info(dtype))
    assert found.astype(np.float64).tolist() == expected


@pytest.mark.parametrize("how", ["float", "40 bits", "header only", "nothing"])
def test_sounds_that_cannot_be_read(tmp_path, how):
    path = tmp_path / "s.wav"
    wav(path, 5 if how == "40 bits" else 4, bytes(40), form=3 if how == "float" else 1)
    if how in ("header only", "nothing"):
        path.write_bytes(path.read_bytes()[:30 if how == "header only" else 0])
    with pytest.raises(InputError, match="s.wav"):
        media.sound(str(path), info())


@pytest.fixture
def image():
    return pytest.importorskip("PIL.Image")


@pytest.mark.parametrize("channels", [1, 3])
def test_a_picture_of_16_bits(image, tmp_path, channels):
    levels = np.array([[0, 257, 25700], [32896, 65278, 65535]], np.uint16)
    image.fromarray(levels).save(tmp_path / "deep.png")
    found = media.picture(str(tmp_path / "deep.png"), info("uint8", 1, channels, 2, 3), [], [])
    for plane in found[0]:
        assert plane.tolist() == [[0, 1, 100], [128, 254, 255]]


@pytest.mark.parametrize("dtype", ["int8", "bool", "string", "int4", "complex64", "seq(float32)"])
def test_pictures_that_the_input_does_not_hold(image, tmp_path, dtype):
    image.fromarray(np.full((2, 2, 3), 200, np.uint8)).save(tmp_path / "p.png")
    with pytest.raises(InputError, match="'x'"):
        media.picture(str(tmp_path / "p.png"), info(dtype, 1, 3, 2, 2), [], [])


def test_pictures_in_small_floats_and_none_of_no_size(image, tmp_path):
    path = str(tmp_path / "p.png")
    image.fromarray(np.full((2, 2, 3), 255, np.uint8)).save(path)
    found = media.picture(path, info("float8e4m3fn", 1, 3, 2, 2), [], [])
    assert found.dtype == ml_dtypes.float8_e4m3fn and (found.astype(float) == 1).all()
    with pytest.raises(InputError, match="takes no picture"):
        media.picture(path, info("float32", 1, 3, 0, 2), [], [])


def test_pictures_with_any_byte_wrong_are_read_or_refused(image, tmp_path):
    made = io.BytesIO()
    pixels = np.random.default_rng(0).integers(0, 256, (6, 5, 3)).astype(np.uint8)
    image.fromarray(pixels).save(made, "png")
    path = tmp_path / "p.png"
    for place in range(len(made.getvalue())):
        data = bytearray(made.getvalue())
        data[place] ^= 0x7F
        path.write_bytes(data)
        try:
            assert media.picture(str(path), info("uint8", 1, 3, 6, 5), [], []).shape == (1, 3, 6, 5)
        except InputError as error:
            assert "p.png" in str(error)


def test_sounds_with_any_byte_wrong_are_read_or_refused(tmp_path):
    path = tmp_path / "s.wav"
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1), file.setsampwidth(2), file.setframerate(8000)
        file.writeframes(bytes(20))
    whole = path.read_bytes()
    for place in range(len(whole)):
        data = bytearray(whole)
        data[place] ^= 0xFF
        path.write_bytes(data)
        try:
            media.sound(str(path), info())
        except InputError as error:
            assert "s.wav" in str(error)
