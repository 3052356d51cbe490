#include "superstep/file/columns/parquet_pages.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "superstep/base/error.h"
#include "superstep/base/system/free_memory.h"
#include "superstep/file/check.h"
#include "superstep/file/columns/hybrid_runs.h"

namespace superstep::data::columns {
namespace {

using Bytes = std::span<const std::byte>;

[[noreturn]] void damaged(const std::string& where, const char* what) {
  throw Error(ErrorCode::bad_file, fmt::format("is damaged: {}", what), where);
}

std::vector<std::byte> unpacked(Packing packing, Bytes packed, std::uint64_t size, const std::string& where) {
  require_plausible_ratio(static_cast<double>(size), static_cast<double>(packed.size()), where);
  require_memory(static_cast<double>(size), where);
  std::vector<std::byte> bytes(static_cast<std::size_t>(size));
  if (!bytes.empty() || packing == Packing::none) unpack_into(packing, packed, bytes, where);
  return bytes;
}

// A page as it is in the file, its checksum held against it.
std::vector<std::byte> stored(const StableFile& file, const PageHeader& header, const std::string& where) {
  require_memory(static_cast<double>(header.packed), where);
  std::vector<std::byte> bytes(static_cast<std::size_t>(header.packed));
  file.read(header.begin, bytes);
  if (header.has_sum) {
    const uLong sum = crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size());
    if (static_cast<std::uint32_t>(sum) != header.sum) damaged(where, "the checksum of a page is another");
  }
  return bytes;
}

std::vector<std::uint8_t> levels_in(Bytes bytes, int most, std::size_t count, const std::string& where) {
  if (most == 0) return {};
  require_plausible_ratio(static_cast<double>(count) * sizeof(std::uint32_t),
                          static_cast<double>(bytes.size()), where);
  std::vector<std::uint32_t> wide(count);
  const int width = std::bit_width(static_cast<unsigned>(most));
  if (!HybridRuns(bytes, width).take(wide)) damaged(where, "the levels of a page end too early");
  std::vector<std::uint8_t> levels(count);
  for (std::size_t i = 0; i < count; ++i) {
    if (wide[i] > static_cast<std::uint32_t>(most))
      damaged(where, "a page has levels that its column has not");
    levels[i] = static_cast<std::uint8_t>(wide[i]);
  }
  return levels;
}

// Of the first kind of pages: the length, and the levels behind it.
Bytes behind_length(Bytes& page, const std::string& where) {
  std::uint32_t size = 0;
  if (page.size() < sizeof size) damaged(where, "a page of it is cut short");
  std::memcpy(&size, page.data(), sizeof size);
  page = page.subspan(sizeof size);
  if (size > page.size()) damaged(where, "a page of it is cut short");
  const Bytes levels = page.first(size);
  page = page.subspan(size);
  return levels;
}

std::size_t values_there(const Levels& levels, const ParquetLeaf& leaf, std::size_t count) {
  if (leaf.most_defined == 0) return count;
  return static_cast<std::size_t>(
      std::ranges::count(levels.defined, static_cast<std::uint8_t>(leaf.most_defined)));
}

DecodedPage first_kind(const ParquetLeaf& leaf, Packing packing, const PageHeader& header, Bytes packed,
                       const Values* dictionary, const std::string& where) {
  constexpr std::int64_t runs = 3;
  if ((leaf.most_repeated > 0 && header.repeated_encoding != runs) ||
      (leaf.most_defined > 0 && header.defined_encoding != runs))
    throw Error(ErrorCode::unsupported, "has its levels in an encoding that is not read", where,
                "write it anew with a writer of this decade");
  const std::vector<std::byte> whole = unpacked(packing, packed, header.unpacked, where);
  const auto count = static_cast<std::size_t>(header.values);
  Bytes page = whole;
  DecodedPage decoded;
  if (leaf.most_repeated > 0)
    decoded.levels.repeated = levels_in(behind_length(page, where), leaf.most_repeated, count, where);
  if (leaf.most_defined > 0)
    decoded.levels.defined = levels_in(behind_length(page, where), leaf.most_defined, count, where);
  decoded.values = decode_values(leaf, header.encoding, page, values_there(decoded.levels, leaf, count),
                                 dictionary, where);
  return decoded;
}

DecodedPage second_kind(const ParquetLeaf& leaf, Packing packing, const PageHeader& header, Bytes packed,
                        const Values* dictionary, const std::string& where) {
  const std::uint64_t most = std::min<std::uint64_t>(packed.size(), header.unpacked);
  if (header.repeated_bytes > most || header.defined_bytes > most - header.repeated_bytes)
    damaged(where, "the levels of a page are longer than the page");
  const std::uint64_t levels = header.repeated_bytes + header.defined_bytes;
  const auto count = static_cast<std::size_t>(header.values);
  DecodedPage decoded;
  decoded.levels.repeated = levels_in(packed.first(header.repeated_bytes), leaf.most_repeated, count, where);
  decoded.levels.defined =
      levels_in(packed.subspan(header.repeated_bytes, header.defined_bytes), leaf.most_defined, count, where);
  const std::vector<std::byte> page = unpacked(header.is_packed ? packing : Packing::none,
                                               packed.subspan(levels), header.unpacked - levels, where);
  decoded.values = decode_values(leaf, header.encoding, page, values_there(decoded.levels, leaf, count),
                                 dictionary, where);
  return decoded;
}

}  // namespace

ParquetPages pages_of(const StableFile& file, const ColumnChunk& chunk, const std::string& where) {
  ParquetPages pages;
  const std::uint64_t end = chunk.begin + chunk.size;
  std::int64_t values = 0;
  for (std::uint64_t at = chunk.begin; values < chunk.values;) {
    if (at >= end) damaged(where, "a column has fewer values than its group says");
    const PageHeader header = read_page_header(file, at, end, where);
    at = header.begin + header.packed;
    if (header.kind == PageHeader::Kind::dictionary) pages.dictionary = header;
    if (header.kind != PageHeader::Kind::data && header.kind != PageHeader::Kind::data_2) continue;
    pages.data.push_back({header, values});
    values += header.values;
  }
  if (values != chunk.values) damaged(where, "a column has more values than its group says");
  file.require_unchanged();
  return pages;
}

DecodedPage decode_page(const StableFile& file, const ParquetLeaf& leaf, const ColumnChunk& chunk,
                        const PageHeader& header, const Values* dictionary, const std::string& where) {
  const std::vector<std::byte> packed = stored(file, header, where);
  file.require_unchanged();
  return header.kind == PageHeader::Kind::data
             ? first_kind(leaf, chunk.packing, header, packed, dictionary, where)
             : second_kind(leaf, chunk.packing, header, packed, dictionary, where);
}

Values decode_dictionary(const StableFile& file, const ParquetLeaf& leaf, const ColumnChunk& chunk,
                         const PageHeader& header, const std::string& where) {
  const std::vector<std::byte> bytes =
      unpacked(chunk.packing, stored(file, header, where), header.unpacked, where);
  file.require_unchanged();
  if (header.encoding != 0 && header.encoding != 2)
    throw Error(ErrorCode::unsupported, "has a dictionary in an encoding that is not read", where);
  return decode_values(leaf, 0, bytes, static_cast<std::size_t>(header.values), nullptr, where);
}

}  // namespace superstep::data::columns
