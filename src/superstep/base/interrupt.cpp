#include "superstep/base/interrupt.h"

#include <csignal>

#include "superstep/base/listener.h"
#include "superstep/base/watch.h"

namespace superstep {
namespace {

volatile std::sig_atomic_t stop_requested = 0;

void on_signal(int signal) {
  stop_requested = 1;
  std::signal(signal, SIG_DFL);
}

Listener<bool()>& check() {
  static Listener<bool()> installed;
  return installed;
}

}  // namespace

void watch_for_interrupts() {
  std::signal(SIGINT, on_signal);
  std::signal(SIGTERM, on_signal);
  std::signal(SIGXFSZ, SIG_IGN);  // a file-size limit is an error of the write, not the end of the program
}

bool interrupted() {
  if (stop_requested != 0) return true;
  const auto asked = check().installed();
  return asked && (*asked)();
}

void request_interrupt() { stop_requested = 1; }
void clear_interrupt() { stop_requested = 0; }
void set_interrupt_check(std::function<bool()> asked) { check().set(std::move(asked)); }

}  // namespace superstep
