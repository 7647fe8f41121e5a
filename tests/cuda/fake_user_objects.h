// What graphs of the fake driver keep until they are gone.
#pragma once

#include <mutex>
#include <utility>
#include <vector>

struct UserObject {
  void (*let_go)(void*);
  void* what;
};

namespace {
std::vector<std::pair<void (*)(void*), void*>> kept_by_graph;
}

extern "C" {

int cuUserObjectCreate(UserObject** object, void* what, void (*let_go)(void*), unsigned,
                       unsigned) {
  ENTER;
  *object = new UserObject{let_go, what};
  return 0;
}
int cuUserObjectRelease(UserObject* object, unsigned) {
  object->let_go(object->what);
  delete object;
  ENTER;
  return 0;
}
int cuGraphRetainUserObject(void*, UserObject* object, unsigned, unsigned) {
  ENTER;
  const std::lock_guard lock(mutex);
  kept_by_graph.emplace_back(object->let_go, object->what);
  delete object;
  return 0;
}

void fake_cuda_drop_graph() {
  for (const auto& [let_go, what] : kept_by_graph) let_go(what);
  kept_by_graph.clear();
}

}  // extern "C"
