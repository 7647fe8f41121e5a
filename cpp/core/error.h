// The one exception of the core: a kind and structured fields, mapped to rlx.Error by the bindings.
#pragma once

#include <stdexcept>
#include <string>

namespace rlx {

enum class ErrorKind { model, unsupported, input, device, memory_limit, stale_handle, internal };

struct Error : std::runtime_error {
  Error(ErrorKind kind, const std::string& message) : std::runtime_error(message), kind(kind) {}
  Error& at(std::string node_name, std::string op_name) {
    if (node.empty()) node = std::move(node_name), op = std::move(op_name);
    return *this;
  }
  Error& expected_got(std::string e, std::string g) {
    expected = std::move(e), got = std::move(g);
    return *this;
  }

  ErrorKind kind;
  std::string node, op, expected, got, remedy;
};

// A guard failed whose assumption another import of the model can drop.
struct Respecialise : std::runtime_error {
  explicit Respecialise(std::string assumption)
      : std::runtime_error("assumption failed: " + assumption), assumption(std::move(assumption)) {}
  std::string assumption;
};

}  // namespace rlx
