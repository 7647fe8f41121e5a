"""The documentation is true: its code prints what it shows, its links hold, its site builds."""

import importlib.util
from pathlib import Path
import re
import subprocess
import sys

import pytest

from tests.docs import blocks

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGES = sorted(DOCS.rglob("*.md"))


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.relative_to(DOCS).as_posix())
def test_code_runs_and_prints_what_is_shown(page, tmp_path, source):
    if page.name == "kernels.md" and importlib.util.find_spec("nvidia") is None:
        pytest.skip("needs NVRTC's wheel")
    assert blocks.run(page, tmp_path, source) == []


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.relative_to(DOCS).as_posix())
def test_every_block_says_its_language(page):
    found = [(b.language, b.line) for b in blocks.blocks(page)]
    assert [at for at in found if at[0] not in blocks.RUN + blocks.SHOWN] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.relative_to(DOCS).as_posix())
def test_links_lead_somewhere(page):
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text):
        made = target.endswith("reference/ops.md") or target == "ops.md"  # when the site is built
        assert made or (page.parent / target).exists(), f"{page.name} links to {target}"


BROKEN = '''
```python
x = 1
```
```python
print(x)
```
```text title="output"
2
```
```sh
echo a $((1 + 1)) b
```
```text title="output"
a ... b
```
```sh
echo no >&2; exit 3
```
'''


def test_wrong_pages_are_noticed(tmp_path, source):
    page = tmp_path / "page.md"
    page.write_text(BROKEN)
    (tmp_path / "run").mkdir()
    failed, differs = blocks.run(page, tmp_path / "run", source)
    assert failed.startswith("page.md:17: exit 3") and "no" in failed
    assert differs.startswith("page.md:5: shows\n2\nbut prints\n1\n")
    page.write_text("```python\nprint(1)\n\nraise ValueError('here')\n```\n")
    (tmp_path / "again").mkdir()
    raised, = blocks.run(page, tmp_path / "again", source)
    assert "line 4" in raised and "ValueError: here" in raised


@pytest.mark.slow
def test_the_site_builds(tmp_path, source):
    pytest.importorskip("mkdocs", reason="needs the extra docs")
    pytest.importorskip("mkdocstrings", reason="needs the extra docs")
    done = subprocess.run([sys.executable, "-m", "mkdocs", "build", "--strict", "-d", tmp_path],
                          cwd=source, text=True, capture_output=True, timeout=600)
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "reference/ops/index.html").read_text()
    from rlx.cli.ops import coverage
    rows = coverage()
    assert page.count("<tr>") >= len(rows) and all(f">{row['name']}<" in page for row in rows)
    reference = (tmp_path / "reference/api/index.html").read_text()
    for name in ("rlx.session.Session.run_async", "rlx.errors.InputError", "rlx.options.Options",
                 "rlx.dlpack.to_dlpack", "rlx.api.run"):
        assert f'id="{name}"' in reference, name
