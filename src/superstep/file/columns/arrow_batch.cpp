#include "superstep/file/columns/arrow_batch.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "superstep/base/error.h"
#include "superstep/base/system/free_memory.h"
#include "superstep/file/check.h"

namespace superstep::data::columns {
namespace {

// Field 3: packed buffer by buffer, each behind its length.
Packing packing_of(const FlatTable& compression, const std::string& where) {
  const auto codec = compression.number<std::int8_t>(0, 0);
  if (compression.number<std::int8_t>(1, 0) != 0 || codec < 0 || codec > 1)
    throw Error(ErrorCode::unsupported,
                fmt::format("is packed by codec {} of Arrow, which is not read", codec), where,
                "write it with zstd, LZ4, or not packed");
  return codec == 0 ? Packing::lz4_frame : Packing::zstd;
}

}  // namespace

ArrowBatch read_arrow_batch(const FlatTable& table, const ArrowSchema& schema, std::uint64_t body,
                            std::uint64_t size, const std::string& where) {
  ArrowBatch batch{.rows = table.number<std::int64_t>(0, 0)};
  const auto nodes = table.elements(1, 16), buffers = table.elements(2, 16), more = table.elements(4, 8);
  if (batch.rows < 0 || nodes.count != schema.nodes || more.count != schema.views.size()) table.refuse();
  for (std::size_t i = 0; i < nodes.count; ++i)
    batch.missing.push_back(table.read<std::int64_t>(nodes.begin + 16 * i + 8));
  std::size_t view = 0;
  for (std::size_t i = 0; i < buffers.count; ++i) {
    const auto begin = table.read<std::uint64_t>(buffers.begin + 16 * i);
    const auto length = table.read<std::uint64_t>(buffers.begin + 16 * i + 8);
    if (begin > size || length > size - begin) table.refuse();
    batch.buffers.push_back({body + begin, length});
    // Those that views have beside the two that every one has.
    while (view < schema.views.size() && batch.buffers.size() == schema.views[view]) {
      const auto count = table.read<std::uint64_t>(more.begin + 8 * view++);
      if (count > buffers.count - i - 1) table.refuse();
      i += static_cast<std::size_t>(count);
    }
  }
  if (batch.buffers.size() != schema.buffers) table.refuse();
  if (const auto compression = table.table(3)) {
    batch.is_packed = true;
    batch.packing = packing_of(*compression, where);
  }
  return batch;
}

void BatchReader::damaged() const {
  throw Error(ErrorCode::bad_file, "is damaged: its values are fewer than its batch says", where_);
}

const std::vector<std::byte>& BatchReader::unpacked(std::size_t buffer) {
  const auto [at, fresh] = unpacked_.try_emplace(buffer);
  if (!fresh) return at->second;
  const ArrowBuffer& place = batch_.buffers[buffer];
  if (place.size == 0) return at->second;
  std::vector<std::byte> stored(static_cast<std::size_t>(place.size));
  file_.read(place.begin, stored);
  std::int64_t size = 0;
  if (stored.size() < sizeof size) damaged();
  std::memcpy(&size, stored.data(), sizeof size);
  stored.erase(stored.begin(), stored.begin() + sizeof size);
  if (size == -1) return at->second = std::move(stored);  // it did not become smaller
  if (size < 0) damaged();
  require_plausible_ratio(static_cast<double>(size), static_cast<double>(stored.size()), where_);
  require_memory(static_cast<double>(size), where_);
  at->second.resize(static_cast<std::size_t>(size));
  unpack_into(batch_.packing, stored, at->second, where_);
  return at->second;
}

std::vector<std::byte> BatchReader::part(std::size_t buffer, std::uint64_t offset, std::uint64_t size) {
  if (size == 0) return {};
  if (batch_.is_packed) {
    const std::vector<std::byte>& whole = unpacked(buffer);
    if (offset > whole.size() || size > whole.size() - offset) damaged();
    const auto begin = whole.begin() + static_cast<std::ptrdiff_t>(offset);
    return {begin, begin + static_cast<std::ptrdiff_t>(size)};
  }
  const ArrowBuffer& place = batch_.buffers[buffer];
  if (offset > place.size || size > place.size - offset) damaged();
  std::vector<std::byte> bytes(static_cast<std::size_t>(size));
  file_.read(place.begin + offset, bytes);
  return bytes;
}

std::vector<bool> BatchReader::bits(std::size_t buffer, std::int64_t first, std::int64_t count) {
  if (count == 0) return {};
  const std::int64_t begin = first / 8, end = (first + count + 7) / 8;
  const std::vector<std::byte> bytes =
      part(buffer, static_cast<std::uint64_t>(begin), static_cast<std::uint64_t>(end - begin));
  std::vector<bool> bits(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t at = first % 8 + i;
    bits[static_cast<std::size_t>(i)] =
        (bytes[static_cast<std::size_t>(at / 8)] >> (at % 8) & std::byte{1}) != std::byte{0};
  }
  return bits;
}

std::vector<std::int64_t> BatchReader::offsets(std::size_t buffer, bool wide, std::int64_t first,
                                               std::int64_t count) {
  const std::size_t width = wide ? 8 : 4;
  const std::vector<std::byte> bytes = part(buffer, static_cast<std::uint64_t>(first) * width,
                                            (static_cast<std::uint64_t>(count) + 1) * width);
  std::vector<std::int64_t> offsets(static_cast<std::size_t>(count) + 1);
  for (std::size_t i = 0; i < offsets.size(); ++i) {
    std::int32_t narrow = 0;
    if (wide)
      std::memcpy(&offsets[i], bytes.data() + i * width, width);
    else
      std::memcpy(&narrow, bytes.data() + i * width, width), offsets[i] = narrow;
  }
  if (offsets.front() < 0 || !std::ranges::is_sorted(offsets)) damaged();
  return offsets;
}

std::vector<bool> BatchReader::there(const ArrowNode& node, std::int64_t first, std::int64_t count) {
  if (batch_.missing[node.node] == 0) return {};
  return bits(node.buffer, first, count);
}

}  // namespace superstep::data::columns
