"""Makes the page of operator coverage whenever the site is built, so that it is never stale."""

from __future__ import annotations

from mkdocs.structure.files import File

from rlx.cli.ops import coverage

_WORDS = {"native": "yes", "function": "by its function body", "missing": "no"}
_HEAD = """# Operator coverage

Made from rlx's registry and the `onnx` package when this site was built; `rlx ops` prints the same.
An operator that is listed with *by its function body* is expanded into others, as the standard
defines it.

"""


def on_files(files, config):
    """mkdocs' event: adds reference/ops.md to the pages."""
    files.append(File.generated(config, "reference/ops.md", content=page()))
    return files


def page() -> str:
    """The page's Markdown."""
    rows = coverage()
    parts = [_HEAD]
    for domain in sorted({row["domain"] for row in rows}):
        own = [row for row in rows if row["domain"] == domain]
        there = sum(row["status"] != "missing" for row in own)
        parts.append(f"## {domain}\n\n{there} of {len(own)} operators.\n\n"
                     "| operator | supported | versions of the standard |\n|---|---|---|\n")
        parts += [f"| {row['name']} | {_WORDS[row['status']]} | "
                  f"{', '.join(map(str, row['versions']))} |\n" for row in own]
        parts.append("\n")
    return "".join(parts)
