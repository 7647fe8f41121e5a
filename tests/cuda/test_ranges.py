"""NVTX ranges: each step's work stands in a range with the name of its ONNX node."""

from tests.cuda.test_runs import on_fake_gpu  # noqa: F401  (a fixture)

NVTX = r"""
#include <stdio.h>
#include <stdlib.h>
static void say(const char* text) {
  if (FILE* file = fopen(getenv("FAKE_CUDA_LOG"), "a")) {
    fprintf(file, "%s\n", text);
    fclose(file);
  }
}
extern "C" int nvtxRangePushA(const char* name) {
  char text[80];
  snprintf(text, sizeof text, "range:%s", name);
  say(text);
  return 0;
}
extern "C" int nvtxRangePop() {
  say("range-ends");
  return 0;
}
"""


def test_a_step_stands_in_a_range_of_its_nodes_name(on_fake_gpu, make_library):  # noqa: F811
    library = make_library(NVTX, "nvidia/cu13/lib/libnvtx3interop.so.1")
    done, _ = on_fake_gpu(f"""
sys.path.insert(0, {str(library.parents[3])!r})
s = rlx.load(model(), device="cuda", mode="stream")
s.run({{"x": x}})
before = len(calls())
s.run({{"x": x}})
print(json.dumps([c for c in calls()[before:] if c.startswith(("range", "cuLaunch"))]))
""")
    assert done.stdout.strip() == (
        '["range:product", "cuLaunchKernelEx", "range-ends", "range:rows", "cuLaunchKernelEx", '
        '"range-ends"]')
