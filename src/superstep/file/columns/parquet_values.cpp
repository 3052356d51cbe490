// parquet-format, Encodings.md.
#include "superstep/file/columns/parquet_values.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "superstep/base/error.h"
#include "superstep/file/check.h"
#include "superstep/file/columns/hybrid_runs.h"
#include "superstep/file/varint.h"

namespace superstep::data::columns {
namespace {

using Bytes = std::span<const std::byte>;

// Reads numbers of a page; what it is short of is an error.
class PageBytes {
 public:
  PageBytes(Bytes bytes, const std::string& where) : bytes_(bytes), where_(where) {}

  [[noreturn]] void damaged() const {
    throw Error(ErrorCode::bad_file, "is damaged: a page of it does not hold what its header says", where_);
  }
  Bytes take(std::uint64_t count) {
    if (count > bytes_.size()) damaged();
    const Bytes taken = bytes_.first(static_cast<std::size_t>(count));
    bytes_ = bytes_.subspan(taken.size());
    return taken;
  }
  std::uint32_t length() {
    std::uint32_t value = 0;
    std::memcpy(&value, take(sizeof value).data(), sizeof value);
    return value;
  }
  std::uint64_t varint() {
    if (const auto value = read_varint([&] { return take(1)[0]; })) return *value;
    damaged();
  }
  std::uint64_t zigzag() {
    const std::uint64_t value = varint();
    return (value >> 1) ^ (~(value & 1) + 1);
  }
  Bytes rest() const { return bytes_; }
  const std::string& where() const { return where_; }

