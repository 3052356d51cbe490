#include "superstep/file/zarr/codecs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "superstep/base/error.h"
#include "superstep/file/check.h"
#include "superstep/file/packing/packing.h"
#include "superstep/file/records/crc32c.h"

namespace superstep::data::zarr {
namespace {

using Bytes = std::span<const std::byte>;

[[noreturn]] void damaged(const std::string& where, const char* words) {
  throw Error(ErrorCode::bad_file, fmt::format("is damaged: {}", words), where);
}

std::uint32_t number_at(Bytes bytes, std::size_t at, const std::string& where) {
  if (at > bytes.size() || bytes.size() - at < 4) damaged(where, "it is cut short");
  std::uint32_t number = 0;
  for (std::size_t i = 4; i-- > 0;) number = number << 8 | std::to_integer<std::uint32_t>(bytes[at + i]);
  return number;
}

// Blosc 1 (github.com/Blosc/c-blosc, README_CHUNK_FORMAT.rst): 16 bytes of header, where each block begins,
// and blocks of one stream or of one for each byte of an element, each behind its length.
class Blosc {
 public:
  Blosc(Bytes bytes, std::size_t size, const std::string& where) : bytes_(bytes), where_(where) {
    flags_ = bytes.size() < header ? 0 : std::to_integer<unsigned>(bytes[2]);
    element_ = bytes.size() < header ? 0 : std::to_integer<std::size_t>(bytes[3]);
    if (number_at(bytes, 4, where) != size || number_at(bytes, 12, where) != bytes.size())
      damaged(where, "its header says another length");
    block_ = number_at(bytes, 8, where);
    if (element_ == 0 || (size > 0 && block_ == 0) || block_ > std::max<std::size_t>(size, 1))
      damaged(where, "its header says no blocks");
    if (flags_ & 4)
      throw Error(ErrorCode::unsupported, "has its bits shuffled by Blosc, which is not read", where, advice);
  }

  void unpack(std::span<std::byte> to) const {
    if (flags_ & 2) {
      if (bytes_.size() - header < to.size()) damaged(where_, "it is cut short");
      std::ranges::copy(bytes_.subspan(header, to.size()), to.begin());
      return;
    }
    std::vector<std::byte> shuffled(block_);
    for (std::size_t at = 0, number = 0; at < to.size(); at += block_, ++number) {
      const auto own = to.subspan(at, std::min(block_, to.size() - at));
      const std::span<std::byte> packed =
          (flags_ & 1) && element_ > 1 ? std::span(shuffled).first(own.size()) : own;
      unpack_block(number, packed, own.size() < block_);
      if (packed.data() != own.data()) put_back(packed, own);
    }
  }

 private:
  static constexpr std::size_t header = 16;
  static constexpr const char* advice = "write it with shuffle=1 (bytes), and cname lz4, zstd or zlib";

  void unpack_block(std::size_t number, std::span<std::byte> to, bool last) const {
    std::size_t at = number_at(bytes_, header + 4 * number, where_);
    // Blocks are divided by the bytes of an element where that gains something; the last, shorter one never
    // is.
    const bool divided = !(flags_ & 16) && !last && to.size() % element_ == 0;
    const std::size_t streams = divided ? element_ : 1, each = to.size() / streams;
    for (std::size_t i = 0; i < streams; ++i) {
      const std::size_t length = number_at(bytes_, at, where_);
      at += 4;
      if (length > bytes_.size() - at) damaged(where_, "it is cut short");
      unpack_stream(bytes_.subspan(at, length), to.subspan(i * each, each));
      at += length;
    }
  }

  void unpack_stream(Bytes packed, std::span<std::byte> to) const {
    if (packed.size() == to.size()) {  // it did not become smaller
      std::ranges::copy(packed, to.begin());
      return;
    }
    switch (flags_ >> 5) {
      case 1: return unpack_into(Packing::lz4, packed, to, where_);
      case 3: return unpack_into(Packing::deflate, packed, to, where_);
      case 4: return unpack_into(Packing::zstd, packed, to, where_);
      default:
        throw Error(ErrorCode::unsupported,
                    flags_ >> 5 == 0 ? "is packed by Blosc's blosclz, which is not read"
                                     : "is packed by Blosc's snappy, which is not read",
                    where_, advice);
    }
  }

  // The first bytes of all elements stand before the second ones.
  void put_back(Bytes shuffled, std::span<std::byte> to) const {
    const std::size_t count = to.size() / element_;
    for (std::size_t byte = 0; byte < element_; ++byte)
      for (std::size_t i = 0; i < count; ++i) to[i * element_ + byte] = shuffled[byte * count + i];
    std::ranges::copy(shuffled.subspan(count * element_),
                      to.begin() + static_cast<std::ptrdiff_t>(count * element_));
  }

  Bytes bytes_;
  const std::string& where_;
  unsigned flags_ = 0;
  std::size_t element_ = 0, block_ = 0;
};

}  // namespace

bool is_known(Codec codec) { return codec != Codec::zstd || is_built_in(Packing::zstd); }

std::vector<std::byte> unpack(Codec codec, Bytes packed, std::size_t size, const std::string& where) {
  if (codec == Codec::none || codec == Codec::checksum) {
    const std::size_t sum = codec == Codec::checksum ? 4 : 0;
    if (packed.size() != size + sum) damaged(where, "it has another length than its array says");
    const Bytes own = packed.first(size);
    if (sum > 0 && crc32c(own) != number_at(packed, size, where)) damaged(where, "its checksum is another");
    return {own.begin(), own.end()};
  }
  require_plausible_ratio(static_cast<double>(size), static_cast<double>(packed.size()), where);
  std::vector<std::byte> bytes(size);
  if (codec == Codec::deflate) unpack_into(Packing::deflate, packed, bytes, where);
  if (codec == Codec::zstd) unpack_into(Packing::zstd, packed, bytes, where);
  if (codec == Codec::blosc) Blosc(packed, size, where).unpack(bytes);
  return bytes;
}

}  // namespace superstep::data::zarr
