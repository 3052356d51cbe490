// For long work that cannot be saved half done, such as reading a large file: Ctrl-C is heard between its
// pieces.
#pragma once

#include <chrono>
#include <optional>

#include "superstep/base/error.h"
#include "superstep/base/system/interrupt.h"

namespace superstep {

class InterruptCheck {
 public:
  // Has the user wanted to stop for half a second? Work that is over by then is finished, since a training
  // that saves itself may need it.
  bool is_due() {
    if (!interrupted()) return false;
    const auto now = std::chrono::steady_clock::now();
    if (!asked_) asked_ = now;
    return now - *asked_ > std::chrono::milliseconds(500);
  }
  void throw_if_due(const std::string& where) {
    if (is_due()) throw Error(ErrorCode::interrupted, "stopped while reading", where);
  }

 private:
  std::optional<std::chrono::steady_clock::time_point> asked_;
};

}  // namespace superstep
