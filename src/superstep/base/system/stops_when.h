// A reason to stop that one thread has for itself, beside the user's (base/system/interrupt.h).
#pragma once

#include <functional>

namespace superstep {

// While one lives, interrupted() says yes on this thread as soon as `asked` does, also while an Uninterrupted
// lives: of work beside the program's own that nobody wants any more.
class StopsWhen {
 public:
  explicit StopsWhen(std::function<bool()> asked);
  ~StopsWhen();
  StopsWhen(const StopsWhen&) = delete;
  StopsWhen& operator=(const StopsWhen&) = delete;
  bool asked() const { return asked_() || (outer_ && outer_->asked()); }

 private:
  const std::function<bool()> asked_;
  const StopsWhen* const outer_;
};

}  // namespace superstep
