#include "superstep/target/pjrt/client/quiet.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <mutex>

namespace superstep::target::pjrt {
namespace {

std::mutex quiet_mutex;
int nested = 0, real_errors = -1;  // how many are at it, and the descriptor that standard error was

// Asked before anything of ours sets the level.
bool is_wanted() {
  static const bool set = std::getenv("TF_CPP_MIN_LOG_LEVEL") != nullptr;
  return set;
}

}  // namespace

Quiet::Quiet() {
  const std::lock_guard lock(quiet_mutex);
  if (is_wanted() || nested++ > 0) return;
  real_errors = ::fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
  const int nowhere = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
  if (real_errors >= 0 && nowhere >= 0) ::dup2(nowhere, STDERR_FILENO);
  if (nowhere >= 0) ::close(nowhere);
}

Quiet::~Quiet() {
  const std::lock_guard lock(quiet_mutex);
  if (is_wanted() || --nested > 0 || real_errors < 0) return;
  ::dup2(real_errors, STDERR_FILENO);
  ::close(real_errors);
  real_errors = -1;
}

}  // namespace superstep::target::pjrt
