// Names of element types, environment variables and hashes.
#include <cstdlib>
#include <set>
#include <string>
#include <vector>

#include "core/dtype.h"
#include "core/env.h"
#include "core/error.h"
#include "core/hash.h"
#include "tests/cpp/check.h"

namespace rlx::test {
namespace {

const Test dtypes{"dtype: names are distinct, and every type is of one class", [] {
  std::set<std::string> names;
  for (int t = 0; t < dtype_count; ++t) {
    names.insert(name_of(DType(t)));
    check(is_float(DType(t)) + is_integer(DType(t)) + is_complex(DType(t)) <= 1);
  }
  check_equal(int(names.size()), dtype_count);
  check_equal(std::string(name_of(DType::boolean)), "bool");
  check_equal(std::string(name_of(DType::int2)), "int2");
  check(is_float(DType::float8e8m0) && is_integer(DType::uint2) && !is_integer(DType::string));
}};

const Test environment{"env: unset and empty are nothing; numbers are whole and in range", [] {
  unsetenv("RLX_TEST_CORE");
  check(!env("TEST_CORE") && !env_int("TEST_CORE", 0, 9));
  setenv("RLX_TEST_CORE", "", 1);
  check(!env("TEST_CORE"));
  setenv("RLX_TEST_CORE", "7", 1);
  check(env("TEST_CORE") == "7" && env_int("TEST_CORE", 0, 9) == 7);
  for (const char* text : {"7x", "10", "-1", " 7", "99999999999999999999"}) {
    setenv("RLX_TEST_CORE", text, 1);
    check_throws<Error>([] { env_int("TEST_CORE", 0, 9); }, "RLX_TEST_CORE");
  }
  unsetenv("RLX_TEST_CORE");
}};

const Test hashes{"hash: values, order, length and seed all count", [] {
  using Ints = std::vector<int64_t>;
  const auto hash = [](const Ints& v, uint64_t seed = 0) {
    return hash_values(std::span<const int64_t>(v), seed);
  };
  check_equal(hash({1, 2}), hash({1, 2}));
  std::set<uint64_t> found{hash({1, 2}), hash({2, 1}), hash({1, 2, 0}), hash({}), hash({0}),
                           hash({1, 2}, 1)};
  check_equal(found.size(), size_t(6));
}};

const Test bytes{"hash: bytes of every length, no trailing zero lost", [] {
  std::set<uint64_t> found;
  const std::vector<std::byte> zeros(20);
  for (size_t n = 0; n <= zeros.size(); ++n)
    found.insert(hash_bytes(std::span(zeros).first(n)));
  check_equal(found.size(), zeros.size() + 1);
}};

}  // namespace
}  // namespace rlx::test
