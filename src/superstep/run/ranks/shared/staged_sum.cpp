#include "superstep/run/ranks/shared/staged_sum.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "superstep/run/ranks/shared/adding.h"
#include "superstep/run/ranks/shared/waiting.h"

namespace superstep::run {
namespace {

// Floats. A chunk with its buffers of three steps stays in a second-level cache.
constexpr std::size_t chunk_values = std::size_t{32} << 10;
constexpr std::size_t small_values = std::size_t{2} << 10;  // below: everyone adds up everything, one meeting
constexpr std::size_t line_values = 16;                     // of a cache line: pieces do not share one

// A buffer may be written again when everybody has read it. A rank that fills buffer k + 3 has fetched chunk
// k, so all had added it up; a rank that adds up chunk k + 3 has seen all fill it, so all had fetched chunk
// k.
constexpr std::size_t buffers = 3;

struct alignas(64) Count {
  std::atomic<std::uint64_t> value{0};
};

std::span<float> chunk_of(std::span<float> values, std::size_t chunk) {
  const std::size_t begin = chunk * chunk_values;
  return values.subspan(begin, std::min(chunk_values, values.size() - begin));
}

}  // namespace

struct StagedSum::Segment {
  Count laid_out, added_up, small;
  // A rank writes buffer s + 2 when all have read buffer s: it waited for all to write s + 1 in between.
  alignas(64) float small_buffers[2][small_values];
  alignas(64) float given[buffers][chunk_values];   // what this rank gives to the others' pieces
  alignas(64) float totals[buffers][chunk_values];  // this rank's piece, added up
};

std::unique_ptr<StagedSum> StagedSum::open(const Meeting& meeting) {
  auto memory = SharedSegments::open(meeting, sizeof(Segment));
  return memory ? std::unique_ptr<StagedSum>(new StagedSum(std::move(memory))) : nullptr;
}

StagedSum::StagedSum(std::unique_ptr<SharedSegments> memory)
    : memory_(std::move(memory)),
      rank_(static_cast<std::size_t>(memory_->rank())),
      ranks_(static_cast<std::size_t>(memory_->size())) {}

StagedSum::Segment& StagedSum::segment(std::size_t rank) const {
  return *reinterpret_cast<Segment*>(memory_->of(static_cast<int>(rank)));
}

std::size_t StagedSum::piece_begin(std::size_t count, std::size_t rank) const {
  return rank == ranks_ ? count : rank * count / ranks_ / line_values * line_values;
}

void StagedSum::sum(std::span<float> values) {
  if (values.size() <= small_values) return sum_small(values);
  const std::size_t chunks = (values.size() + chunk_values - 1) / chunk_values;
  for (std::size_t i = 0; i < chunks + 2; ++i) {
    if (i < chunks) lay_out(chunk_of(values, i), chunks_ + i);
    if (i >= 1 && i - 1 < chunks) add_up(chunk_of(values, i - 1), chunks_ + i - 1);
    if (i >= 2) fetch(chunk_of(values, i - 2), chunks_ + i - 2);
  }
  chunks_ += chunks;
}

void StagedSum::sum_small(std::span<float> values) {
  const std::size_t buffer = small_ % 2;
  std::ranges::copy(values, segment(rank_).small_buffers[buffer]);
  segment(rank_).small.value.store(++small_, std::memory_order_release);
  terms_.clear();
  for (std::size_t r = 0; r < ranks_; ++r) {
    Segment& other = segment(r);
    wait_until([&] { return other.small.value.load(std::memory_order_acquire) >= small_; });
    terms_.push_back(other.small_buffers[buffer]);
  }
  add_in_order(values.data(), terms_, values.size());
}

void StagedSum::lay_out(std::span<float> chunk, std::uint64_t number) {
  Segment& own = segment(rank_);
  for (std::size_t r = 0; r < ranks_; ++r) {
    if (r == rank_) continue;
    const std::size_t begin = piece_begin(chunk.size(), r), end = piece_begin(chunk.size(), r + 1);
    std::memcpy(own.given[number % buffers] + begin, chunk.data() + begin, (end - begin) * sizeof(float));
  }
  own.laid_out.value.store(number + 1, std::memory_order_release);
}

void StagedSum::add_up(std::span<float> chunk, std::uint64_t number) {
  const std::size_t begin = piece_begin(chunk.size(), rank_), end = piece_begin(chunk.size(), rank_ + 1);
  terms_.clear();
  for (std::size_t r = 0; r < ranks_; ++r) {
    Segment& other = segment(r);
    wait_until([&] { return other.laid_out.value.load(std::memory_order_acquire) > number; });
    terms_.push_back(r == rank_ ? chunk.data() + begin : other.given[number % buffers] + begin);
  }
  Segment& own = segment(rank_);
  add_in_order(chunk.data() + begin, terms_, end - begin);
  std::memcpy(own.totals[number % buffers], chunk.data() + begin, (end - begin) * sizeof(float));
  own.added_up.value.store(number + 1, std::memory_order_release);
}

void StagedSum::fetch(std::span<float> chunk, std::uint64_t number) {
  for (std::size_t r = 0; r < ranks_; ++r) {
    if (r == rank_) continue;
    Segment& other = segment(r);
    wait_until([&] { return other.added_up.value.load(std::memory_order_acquire) > number; });
    const std::size_t begin = piece_begin(chunk.size(), r), end = piece_begin(chunk.size(), r + 1);
    std::memcpy(chunk.data() + begin, other.totals[number % buffers], (end - begin) * sizeof(float));
  }
}

}  // namespace superstep::run
