#include "superstep/poplar/core/notes.h"

#include <iostream>
#include <mutex>
#include <set>

namespace poplar::core {

void say_once(const std::string& what) {
  static std::mutex mutex;
  static std::set<std::string> said;
  const std::lock_guard lock(mutex);
  if (said.insert(what).second) std::cerr << "poplar: " << what << "\n";
}

}  // namespace poplar::core
