"""rlx profile: table, trace and page of one command."""

import json


def test_profile(rlx, rlx_json, digits, three, tmp_path):
    options = ("profile", digits, "--input", three, "--runs", 3)
    page, trace = tmp_path / "p.html", tmp_path / "t.json"
    text = rlx(*options, "--html", page, "--chrome", trace, "--top", 2).stdout
    assert "/layer1/Relu" in text and "and 5 nodes more" in text and "median of 3 runs" in text
    assert "Time line" in page.read_text()
    assert json.loads(trace.read_text())["traceEvents"]
    found = rlx_json(*options)
    assert len(found["runs"]) == 3 and 0 < found["in_steps"] <= found["median"]
    assert found["inputs"][0]["shape"] == [1, 1, 8, 8]
    assert "cannot write" in rlx(*options, "--html", "/nothing/p.html", code=2).stderr
