// Behind the interface of a source: forms that can only be read from a beginning on, such as packed archives.
#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <mutex>
#include <span>
#include <unordered_map>
#include <vector>

#include "superstep/file/source/sample_source.h"

namespace superstep::data {

// Samples of one shard, in their order.
class SampleCursor {
 public:
  virtual ~SampleCursor() = default;
  // Decodes the next sample: all arrays of the source, each into row_bytes() of its own. Called as often as
  // the shard has samples. Throws what SampleSource::read() throws.
  virtual void next(std::span<std::byte* const> arrays) = 0;
};

// What derives from it says what its arrays are, where its shards begin, and opens one. Samples that were
// passed by are kept, as long as they fit into `kept_bytes`: orders of shards and a buffer
// (file/source/order.h) read each shard once an epoch.
class OrderedSource : public SampleSource {
 public:
  explicit OrderedSource(std::size_t kept_bytes = default_kept_bytes) : kept_bytes_(kept_bytes) {}
  static constexpr std::size_t default_kept_bytes = 256 << 20;  // chosen: a buffer of small pictures

  void read(std::span<const std::int64_t> rows, std::span<const RowsTo> arrays) const override;

 protected:
  virtual std::unique_ptr<SampleCursor> open_shard(std::size_t shard) const = 0;

 private:
  struct Open {
    std::unique_ptr<SampleCursor> cursor;
    std::int64_t next = 0;  // the row that it is in front of
  };
  const std::byte* sample(std::int64_t row) const;
  const std::byte* advance(std::size_t shard, std::int64_t row) const;
  std::byte* keep(std::int64_t row) const;
  std::size_t sample_bytes() const;
  std::size_t offset_of(std::size_t array) const;

  std::size_t kept_bytes_;
  mutable std::mutex mutex_;
  mutable std::unordered_map<std::size_t, Open> open_;  // by shard
  mutable std::unordered_map<std::int64_t, std::vector<std::byte>> kept_;
  mutable std::deque<std::int64_t> oldest_;  // of kept_, the first to go first
};

}  // namespace superstep::data
