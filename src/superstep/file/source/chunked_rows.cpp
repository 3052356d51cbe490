#include "superstep/file/source/chunked_rows.h"

#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <list>
#include <unordered_map>

#include "superstep/base/error.h"

namespace superstep::data {
namespace {

using Bytes = std::vector<std::byte>;
using Chunk = std::shared_ptr<const Bytes>;

constexpr std::size_t kept_bytes = 64 << 20;  // of unpacked chunks: chosen, some of the largest usual ones

// The last chunks that were asked for. Thread-safe; two that want the same one at once may both unpack it.
class LastChunks {
 public:
  Chunk find(std::size_t number) {
    const std::lock_guard lock(mutex_);
    const auto found = by_number_.find(number);
    if (found == by_number_.end()) return nullptr;
    order_.splice(order_.begin(), order_, found->second);
    return found->second->second;
  }
  void keep(std::size_t number, const Chunk& chunk) {
    const std::lock_guard lock(mutex_);
    if (by_number_.contains(number)) return;
    order_.emplace_front(number, chunk);
    by_number_[number] = order_.begin();
    bytes_ += chunk->size();
    while (bytes_ > kept_bytes && order_.size() > 1) {
      bytes_ -= order_.back().second->size();
      by_number_.erase(order_.back().first);
      order_.pop_back();
    }
  }

 private:
  std::mutex mutex_;
  std::list<std::pair<std::size_t, Chunk>> order_;
  std::unordered_map<std::size_t, std::list<std::pair<std::size_t, Chunk>>::iterator> by_number_;
  std::size_t bytes_ = 0;
};

Bytes inflated(const Bytes& packed, std::size_t size, const std::string& where) {
  Bytes bytes(size);
  auto length = static_cast<uLongf>(size);
  const int code = ::uncompress(reinterpret_cast<Bytef*>(bytes.data()), &length,
                                reinterpret_cast<const Bytef*>(packed.data()), packed.size());
  if (code == Z_OK && length == size) return bytes;
  throw Error(ErrorCode::bad_file, "a chunk of it is damaged: it does not unpack to its size", where,
              "copy or generate it again");
}

// All first bytes of the elements, then all second ones, ...; what is left over behind them as it is (HDF5
// File Format, the shuffle filter).
Bytes unshuffled(const Bytes& shuffled, std::size_t width) {
  Bytes bytes(shuffled.size());
  const std::size_t count = shuffled.size() / width;
  for (std::size_t part = 0; part < width; ++part)
    for (std::size_t i = 0; i < count; ++i) bytes[i * width + part] = shuffled[part * count + i];
  std::copy(shuffled.begin() + static_cast<std::ptrdiff_t>(count * width), shuffled.end(),
            bytes.begin() + static_cast<std::ptrdiff_t>(count * width));
  return bytes;
}

class RowsOfChunks : public RowReader {
 public:
  RowsOfChunks(std::shared_ptr<const StableFile> file, const DataSetPlace& place, const SourceArray& array,
               std::string where)
      : file_(std::move(file)),
        place_(place),
        extents_(elements_of(place, array)),
        row_bytes_(array.row_bytes()),
        boolean_(array.type == ElementType::boolean),
        where_(std::move(where)) {
    chunk_bytes_ = place_.element_bytes;
    for (std::size_t axis = 0; axis < extents_.size(); ++axis) {
      chunk_bytes_ *= static_cast<std::size_t>(place_.chunk[axis]);
      grid_.push_back((extents_[axis] + place_.chunk[axis] - 1) / place_.chunk[axis]);
      if (axis > 0) across_ *= grid_.back();
    }
    whole_rows_ = std::equal(extents_.begin() + 1, extents_.end(), place_.chunk.begin() + 1);
  }

  // Extents of the file: complex numbers are one element there.
  static std::vector<std::int64_t> elements_of(const DataSetPlace& place, const SourceArray& array) {
    std::vector<std::int64_t> extents = array.shape().extents();
    if (place.element_bytes == 2 * size_in_bytes(array.type)) extents.pop_back();
    return extents;
  }

  void read(std::span<const std::int64_t> rows, std::byte* to) const override {
    for_runs(rows, row_bytes_, to, [&](std::int64_t first, std::int64_t count, std::byte* at) {
      for (std::int64_t done = 0; done < count;) {
        const std::int64_t row = first + done, in_chunk = row % place_.chunk[0];
        const std::int64_t some = std::min(count - done, place_.chunk[0] - in_chunk);
        read_some(row / place_.chunk[0], in_chunk, some, at + static_cast<std::size_t>(done) * row_bytes_);
        done += some;
      }
    });
    file_->require_unchanged();
    if (!boolean_) return;
    for (std::byte& byte : std::span(to, rows.size() * row_bytes_)) byte = std::byte{byte != std::byte{0}};
  }

