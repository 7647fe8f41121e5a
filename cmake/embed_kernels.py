"""Write a C++ table of the files under kernels/: embed_kernels.py OUTPUT ROOT FILE..."""

from pathlib import Path
import sys

output, root, *files = map(Path, sys.argv[1:])
rows = []
for file in sorted(files):
    text = file.read_text()
    if ')rlx"' in text:
        sys.exit(f"{file}: the text ends the raw string it is embedded in")
    rows.append(f'  {{"{file.relative_to(root).as_posix()}", R"rlx({text})rlx"}},\n')
output.write_text("".join([
    '// The files under kernels/, written by cmake/embed_kernels.py.\n#include "cuda/jit.h"\n\n',
    "namespace rlx::cuda {\n\nstatic const EmbeddedFile files[] = {\n", *rows, "};\n\n",
    "std::span<const EmbeddedFile> kernel_files() { return files; }\n\n",
    "}  // namespace rlx::cuda\n"]))
