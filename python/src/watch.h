// What a call of the library does while it works: it leaves the interpreter to other threads, hears Ctrl-C,
// and calls back functions of Python.
#pragma once

#include <nanobind/nanobind.h>

#include <chrono>
#include <functional>
#include <optional>
#include <type_traits>
#include <utility>

#include "superstep/base/error.h"

namespace superstep::python {

// Around one call of the library that may take long, on the thread that makes it. Made and destroyed with the
// interpreter's lock. The library's check and listener are installed while there is one: short calls do not
// pay for them.
class Watch {
 public:
  // `progress`: called with (label, unit, note, done, total), or None.
  explicit Watch(nanobind::object progress = nanobind::none());
  ~Watch();
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

  // Runs the work without the lock. What a signal handler or a function of Python raised meanwhile is raised
  // in place of the library's "interrupted".
  template <class Work>
  auto call(Work&& work) {
    try {
      if constexpr (std::is_void_v<decltype(work())>) {
        without_lock(work);
        rethrow();
      } else {
        auto result = without_lock(work);
        rethrow();
        return result;
      }
    } catch (const Error& error) {
      if (error.code() == ErrorCode::interrupted) rethrow();
      throw;
    }
  }

  // Calls `function`, which may use Python, with the lock; what it raises ends the work.
  void call_back(const std::function<void()>& function);

  static Watch* of_this_thread();
  bool wants_stop();  // without the lock
  void tell(const char* label, const char* unit, const char* note, double done, double total);

 private:
  template <class Work>
  static auto without_lock(Work& work) {
    nanobind::gil_scoped_release free;
    return work();
  }
  void rethrow() {
    if (raised_) throw std::move(*raised_);
  }

  nanobind::object progress_;
  std::optional<nanobind::python_error> raised_;
  std::chrono::steady_clock::time_point asked_;
  Watch* before_;
};

}  // namespace superstep::python
