#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <list>

#include "superstep/base/error.h"
#include "superstep/base/integers.h"
#include "superstep/base/system/free_memory.h"
#include "superstep/base/system/stable_file.h"
#include "superstep/file/source/row_reader.h"
#include "superstep/file/zarr/array.h"
#include "superstep/file/zarr/zarr_form.h"

namespace superstep::data {
namespace {

namespace fs = std::filesystem;
using zarr::Array;

constexpr std::size_t kept_bytes = 64 << 20;  // of unpacked chunks of an array: chosen

// Chunks as they are in memory; those that were used last are kept. Thread-safe.
class Chunks {
 public:
  explicit Chunks(Array array) : array_(std::move(array)) {}
  const Array& array() const { return array_; }
  std::size_t bytes() const {
    return static_cast<std::size_t>(array_.chunk.element_count()) * size_in_bytes(array_.type);
  }

  using Chunk = std::shared_ptr<const std::vector<std::byte>>;
  Chunk at(const std::vector<std::int64_t>& numbers) const {
    {
      const std::lock_guard lock(mutex_);
      for (auto each = kept_.begin(); each != kept_.end(); ++each)
        if (each->first == numbers) {
          kept_.splice(kept_.begin(), kept_, each);
          return each->second;
        }
    }
    const auto chunk = std::make_shared<const std::vector<std::byte>>(load(numbers));
    const std::lock_guard lock(mutex_);
    kept_.emplace_front(numbers, chunk);
    while (kept_.size() > 1 && kept_.size() * bytes() > kept_bytes) kept_.pop_back();
    return chunk;
  }

 private:
  std::vector<std::byte> load(const std::vector<std::int64_t>& numbers) const {
    const fs::path path = array_.chunk_path(numbers);
    require_memory(static_cast<double>(bytes()), array_.where());
    std::error_code none;
    if (!fs::exists(path, none)) return filled();
    const StableFile file(path);
    std::vector<std::byte> packed(file.size());
    file.read(0, packed);
    file.require_unchanged();
    // The one that was applied last comes off first. Only the last that remains says how long the numbers
    // are.
    for (std::size_t i = array_.codecs.size(); i-- > 0;) {
      const bool outer = array_.codecs[i] == zarr::Codec::checksum && i > 0;
      const std::size_t size = outer ? packed.size() - std::min<std::size_t>(packed.size(), 4) : bytes();
      packed = zarr::unpack(array_.codecs[i], packed, size, path.string());
    }
    if (array_.codecs.empty()) packed = zarr::unpack(zarr::Codec::none, packed, bytes(), path.string());
    put_in_order(packed);
    return packed;
  }

  std::vector<std::byte> filled() const {
    const Tensor fill = Tensor::full(array_.type, array_.chunk, array_.fill);
    return {fill.bytes(), fill.bytes() + fill.byte_count()};
  }

  void put_in_order(std::vector<std::byte>& bytes) const {
    const std::size_t width = size_in_bytes(array_.type);
    for (std::size_t at = 0; array_.swapped && at < bytes.size(); at += width)
      std::ranges::reverse(std::span(bytes).subspan(at, width));
    if (array_.type != ElementType::boolean) return;
    for (std::byte& byte : bytes) byte = std::byte{byte != std::byte{0}};
  }

  Array array_;
  mutable std::mutex mutex_;
  mutable std::list<std::pair<std::vector<std::int64_t>, Chunk>> kept_;  // the last used first
};

// A row of the first axis: what each chunk that it goes through has of it.
class RowsOfChunks : public RowReader {
 public:
  explicit RowsOfChunks(Array array) : chunks_(std::move(array)) {}

  void read(std::span<const std::int64_t> rows, std::byte* to) const override {
    const Array& array = chunks_.array();
    if (array.shape.rank() == 0) {
      const auto chunk = chunks_.at({});
      std::memcpy(to, chunk->data(), chunk->size());
      return;
    }
    const auto row_bytes =
        static_cast<std::size_t>(array.shape.element_count() / array.shape[0]) * size_in_bytes(array.type);
    for (std::size_t i = 0; i < rows.size(); ++i) read_row(rows[i], to + i * row_bytes);
  }

 private:
  void read_row(std::int64_t row, std::byte* to) const {
    const Array& array = chunks_.array();
    std::vector<std::int64_t> numbers(static_cast<std::size_t>(array.shape.rank()));
    numbers[0] = row / array.chunk[0];
    for (;;) {
      copy(*chunks_.at(numbers), numbers, row % array.chunk[0], to);
      std::size_t axis = numbers.size() - 1;
      for (; axis > 0; --axis) {
        const int a = static_cast<int>(axis);
        if (++numbers[axis] < ceil_div(array.shape[a], array.chunk[a])) break;
        numbers[axis] = 0;
      }
      if (axis == 0) return;
    }
  }

  // What of row `inside` of the chunk lies in the array.
  void copy(const std::vector<std::byte>& chunk, const std::vector<std::int64_t>& numbers,
            std::int64_t inside, std::byte* to) const {
    const Array& array = chunks_.array();
    copy_axis(chunk.data(), numbers, 1, inside, 0, array.shape.rank(), to);
  }

  void copy_axis(const std::byte* chunk, const std::vector<std::int64_t>& numbers, int axis,
                 std::int64_t from, std::int64_t at, int rank, std::byte* to) const {
    const Array& array = chunks_.array();
    const std::size_t width = size_in_bytes(array.type);
    if (axis == rank) {
      std::memcpy(to + static_cast<std::size_t>(at) * width, chunk + static_cast<std::size_t>(from) * width,
                  width);
      return;
    }
    const std::int64_t begin = numbers[static_cast<std::size_t>(axis)] * array.chunk[axis];
    const std::int64_t count = std::min(array.chunk[axis], array.shape[axis] - begin);
    if (axis + 1 == rank) {
      std::memcpy(to + static_cast<std::size_t>(at * array.shape[axis] + begin) * width,
                  chunk + static_cast<std::size_t>(from * array.chunk[axis]) * width,
                  static_cast<std::size_t>(count) * width);
      return;
    }
    for (std::int64_t i = 0; i < count; ++i)
      copy_axis(chunk, numbers, axis + 1, from * array.chunk[axis] + i, at * array.shape[axis] + begin + i,
                rank, to);
  }

  Chunks chunks_;
};

}  // namespace

bool is_zarr(const fs::path& path) { return zarr::is_store(path); }

std::unique_ptr<SampleSource> open_zarr(const fs::path& path, const SourceRequest&) {
  auto source = std::make_unique<ArraySource>(path.string(), "array");
  std::vector<std::string> others;
  for (Array& array : zarr::arrays_of(path, others)) {
    const SourceArray rows = array_of(array.name, array.type, array.shape);
    source->add(rows, std::make_unique<RowsOfChunks>(std::move(array)));
  }
  for (std::string& other : others) source->add_other(std::move(other));
  if (source->arrays().empty())
    throw Error(ErrorCode::bad_file, "holds no array that can be read", path.string(),
                others.empty() ? "" : "it has " + source->others().front());
  return source;
}

}  // namespace superstep::data
