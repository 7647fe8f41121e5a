// A minimal test harness: Test{"name", [] { check(a == b); }} at file scope registers itself.
#pragma once

#include <functional>
#include <source_location>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace rlx::test {

struct Failure : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct Case {
  std::string name;
  std::function<void()> body;
};

inline std::vector<Case>& cases() {
  static std::vector<Case> all;
  return all;
}

struct Test {
  Test(std::string name, std::function<void()> body) {
    cases().push_back({std::move(name), std::move(body)});
  }
};

using Where = std::source_location;

[[noreturn]] inline void fail(const std::string& message, const Where& where) {
  std::ostringstream text;
  text << where.file_name() << ':' << where.line() << ": " << message;
  throw Failure(text.str());
}

inline void check(bool condition, const std::string& message = "check failed",
                  Where where = Where::current()) {
  if (!condition) fail(message, where);
}

// Both sides must compare with == and print with <<.
template <typename Got, typename Expected>
void check_equal(const Got& got, const Expected& expected, Where where = Where::current()) {
  if (got == expected) return;
  std::ostringstream text;
  text << "got " << got << ", expected " << expected;
  fail(text.str(), where);
}

// Passes if `body` throws an Error whose what() contains `part`.
template <typename Error = std::exception, typename Body>
void check_throws(Body&& body, const std::string& part = "", Where where = Where::current()) {
  try {
    body();
  } catch (const Error& error) {
    const std::string text = error.what();
    check(text.find(part) != std::string::npos, "message lacks '" + part + "': " + text, where);
    return;
  }
  fail("nothing was thrown", where);
}

}  // namespace rlx::test
