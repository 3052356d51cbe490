#include "superstep/poplar/codelet/traps.h"

#include <fmt/format.h>

#include <csetjmp>
#include <csignal>
#include <mutex>

#include "superstep/base/error.h"

namespace poplar::core {
namespace {

// Where this thread goes on; null: no codelet runs in it.
thread_local sigjmp_buf* go_on = nullptr;
struct sigaction before;

// The signal is raised by the instruction itself, in the thread that runs it.
void on_division(int signal, siginfo_t* info, void* context) {
  if (go_on) siglongjmp(*go_on, 1);
  if (before.sa_flags & SA_SIGINFO) return before.sa_sigaction(signal, info, context);
  if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN) return before.sa_handler(signal);
  std::signal(signal, SIG_DFL);  // and the instruction is begun again
}

void watch() {
  static std::once_flag once;
  std::call_once(once, [] {
    struct sigaction action {};
    action.sa_sigaction = on_division;
    action.sa_flags = SA_SIGINFO | SA_NODEFER;  // the jump leaves the handler for good
    sigemptyset(&action.sa_mask);
    sigaction(SIGFPE, &action, &before);
  });
}

}  // namespace

bool with_traps(const char* vertex, bool (*compute)(void* object, unsigned worker), void* object,
                unsigned worker) {
  watch();
  sigjmp_buf here;
  sigjmp_buf* const outer = go_on;
  if (sigsetjmp(here, 0) != 0) {
    go_on = outer;
    throw superstep::Error(superstep::ErrorCode::bad_graph,
                           "it divides an integer by zero, or the smallest one by -1",
                           fmt::format("vertex {}", vertex));
  }
  go_on = &here;
  try {
    const bool said = compute(object, worker);
    go_on = outer;
    return said;
  } catch (...) {
    go_on = outer;
    throw;
  }
}

}  // namespace poplar::core
