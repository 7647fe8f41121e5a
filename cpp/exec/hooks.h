// What the executor asks of the world above it; set once by the bindings.
#pragma once

#include <span>

#include "exec/strings.h"
#include "exec/value.h"
#include "program/program.h"

namespace rlx {

struct Hooks {
  // Calls a Host stage's function; an absent input has dtype none. `strings` is null when the
  // program has no strings.
  void (*call_host)(const Host& host, std::span<const RunValue> inputs,
                    std::span<RunValue> outputs, StringTable* strings) = nullptr;
  // Throws when the user asked to stop; called between the iterations of loops.
  void (*check_interrupt)() = nullptr;
};

inline Hooks& hooks() {
  static Hooks the_hooks;
  return the_hooks;
}

}  // namespace rlx