 private:
  Bytes bytes_;
  const std::string& where_;
};

// Room for what a few bytes may claim to hold.
void require_room(std::size_t count, std::size_t width, Bytes bytes, const std::string& where) {
  require_plausible_ratio(static_cast<double>(count) * static_cast<double>(width),
                          static_cast<double>(bytes.size()), where);
}

Values plain_booleans(PageBytes page, std::size_t count) {
  const Bytes bits = page.take((count + 7) / 8);
  Values values{.count = count, .bytes = std::vector<std::byte>(count)};
  for (std::size_t i = 0; i < count; ++i) values.bytes[i] = bits[i / 8] >> (i % 8) & std::byte{1};
  return values;
}

Values plain_bytes(PageBytes page, std::size_t count) {
  Values values{.count = count};
  values.bytes.reserve(page.rest().size());
  values.begins = {0};
  for (std::size_t i = 0; i < count; ++i) {
    const Bytes one = page.take(page.length());
    values.bytes.insert(values.bytes.end(), one.begin(), one.end());
    values.begins.push_back(values.bytes.size());
  }
  return values;
}

Values plain(const ParquetLeaf& leaf, PageBytes page, std::size_t count) {
  if (leaf.physical == Physical::boolean) return plain_booleans(page, count);
  if (leaf.physical == Physical::bytes) return plain_bytes(page, count);
  const Bytes bytes = page.take(static_cast<std::uint64_t>(count) * value_width(leaf));
  return {.count = count, .bytes = {bytes.begin(), bytes.end()}};
}

void put_gathered(const Values& dictionary, std::span<const std::uint32_t> numbers, std::size_t width,
                  Values& values) {
  if (width > 0) {
    values.bytes.resize(numbers.size() * width);
    for (std::size_t i = 0; i < numbers.size(); ++i)
      std::memcpy(values.bytes.data() + i * width, dictionary.bytes.data() + numbers[i] * width, width);
    return;
  }
  values.begins = {0};
  for (const std::uint32_t number : numbers) {
    const auto begin = dictionary.bytes.begin() + static_cast<std::ptrdiff_t>(dictionary.begins[number]);
    const auto end = dictionary.bytes.begin() + static_cast<std::ptrdiff_t>(dictionary.begins[number + 1]);
    values.bytes.insert(values.bytes.end(), begin, end);
    values.begins.push_back(values.bytes.size());
  }
}

std::size_t gathered_bytes(const Values& dictionary, std::span<const std::uint32_t> numbers) {
  std::size_t size = 0;
  for (const std::uint32_t number : numbers)
    size += static_cast<std::size_t>(dictionary.begins[number + 1] - dictionary.begins[number]);
  return size;
}

Values from_dictionary(const ParquetLeaf& leaf, PageBytes page, std::size_t count, const Values* dictionary) {
  if (!dictionary) page.damaged();
  Values values{.count = count};
  if (count == 0) return values.begins = {0}, values;
  const Bytes whole = page.rest();
  require_room(count, sizeof(std::uint32_t) + value_width(leaf), whole, page.where());
  const int width = std::to_integer<int>(page.take(1)[0]);
  std::vector<std::uint32_t> numbers(count);
  if (width > 32 || !HybridRuns(page.rest(), width).take(numbers)) page.damaged();
  if (std::ranges::max(numbers) >= dictionary->count) page.damaged();
  if (leaf.physical == Physical::bytes) {
    const std::size_t size = gathered_bytes(*dictionary, numbers);
    require_plausible_ratio(static_cast<double>(size),
                            static_cast<double>(whole.size() + dictionary->bytes.size()), page.where());
    values.bytes.reserve(size);
  }
  put_gathered(*dictionary, numbers, value_width(leaf), values);
  return values;
}

Values runs_of_booleans(PageBytes page, std::size_t count) {
  const Bytes runs = page.take(page.length());
  require_room(count, sizeof(std::uint32_t), runs, page.where());
  std::vector<std::uint32_t> numbers(count);
  if (!HybridRuns(runs, 1).take(numbers)) page.damaged();
  Values values{.count = count, .bytes = std::vector<std::byte>(count)};
  std::ranges::transform(numbers, values.bytes.begin(),
                         [](std::uint32_t number) { return static_cast<std::byte>(number); });
  return values;
}

// Differences, less the smallest of a block, in as many bits as the largest of a part of it needs.
std::vector<std::uint64_t> differences(PageBytes& page, std::size_t count) {
  const std::uint64_t block = page.varint(), parts = page.varint(), total = page.varint();
  std::uint64_t value = page.zigzag();
  const std::uint64_t part = parts == 0 ? 0 : block / parts;
  constexpr std::uint64_t most_parts = 1 << 16;  // chosen; writers make four
  if (total != count || parts == 0 || parts > most_parts || part == 0 || part % 32 != 0 ||
      part * parts != block)
    page.damaged();
  require_room(count, sizeof value, page.rest(), page.where());
  std::vector<std::uint64_t> values;
  values.reserve(count);
  if (count > 0) values.push_back(value);
  while (values.size() < count) {
    const std::uint64_t least = page.zigzag();
    const Bytes widths = page.take(parts);
    for (std::size_t i = 0; i < parts && values.size() < count; ++i) {
      const int width = std::to_integer<int>(widths[i]);
      if (width > 64) page.damaged();
      const Bytes packed = page.take(
          std::min<std::uint64_t>(part / 8 * static_cast<std::uint64_t>(width), page.rest().size()));
      const std::size_t some = std::min<std::size_t>(static_cast<std::size_t>(part), count - values.size());
      if (8 * packed.size() < some * static_cast<std::size_t>(width)) page.damaged();
      for (std::size_t j = 0; j < some; ++j)
        values.push_back(value += least + bits_of(packed, j * static_cast<std::size_t>(width), width));
    }
  }
  return values;
}

Values from_differences(const ParquetLeaf& leaf, PageBytes page, std::size_t count) {
  const std::vector<std::uint64_t> numbers = differences(page, count);
  const std::size_t width = value_width(leaf);
  Values values{.count = count, .bytes = std::vector<std::byte>(count * width)};
  for (std::size_t i = 0; i < count; ++i) std::memcpy(values.bytes.data() + i * width, &numbers[i], width);
  return values;
}

// Lengths of all, then all bytes. `shared`: how many of the one before each begins with.
Values from_lengths(PageBytes& page, std::size_t count, std::span<const std::uint64_t> shared) {
  const std::vector<std::uint64_t> lengths = differences(page, count);
  Values values{.count = count};
  const std::size_t packed = page.rest().size();
  values.begins = {0};
  for (std::size_t i = 0; i < count; ++i) {
    if (!shared.empty()) {
      const std::uint64_t last = i == 0 ? 0 : values.begins[i - 1];
      if (shared[i] > values.bytes.size() - last) page.damaged();
      require_plausible_ratio(static_cast<double>(values.bytes.size() + shared[i]),
                              static_cast<double>(packed), page.where());
      values.bytes.reserve(values.bytes.size() + static_cast<std::size_t>(shared[i]));
      for (std::uint64_t j = 0; j < shared[i]; ++j)
        values.bytes.push_back(values.bytes[static_cast<std::size_t>(last + j)]);
    }
    const Bytes own = page.take(lengths[i]);
    values.bytes.insert(values.bytes.end(), own.begin(), own.end());
    values.begins.push_back(values.bytes.size());
  }
  return values;
}

// The first bytes of all values, then all second ones.
Values from_split(const ParquetLeaf& leaf, PageBytes page, std::size_t count) {
  const std::size_t width = value_width(leaf);
  const Bytes split = page.take(static_cast<std::uint64_t>(count) * width);
  Values values{.count = count, .bytes = std::vector<std::byte>(split.size())};
  for (std::size_t byte = 0; byte < width; ++byte)
    for (std::size_t i = 0; i < count; ++i) values.bytes[i * width + byte] = split[byte * count + i];
  return values;
}

bool is_whole(Physical physical) { return physical == Physical::i32 || physical == Physical::i64; }

}  // namespace

std::size_t value_width(const ParquetLeaf& leaf) {
  switch (leaf.physical) {
    case Physical::boolean: return 1;
    case Physical::i32:
    case Physical::f32: return 4;
    case Physical::i64:
    case Physical::f64: return 8;
    case Physical::fixed: return leaf.width;
    default: return 0;
  }
}

Values decode_values(const ParquetLeaf& leaf, std::int64_t encoding, Bytes bytes, std::size_t count,
                     const Values* dictionary, const std::string& where) {
  PageBytes page(bytes, where);
  const bool texts = leaf.physical == Physical::bytes, booleans = leaf.physical == Physical::boolean;
  if (encoding == 0) return plain(leaf, page, count);
  if (encoding == 2 || encoding == 8) return from_dictionary(leaf, page, count, dictionary);
  if (encoding == 3 && booleans) return runs_of_booleans(page, count);
  if (encoding == 5 && is_whole(leaf.physical)) return from_differences(leaf, page, count);
  if (encoding == 6 && texts) return from_lengths(page, count, {});
  if (encoding == 7 && texts) {
    const std::vector<std::uint64_t> shared = differences(page, count);
    return from_lengths(page, count, shared);
  }
  if (encoding == 9 && !texts && !booleans) return from_split(leaf, page, count);
  throw Error(ErrorCode::unsupported,
              fmt::format("is in the encoding {} of Parquet, which is not read", encoding), where,
              "write it anew with the usual encodings");
}

}  // namespace superstep::data::columns
