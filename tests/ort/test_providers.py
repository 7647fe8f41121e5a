"""A program's list of providers is taken as onnxruntime takes it: what is missing only warns."""

import warnings

import pytest

import rlx
import rlx.ort
from rlx.ort import providers
from tests.ort.material import sums

CPU, CUDA = "CPUExecutionProvider", "CUDAExecutionProvider"


@pytest.fixture(autouse=True)
def without_cuda(monkeypatch):
    monkeypatch.setattr(rlx, "devices", lambda: ["cpu"])


def used(library, *args, **kwargs):
    session = library.InferenceSession(sums(), *args, **kwargs)
    return session.get_providers(), session.get_provider_options()


def test_available_providers(library):
    assert library.get_available_providers()[-1] == CPU
    assert CUDA not in library.get_available_providers()
    assert {CPU, CUDA} <= set(library.get_all_providers())


@pytest.mark.parametrize("given", [
    [CUDA], [CUDA, CPU], [(CUDA, {"device_id": 0}), CPU], [CPU, "NoSuchExecutionProvider"]])
def test_what_is_not_available_warns_and_the_cpu_runs(library, given):
    with pytest.warns(UserWarning, match="is not in available provider names"):
        assert used(library, providers=given) == ([CPU], {CPU: {}})


@pytest.mark.parametrize("kwargs", [
    {}, {"providers": None}, {"providers": []}, {"providers": [CPU]},
    {"providers": [(CPU, {"arena_extend_strategy": "kSameAsRequested"})]},
    {"providers": [CPU], "provider_options": [{"a": 1}]}, {"disabled_optimizers": ["x"]}])
def test_what_is_available_runs_without_a_word(library, kwargs):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert used(library, **kwargs) == ([CPU], {CPU: {}})


def test_a_provider_listed_twice_warns(library):
    with pytest.warns(UserWarning, match="Duplicate provider"):
        assert used(library, providers=[CPU, CPU]) == ([CPU], {CPU: {}})


@pytest.mark.parametrize("kwargs", [
    {"providers": [CPU], "provider_options": [{}, {}]},
    {"providers": [(CPU, {"a": "b"})], "provider_options": [{}]}, {"providers": [3]}])
def test_a_malformed_list_falls_back_to_the_cpu(kwargs):
    with pytest.warns(UserWarning, match="EP Error"):
        assert used(rlx.ort, **kwargs) == ([CPU], {CPU: {}})


def test_providers_can_be_set_later(library):
    session = library.InferenceSession(sums())
    session.set_providers([CPU])
    assert session.get_providers() == [CPU]
    session.disable_fallback()
    session.enable_fallback()


def test_providers_of_the_options_count_when_there_are_no_others():
    options = rlx.ort.SessionOptions()
    assert not options.has_providers()
    options.add_provider(CUDA, {"device_id": "0"})
    assert options.has_providers()
    with pytest.warns(UserWarning, match="not in available"):
        assert used(rlx.ort, options) == ([CPU], {CPU: {}})


def test_cuda_is_asked_for_by_number_and_falls_back_when_it_fails(monkeypatch):
    monkeypatch.setattr(rlx, "devices", lambda: ["cuda:0", "cpu"])
    asked = []

    def session(model, *, device, **options):
        asked.append(device)
        if device != "cpu":
            raise rlx.DeviceError("no such luck")
        return rlx.Session(model, device=device, **options)

    monkeypatch.setattr("rlx.ort.session.Session", session)
    assert rlx.ort.get_available_providers() == [CUDA, CPU] and rlx.ort.get_device() == "GPU"
    with pytest.warns(UserWarning, match="EP Error no such luck"):
        assert used(rlx.ort, providers=[(CUDA, {"device_id": 1}), CPU]) == ([CPU], {CPU: {}})
    assert asked == ["cuda:1", "cpu"]
    assert providers.chosen([(CUDA, {"device_id": 1})], None) \
        == [(CUDA, {"device_id": "1"}), (CPU, {})]
