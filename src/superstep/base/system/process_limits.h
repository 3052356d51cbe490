// Limits on this process: of a child that reads what nobody has checked. They can be widened for the time of
// a piece of work whose needs are known.
#pragma once

#include <cstdint>

namespace superstep {

// From now on the process may take up `bytes` of addresses more than it has; allocations beyond that fail.
void limit_memory(std::uint64_t bytes);

// The process may use `seconds` of processor time from now on, then the system ends it (SIGXCPU).
void limit_processor_time(double seconds);
void extend_processor_time(double seconds);  // the same where it is more than the limit of now

// Room for `bytes` of memory beyond the limit while it lives.
class Allowance {
 public:
  explicit Allowance(std::uint64_t bytes);
  ~Allowance();
  Allowance(Allowance&& other) noexcept;
  Allowance& operator=(Allowance&&) = delete;

 private:
  std::uint64_t bytes_;
};

}  // namespace superstep
