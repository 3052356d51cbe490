// Memory that the ranks of one host share: a segment a rank, mapped by all of them. A segment is an anonymous
// file that goes with the last process that holds it: a rank that is killed leaves nothing behind.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

namespace superstep::run {

// How ranks that share nothing yet tell each other a few numbers. Collective, as everything that uses it.
struct Meeting {
  using Words = std::array<std::int64_t, 4>;
  int rank = 0, size = 1;
  std::function<std::vector<Words>(const Words&)> gather;  // those of every rank, by rank
  std::function<bool(bool)> all;                           // is it true of every rank?
};

class SharedSegments {
 public:
  // `bytes` a rank, zeroed, on page boundaries. Null, on every rank, where the ranks cannot map each other's
  // memory: they are on several hosts, in containers of their own, or memory is short.
  static std::unique_ptr<SharedSegments> open(const Meeting& meeting, std::size_t bytes);
  ~SharedSegments();
  SharedSegments(const SharedSegments&) = delete;
  SharedSegments& operator=(const SharedSegments&) = delete;

  std::byte* of(int rank) const { return bases_[static_cast<std::size_t>(rank)]; }
  int rank() const { return rank_; }
  int size() const { return static_cast<int>(bases_.size()); }

 private:
  SharedSegments(int rank, std::size_t bytes) : rank_(rank), bytes_(bytes) {}
  int rank_;
  std::size_t bytes_;
  std::vector<std::byte*> bases_;  // by rank; null where it could not be mapped
};

}  // namespace superstep::run