 private:
  // Rows of one row of chunks.
  void read_some(std::int64_t chunk_row, std::int64_t in_chunk, std::int64_t count, std::byte* to) const {
    const auto first = static_cast<std::size_t>(chunk_row * across_);
    const auto rows = static_cast<std::size_t>(count);
    if (whole_rows_ && !place_.deflated && !place_.shuffled)
      return file_->read(place_.at[first] + static_cast<std::uint64_t>(in_chunk) * row_bytes_,
                         {to, rows * row_bytes_});
    for (std::size_t column = 0; column < static_cast<std::size_t>(across_); ++column) {
      const Chunk chunk = unpacked(first + column);
      for (std::size_t row = 0; row < rows; ++row)
        copy_part(*chunk, column, in_chunk + static_cast<std::int64_t>(row), to + row * row_bytes_);
    }
  }

  Chunk unpacked(std::size_t number) const {
    if (const Chunk kept = last_.find(number)) return kept;
    Bytes bytes(place_.stored[number]);
    file_->read(place_.at[number], bytes);
    if (place_.deflated) bytes = inflated(bytes, chunk_bytes_, where_);
    if (place_.shuffled) bytes = unshuffled(bytes, place_.element_bytes);
    auto chunk = std::make_shared<const Bytes>(std::move(bytes));
    last_.keep(number, chunk);
    return chunk;
  }

  // Of one row what lies in the chunk of this column of the grid: runs along the last axis.
  void copy_part(const Bytes& chunk, std::size_t column, std::int64_t in_chunk, std::byte* row) const {
    const std::size_t rank = extents_.size();
    std::vector<std::int64_t> begin(rank, 0), count(rank, 1), at(rank, 0);
    for (std::size_t axis = rank; axis-- > 1; column /= static_cast<std::size_t>(grid_[axis])) {
      begin[axis] =
          static_cast<std::int64_t>(column % static_cast<std::size_t>(grid_[axis])) * place_.chunk[axis];
      count[axis] = std::min(place_.chunk[axis], extents_[axis] - begin[axis]);
    }
    const std::size_t run = static_cast<std::size_t>(rank > 1 ? count[rank - 1] : 1) * place_.element_bytes;
    for (;;) {
      std::int64_t from = in_chunk, to = 0;
      for (std::size_t axis = 1; axis < rank; ++axis) {
        from = from * place_.chunk[axis] + at[axis];
        to = to * extents_[axis] + begin[axis] + at[axis];
      }
      std::memcpy(row + static_cast<std::size_t>(to) * place_.element_bytes,
                  chunk.data() + static_cast<std::size_t>(from) * place_.element_bytes, run);
      std::size_t axis = rank > 1 ? rank - 1 : 0;
      while (axis-- > 1) {
        if (++at[axis] < count[axis]) break;
        at[axis] = 0;
      }
      if (axis == 0 || axis > rank) return;
    }
  }

  std::shared_ptr<const StableFile> file_;
  DataSetPlace place_;
  std::vector<std::int64_t> extents_, grid_;
  std::int64_t across_ = 1;  // chunks that a row reaches over
  std::size_t row_bytes_, chunk_bytes_ = 0;
  bool boolean_, whole_rows_ = false;
  std::string where_;
  mutable LastChunks last_;
};

// What the file says of itself is held against the file before anything is allocated by it.
bool fits(const DataSetPlace& place, const SourceArray& array, const StableFile& file) {
  const std::uint64_t size = file.size();
  if (place.chunk.empty())
    return place.begin <= size && array.bytes() <= static_cast<double>(size - place.begin);
  const std::vector<std::int64_t> extents = RowsOfChunks::elements_of(place, array);
  if (place.chunk.size() != extents.size() || place.at.size() != place.stored.size()) return false;
  double chunks = 1, bytes = static_cast<double>(place.element_bytes);
  for (std::size_t axis = 0; axis < extents.size(); ++axis) {
    if (place.chunk[axis] < 1) return false;
    chunks *= static_cast<double>((extents[axis] + place.chunk[axis] - 1) / place.chunk[axis]);
    bytes *= static_cast<double>(place.chunk[axis]);
  }
  constexpr double most_of_a_chunk = 1e9;  // one larger is for the library, which holds it against memory
  if (static_cast<double>(place.at.size()) != chunks || bytes > most_of_a_chunk) return false;
  for (std::size_t i = 0; i < place.at.size(); ++i) {
    if (place.at[i] > size || place.stored[i] > size - place.at[i]) return false;
    if (!place.deflated && static_cast<double>(place.stored[i]) != bytes) return false;
  }
  return true;
}

}  // namespace

std::unique_ptr<RowReader> rows_at(const DataSetPlace& place, const SourceArray& array,
                                   const std::string& where) {
  if (array.single || array.row_bytes() == 0) return nullptr;
  auto file = std::make_shared<const StableFile>(place.file);
  if (!fits(place, array, *file)) return nullptr;
  if (!place.chunk.empty()) return std::make_unique<RowsOfChunks>(std::move(file), place, array, where);
  return rows_of_file(
      std::move(file),
      {.begin = place.begin, .row_bytes = array.row_bytes(), .boolean = array.type == ElementType::boolean});
}

}  // namespace superstep::data
