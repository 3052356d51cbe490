// Settings that a program built against an older header gives: their size says which fields there are.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "superstep/base/error.h"

namespace superstep::api {

// `given` over `defaults`, as far as the caller's structure reaches. Throws Error (invalid_argument) where
// the size cannot be one of this structure.
template <class Settings>
Settings complete(const Settings* given, Settings defaults, const char* name) {
  if (!given) return defaults;
  std::size_t size = 0;
  std::memcpy(&size, given, sizeof size);
  if (size <= sizeof size || size > sizeof(Settings))
    throw Error(ErrorCode::invalid_argument, "its size is not that of this structure, or of an older one",
                name, "begin with the structure's _INIT");
  std::memcpy(&defaults, given, size);
  defaults.size = sizeof(Settings);
  return defaults;
}

}  // namespace superstep::api
