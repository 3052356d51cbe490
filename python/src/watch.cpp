#include "python/src/watch.h"

#include <string>

#include "superstep/base/watch.h"

namespace superstep::python {
namespace {

namespace nb = nanobind;

// Between two looks for signals: the interpreter's lock is asked for, which others may hold.
constexpr auto pause_between_looks = std::chrono::milliseconds(20);

thread_local Watch* current = nullptr;
int watches = 0;  // of all threads; under the interpreter's lock

bool wants_stop() { return current && current->wants_stop(); }

void tell(const ProgressReport& report) {
  if (!current) return;
  current->tell(std::string(report.label).c_str(), std::string(report.unit).c_str(),
                std::string(report.note).c_str(), report.done, report.total);
}

}  // namespace

Watch::Watch(nb::object progress)
    : progress_(std::move(progress)), asked_(std::chrono::steady_clock::now()), before_(current) {
  current = this;
  if (watches++ > 0) return;
  set_interrupt_check(superstep::python::wants_stop);
  set_progress_listener(superstep::python::tell);
}

Watch::~Watch() {
  current = before_;
  if (--watches > 0) return;
  set_interrupt_check({});
  set_progress_listener({});
}

Watch* Watch::of_this_thread() { return current; }

void Watch::call_back(const std::function<void()>& function) {
  if (raised_) return;
  nb::gil_scoped_acquire held;
  try {
    function();
  } catch (nb::python_error& error) {
    raised_.emplace(std::move(error));
  }
}

bool Watch::wants_stop() {
  if (raised_) return true;
  const auto now = std::chrono::steady_clock::now();
  if (now - asked_ < pause_between_looks) return false;
  asked_ = now;
  call_back([] {
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
  });
  return raised_.has_value();
}

void Watch::tell(const char* label, const char* unit, const char* note, double done, double total) {
  if (progress_.is_none()) return;
  call_back([&] { progress_(label, unit, note, done, total); });
}

}  // namespace superstep::python
