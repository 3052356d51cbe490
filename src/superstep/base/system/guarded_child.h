// A copy of this process that does what may crash, hang or eat up memory (a library on a damaged file) and
// answers requests. Whatever becomes of it, the process that asked goes on.
//
// The child shares nothing but what it answers with: bytes, and a block of memory that it filled and its
// parent takes over without a copy. It has limits on memory and on processor time (process_limits.h), says
// nothing on the terminal, leaves signals of the terminal to its parent and ends with it.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <expected>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "superstep/base/system/process_limits.h"

namespace superstep {

// Memory that two processes can share. Empty by default.
class SharedBlock {
 public:
  SharedBlock() = default;
  // In a child: zeros, beyond its limit of memory. Throws Error (out_of_memory).
  explicit SharedBlock(std::size_t bytes);
  // In the parent: what a child sent. Throws Error (out_of_memory, bad_file).
  SharedBlock(int file, std::size_t bytes);

  std::size_t size() const { return size_; }
  int file() const;
  const std::shared_ptr<std::byte>& memory() const { return memory_; }

 private:
  std::size_t size_ = 0;
  std::shared_ptr<int> file_;
  std::shared_ptr<std::byte> memory_;
};

struct ChildAnswer {
  std::string bytes;
  SharedBlock block;
};

class GuardedChild {
 public:
  using Serve = std::function<ChildAnswer(std::string_view request)>;  // throws nothing

  // Starts the child, which calls `serve` for each request. For each it has `processor_seconds`, and `memory`
  // bytes beyond what this process takes up now. Call it from where no other thread holds a lock that `serve`
  // needs. Throws Error (io) when the system starts no more processes.
  GuardedChild(const Serve& serve, std::uint64_t memory, double processor_seconds);
  ~GuardedChild();
  GuardedChild(const GuardedChild&) = delete;
  GuardedChild& operator=(const GuardedChild&) = delete;

  // The answer, or in words how the child ended ("crashed (Segmentation fault)"); it answers no more then.
  // Throws Error (interrupted) when the user wants to stop and the answer does not come within half a second.
  std::expected<ChildAnswer, std::string> ask(std::string_view request);
  pid_t process() const { return process_; }

 private:
  std::string end();  // of a child that has closed its side, or should have
  void kill();

  int socket_ = -1;
  pid_t process_ = -1;
};

}  // namespace superstep
