"""Measures our source files: length, columns, functions, first line; prints what is over."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
import re

FOLDERS = ("python", "cpp", "kernels", "models", "tests", "tools", "cmake", "docs", ".ci")
SUFFIXES = (".py", ".pyi", ".cpp", ".h", ".cu", ".cmake", ".in", ".sh")
FILE_LINES = {".py": 300, ".pyi": 300, ".cpp": 400, ".h": 200, ".cu": 350}
BINDING_LINES = 150
FUNCTION_LINES = 60
COLUMNS = 100

# Comments, strings and character literals of C++: blanked, so that braces in them do not count.
CPP_TEXT = re.compile(r'R"(\w*)\((?:.|\n)*?\)\1"|//[^\n]*|/\*(?:.|\n)*?\*/'
                      r'|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'')
CPP_CONTAINER = re.compile(r"(?:^|\s)(namespace|class|struct|union|enum|extern)\b[^()]*$")


@dataclass(frozen=True, order=True)
class Finding:
    """One norm that one file breaks."""

    path: str
    rule: str
    detail: str

    def __str__(self) -> str:
        return f"{self.path}: {self.rule}: {self.detail}"


def source_files(root: Path) -> Iterator[Path]:
    """Every file of ours that is code."""
    yield root / "CMakeLists.txt"
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            if path.is_file() and (path.suffix in SUFFIXES or folder == ".ci"):
                yield path


def python_functions(text: str) -> Iterator[tuple[str, int, int]]:
    """Name, first line and length of each function, its docstring left out."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            length = node.end_lineno - node.lineno + 1
            if ast.get_docstring(node, clean=False) is not None:
                docstring = node.body[0]
                length -= docstring.end_lineno - docstring.lineno + 1
            yield node.name, node.lineno, length


def blank(match: re.Match[str]) -> str:
    """Empty text with as many lines; a word in place of a literal keeps `f("x")` a call."""
    word = "" if match[0].startswith("/") else "x"
    return word + "\n" * match[0].count("\n")


def cpp_functions(text: str) -> Iterator[tuple[str, int, int]]:
    """Header, first line and length of each outermost function or lambda, told by its braces."""
    text = CPP_TEXT.sub(blank, text)
    text = re.sub(r"^[ \t]*#.*?(?<!\\)$", "", text, flags=re.MULTILINE)
    containers: list[bool] = []
    header_start = 0
    function: tuple[int, int, str] | None = None  # depth, offset of the header, header
    for match in re.finditer(r"[{};]", text):
        header = text[header_start:match.start()]
        if match[0] == "{":
            stripped = header.strip()
            container = bool(CPP_CONTAINER.search(stripped))
            is_body = not container and not stripped.endswith(("=", ",", "("))
            if function is None and is_body and (")" in stripped or stripped.endswith("]")):
                begin = header_start + len(header) - len(header.lstrip())
                function = (len(containers), begin, " ".join(stripped.split()))
            containers.append(container)
        elif match[0] == "}" and containers:
            containers.pop()
            if function is not None and len(containers) == function[0]:
                first, last = (text.count("\n", 0, at) + 1 for at in (function[1], match.start()))
                yield function[2], first, last - first + 1
                function = None
        header_start = match.end()


def first_line_problem(path: Path, lines: list[str]) -> str | None:
    """Why the first line does not say the file's job, or None."""
    if lines and lines[0].startswith("#!"):
        lines = lines[1:]
    if not lines:
        return None
    opening = {".py": '"""', ".pyi": '"""', ".cpp": "// ", ".h": "// ", ".cu": "// "}
    expected = opening.get(path.suffix, "// " if path.name.endswith(".cpp.in") else "# ")
    if not lines[0].startswith(expected) or len(lines[0].split()) < 4:
        return f"expected {expected} and a sentence, got {lines[0][:40]!r}"
    return None


def findings(path: Path, name: str) -> Iterator[Finding]:
    """Every norm that the file breaks; `name` is its path inside the repository."""
    text = path.read_text()
    lines = text.splitlines()
    limit = FILE_LINES.get(path.suffix)
    if name.startswith("cpp/bindings/"):
        limit = BINDING_LINES
    if limit is not None and len(lines) > limit:
        yield Finding(name, "file length", f"{len(lines)} lines, at most {limit}")
    wide = [number for number, line in enumerate(lines, 1) if len(line) > COLUMNS]
    if wide:
        yield Finding(name, "columns", f"more than {COLUMNS} in lines {wide[:5]}")
    problem = first_line_problem(path, lines)
    if problem:
        yield Finding(name, "first line", problem)
    functions = {".py": python_functions, ".cpp": cpp_functions, ".h": cpp_functions,
                 ".cu": cpp_functions}.get(path.suffix)
    for function, line, length in functions(text) if functions else ():
        if length > FUNCTION_LINES:
            yield Finding(name, "function length",
                          f"line {line}, {function[:60]}: {length} lines, at most {FUNCTION_LINES}")


def all_findings(root: Path) -> list[Finding]:
    """What the whole source tree breaks, in order of path."""
    return sorted(finding for path in source_files(root)
                  for finding in findings(path, path.relative_to(root).as_posix()))


if __name__ == "__main__":
    print(*all_findings(Path(__file__).resolve().parent.parent), sep="\n")
