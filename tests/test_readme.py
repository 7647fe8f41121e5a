"""The README's two leading blocks are what they say; CI runs the second as it is written."""

import re


def test_readme_classifies_a_picture(source, fresh_python, monkeypatch):
    text = (source / "README.md").read_text()
    blocks = re.findall(r"^```(\w*)\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    assert [language for language, _ in blocks[:2]] == ["sh", "sh"]
    program = re.search(r"<<'EOF'\n(.*)^EOF", blocks[0][1], re.MULTILINE | re.DOTALL)[1]
    monkeypatch.chdir(source)
    shown = fresh_python(program).stdout
    assert "This is a 3," in shown


def test_readme_names_what_a_build_needs(source):
    """CI installs the same; CMake's Development.Module needs Python.h, which python3-dev brings."""
    line = re.search(r"`apt-get install ([^`]*)`", (source / "README.md").read_text())[1]
    ours = re.search(r"apt-get install -y -qq (.*)", (source / ".ci/run").read_text())[1]
    assert set(line.split()) == set(ours.split()) == {"g++", "python3-dev", "python3-venv"}
