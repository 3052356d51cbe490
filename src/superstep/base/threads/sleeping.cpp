#include "superstep/base/threads/sleeping.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

namespace superstep {
namespace {

void sleep_for(const std::atomic<std::uint32_t>& word, std::uint32_t value, const timespec* at_most) {
  syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, value, at_most, nullptr, 0);
}

}  // namespace

void sleep_while(const std::atomic<std::uint32_t>& word, std::uint32_t value,
                 std::chrono::microseconds at_most) {
  const std::chrono::seconds whole = std::chrono::duration_cast<std::chrono::seconds>(at_most);
  const timespec time{.tv_sec = whole.count(), .tv_nsec = std::chrono::nanoseconds(at_most - whole).count()};
  sleep_for(word, value, &time);
}

void sleep_while(const std::atomic<std::uint32_t>& word, std::uint32_t value) {
  sleep_for(word, value, nullptr);
}

void wake_one(std::atomic<std::uint32_t>& word) {
  syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
}

}  // namespace superstep
