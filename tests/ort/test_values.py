"""OrtValue, OrtDevice and IOBinding hold and move values as onnxruntime's do."""

import numpy as np
import onnxruntime
from onnx import TensorProto as T
import pytest

import rlx.ort
from tests.ort.material import DESCRIBED, sums

X = np.ones((2, 3), np.float32)
Y = np.float32([[2, 3, 4], [2, 3, 4]])


@pytest.fixture
def session(library):
    return library.InferenceSession(sums())


@pytest.fixture
def value(library):
    return library.OrtValue.ortvalue_from_numpy(np.arange(6, dtype=np.float32).reshape(2, 3))


def test_a_value_describes_itself(value):
    assert (value.shape(), value.data_type(), value.element_type(), value.device_name()) \
        == ([2, 3], "tensor(float)", 1, "cpu")
    assert (value.is_tensor(), value.is_sparse_tensor(), value.is_tensor_sequence(),
            value.has_value(), value.tensor_size_in_bytes()) == (True, False, False, True, 24)


def test_a_value_shares_the_array(library):
    array = np.zeros((2, 3), np.float32)
    value = library.OrtValue.ortvalue_from_numpy(array)
    assert value.data_ptr() == value.numpy().ctypes.data == array.ctypes.data
    value.update_inplace(X)
    np.testing.assert_array_equal(array, X)
    with pytest.raises(RuntimeError):
        value.update_inplace(np.ones((2, 4), np.float32))


def test_a_strided_array_is_copied(library):
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    np.testing.assert_array_equal(library.OrtValue.ortvalue_from_numpy(array.T).numpy(), array.T)
    assert library.OrtValue.ortvalue_from_numpy(np.array(3, np.float32)).shape() == []


@pytest.mark.parametrize("dtype", ["?", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4",
                                   "f8"])
def test_types_are_called_the_same(dtype):
    ours, theirs = (library.OrtValue.ortvalue_from_numpy(np.zeros(1, dtype))
                    for library in (rlx.ort, onnxruntime))
    assert (ours.data_type(), ours.element_type()) == (theirs.data_type(), theirs.element_type())


@pytest.mark.parametrize("make", [
    lambda v: v.ortvalue_from_numpy([1, 2]), lambda v: v.ortvalue_from_numpy(X, "cuda", 0)],
    ids=["list", "cuda"])
def test_what_is_no_host_array_is_refused(library, make):
    with pytest.raises(RuntimeError):
        make(library.OrtValue)


def test_a_value_of_a_shape_and_type(library):
    made = library.OrtValue.ortvalue_from_shape_and_type
    for element in (np.float32, T.FLOAT):
        assert made([2, 3], element).numpy().shape == (2, 3)
    assert made([2], T.BFLOAT16).data_type() == "tensor(bfloat16)"


def test_the_type_of_bytes_can_be_told(library):
    value = library.OrtValue.ortvalue_from_numpy_with_onnx_type(np.zeros(2, np.uint16), T.BFLOAT16)
    assert (value.data_type(), value.element_type()) == ("tensor(bfloat16)", 16)


def test_dlpack_goes_in_and_out(library, value):
    assert value.__dlpack_device__() == (1, 0)
    np.testing.assert_array_equal(np.from_dlpack(value), value.numpy())
    np.testing.assert_array_equal(np.asarray(value), value.numpy())
    np.testing.assert_array_equal(library.OrtValue.from_dlpack(X).numpy(), X)


def test_a_sequence_is_a_value(library):
    session = library.InferenceSession(DESCRIBED["sequence"])
    given = library.OrtValue.ortvalue_from_numpy(np.float32([1, 2]))
    got, = session.run_with_ort_values(None, {"x": given})
    assert got.is_tensor_sequence() and not got.is_tensor() and got.element_type() == T.FLOAT
    for call in (got.numpy, got.shape):
        with pytest.raises(RuntimeError):
            call()


