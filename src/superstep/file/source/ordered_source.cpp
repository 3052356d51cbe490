#include "superstep/file/source/ordered_source.h"

#include <algorithm>
#include <cstring>

namespace superstep::data {

std::size_t OrderedSource::offset_of(std::size_t array) const {
  std::size_t offset = 0;
  for (std::size_t i = 0; i < array; ++i) offset += arrays()[i].row_bytes();
  return offset;
}

std::size_t OrderedSource::sample_bytes() const {
  return std::max<std::size_t>(1, offset_of(arrays().size()));
}

void OrderedSource::read(std::span<const std::int64_t> rows, std::span<const RowsTo> wanted) const {
  const std::lock_guard lock(mutex_);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const std::byte* found = sample(rows[i]);
    for (const RowsTo& one : wanted) {
      const std::size_t size = arrays()[one.array].row_bytes();
      std::memcpy(one.to + i * size, found + offset_of(one.array), size);
    }
  }
}

const std::byte* OrderedSource::sample(std::int64_t row) const {
  if (const auto found = kept_.find(row); found != kept_.end()) return found->second.data();
  const std::vector<std::int64_t> starts = shards();
  const auto after = std::ranges::upper_bound(starts, row);
  return advance(static_cast<std::size_t>(after - starts.begin()) - 1, row);
}

// Reads on up to `row`, or begins again where it was passed by and is no longer kept.
const std::byte* OrderedSource::advance(std::size_t shard, std::int64_t row) const {
  Open& open = open_[shard];
  if (!open.cursor || open.next > row) open = {open_shard(shard), shards()[shard]};
  for (;;) {
    std::byte* bytes = keep(open.next);
    std::vector<std::byte*> arrays_of_it;
    for (std::size_t i = 0; i < arrays().size(); ++i) arrays_of_it.push_back(bytes + offset_of(i));
    try {
      open.cursor->next(arrays_of_it);
    } catch (...) {
      kept_.erase(oldest_.back());
      oldest_.pop_back();
      open.cursor.reset();
      throw;
    }
    if (open.next++ == row) return bytes;
  }
}

std::byte* OrderedSource::keep(std::int64_t row) const {
  while (!oldest_.empty() && (oldest_.size() + 1) * sample_bytes() > kept_bytes_) {
    kept_.erase(oldest_.front());
    oldest_.pop_front();
  }
  if (!kept_.contains(row)) oldest_.push_back(row);
  std::vector<std::byte>& bytes = kept_[row];
  bytes.resize(sample_bytes());
  return bytes.data();
}

}  // namespace superstep::data
