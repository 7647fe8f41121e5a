// Runs the registered C++ tests, or those whose name contains the first argument; with further
// arguments K N only every Nth of them, from the Kth on (of 0 to N - 1).
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>

#include "tests/cpp/check.h"

int main(int argc, char** argv) {
  const std::string wanted = argc > 1 ? argv[1] : "";
  const int share = argc > 3 ? std::atoi(argv[2]) : 0, shares = argc > 3 ? std::atoi(argv[3]) : 1;
  int found = 0, passed = 0, failed = 0;
  for (const auto& test : rlx::test::cases()) {
    if (test.name.find(wanted) == std::string::npos || found++ % shares != share) continue;
    try {
      test.body();
      ++passed;
    } catch (const std::exception& error) {
      ++failed;
      std::printf("FAILED %s\n  %s\n", test.name.c_str(), error.what());
    }
  }
  std::printf("%d passed, %d failed\n", passed, failed);
  return failed != 0 || passed == 0;
}
