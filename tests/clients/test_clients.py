"""Programs that people use answer the same with rlx.ort in onnxruntime's place, unchanged."""

import gzip
import wave

import numpy as np
import pytest

from tests.clients.speech import RATE, recording
from tests.tolerance import tolerance

pytestmark = [pytest.mark.slow, pytest.mark.clients]

FILES = {
    "a.py": "import os\nprint(os.getcwd())\n\n\ndef f(x):\n    return x + 1\n",
    "b.json": '{\n  "a": [1, 2, 3],\n  "b": {"c": null}\n}\n',
    "c.c": '#include <stdio.h>\nint main(void) {\n  printf("hi");\n  return 0;\n}\n',
    "d.md": "# Title\n\nSome *text* with a [link](https://example.org).\n\n- one\n- two\n",
    "e.html": "<!doctype html>\n<html><head><title>t</title></head><body><p>x</p></body></html>\n",
    "f.csv": "name,size,count\nalpha,3,1\nbeta,4,2\ngamma,5,3\ndelta,6,4\n",
    "g.sh": "#!/bin/sh\nset -e\nfor f in *.txt; do\n  echo \"$f\"\ndone\n",
}


def test_rapidocr_reads_the_same_text(both):
    theirs, ours = both("ocr.py")
    # The recogniser leaves out some of the spaces, with either library.
    assert [line["text"].replace(" ", "") for line in ours] \
        == ["Everymodelruns", "Invoice2048", "TOTAL73.50EUR"]
    assert [(line["text"], line["box"]) for line in ours] \
        == [(line["text"], line["box"]) for line in theirs]
    np.testing.assert_allclose([line["score"] for line in ours], [line["score"] for line in theirs],
                               **tolerance("score", "float32"))


def test_silero_hears_the_same_speech(both, tmp_path):
    path = tmp_path / "speech.wav"
    with wave.open(str(path), "wb") as file:
        file.setparams((1, 2, RATE, 0, "NONE", "not compressed"))
        file.writeframes(recording().tobytes())
    theirs, ours = both("vad.py", path)
    assert ours["speech"] == theirs["speech"] and len(ours["speech"]) == 2
    assert max(ours["probabilities"]) > 0.9 and min(ours["probabilities"]) < 0.1
    np.testing.assert_allclose(ours["probabilities"], theirs["probabilities"],
                               **tolerance("score", "float32"))


def test_magika_knows_the_same_files(both, tmp_path):
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "h.gz").write_bytes(gzip.compress(recording().tobytes()[:4000]))
    theirs, ours = both("files.py", tmp_path)
    assert [ours[name]["label"] for name in ("a.py", "b.json", "c.c", "h.gz")] \
        == ["python", "json", "c", "gzip"]
    for name, answer in theirs.items():
        assert (ours[name]["label"], ours[name]["raw"]) == (answer["label"], answer["raw"]), name
        # Its variance is mean(x * x) - mean(x) ** 2 over 512 rows: sums of another order,
        # here the more exact ones, change the few digits that are left.
        np.testing.assert_allclose(ours[name]["score"], answer["score"], err_msg=name,
                                   **tolerance("cancelled score", "float32"))
