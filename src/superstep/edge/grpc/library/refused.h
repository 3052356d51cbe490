// Calls that gRPC's library refuses by itself, before they have a method: a header that is too large, say.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

namespace superstep::edge {

// Counts them as the difference of what the library says it began (its channelz) and what came so far as to a
// method. One thread at a time.
class RefusedByLibrary {
 public:
  // The server that the library has built last: no other is built meanwhile.
  RefusedByLibrary();

  // How many have not been told yet. While calls come it may tell less, never more: a call that the library
  // has begun has come to its method by the next look, 50 ms later at least.
  std::uint64_t news(std::uint64_t came_to_a_method);
  // When nothing comes any more.
  std::uint64_t rest(std::uint64_t came_to_a_method);

 private:
  std::uint64_t untold(std::uint64_t began, std::uint64_t came_to_a_method);

  std::intptr_t server_ = 0;
  std::uint64_t began_before_ = 0, told_ = 0;
};

// Builds a server while no other one is built in this program, and counts for it.
std::optional<RefusedByLibrary> counted(const std::function<bool()>& build);

}  // namespace superstep::edge