def test_values_go_through_a_run(library, session):
    given = library.OrtValue.ortvalue_from_numpy(X)
    for names, count in ((["z"], 1), (None, 2)):
        got = session.run_with_ort_values(names, {"x": given})
        assert len(got) == count
        np.testing.assert_array_equal(got[-1].numpy(), Y * Y)
    with pytest.raises(ValueError, match="Required inputs"):
        session.run_with_ort_values(["z"], {"q": given})


def test_devices(library):
    cpu, cuda = library.OrtDevice.make("cpu", 0), library.OrtDevice.make("cuda", 1)
    assert (cpu.device_type(), cpu.device_id()) == (0, 0)
    assert (cuda.device_type(), cuda.device_id()) == (1, 1)
    with pytest.raises(Exception, match="Unsupported device type"):
        library.OrtDevice.make("abacus", 0)


def test_bound_outputs_come_in_their_order(session):
    binding = session.io_binding()
    binding.bind_cpu_input("x", X)
    binding.bind_output("z")
    binding.bind_output("y")
    binding.synchronize_inputs()
    session.run_with_iobinding(binding)
    binding.synchronize_outputs()
    for got in (binding.copy_outputs_to_cpu(), [v.numpy() for v in binding.get_outputs()]):
        np.testing.assert_array_equal(got[0], Y * Y)
        np.testing.assert_array_equal(got[1], Y)
    binding.clear_binding_outputs()
    binding.clear_binding_inputs()
    assert list(binding.get_outputs()) == [] == list(binding.copy_outputs_to_cpu())


def test_memory_of_the_caller_is_bound(session):
    out = np.zeros((2, 3), np.float32)
    binding = session.io_binding()
    binding.bind_input("x", "cpu", 0, np.float32, [2, 3], X.ctypes.data)
    binding.bind_output("y", "cpu", 0, np.float32, (2, 3), out.ctypes.data)
    session.run_with_iobinding(binding)
    np.testing.assert_array_equal(out, Y)
    np.testing.assert_array_equal(binding.get_outputs()[0].numpy(), Y)


def test_values_are_bound(library, session):
    out = np.zeros((2, 3), np.float32)
    binding = session.io_binding()
    binding.bind_ortvalue_input("x", library.OrtValue.ortvalue_from_numpy(X))
    binding.bind_ortvalue_output("y", library.OrtValue.ortvalue_from_numpy(out))
    session.run_with_iobinding(binding)
    np.testing.assert_array_equal(out, Y)


def test_an_output_may_be_written_over_an_input(session):
    both = X.copy()
    binding = session.io_binding()
    for bind in (binding.bind_input, binding.bind_output):
        bind("x" if bind == binding.bind_input else "y", "cpu", 0, np.float32, [2, 3],
             both.ctypes.data)
    session.run_with_iobinding(binding)
    np.testing.assert_array_equal(both, Y)
    session.run_with_iobinding(binding)
    np.testing.assert_array_equal(both, Y + [1, 2, 3])
    binding.bind_output("z", "cpu", 0, np.float32, [1, 6], both.ctypes.data)
    with pytest.raises(RuntimeError):
        session.run_with_iobinding(binding)


@pytest.mark.parametrize("bind", [
    lambda b: b.bind_output("y"),
    lambda b: b.bind_cpu_input("x", X),
    lambda b: (b.bind_cpu_input("x", X.astype(np.float64)), b.bind_output("y")),
    lambda b: (b.bind_cpu_input("x", X), b.bind_output("q")),
    lambda b: b.bind_cpu_input("q", X),
], ids=["no input", "no output", "input's type", "output's name", "input's name"])
def test_unfit_bindings_are_runtime_errors(session, bind):
    binding = session.io_binding()
    with pytest.raises(RuntimeError):
        bind(binding)
        session.run_with_iobinding(binding)


def test_an_unfit_output_is_a_runtime_error(library, session):
    binding = session.io_binding()
    binding.bind_cpu_input("x", X)
    binding.bind_ortvalue_output("y", library.OrtValue.ortvalue_from_numpy(np.zeros((5, 3), "f4")))
    with pytest.raises(RuntimeError):
        session.run_with_iobinding(binding)
