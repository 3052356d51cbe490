#include "superstep/file/zarr/codecs.h"

#include <fmt/format.h>
#include <zlib.h>
#ifdef SUPERSTEP_ZSTD
#include <zstd.h>
#endif
#ifdef SUPERSTEP_LZ4
#include <lz4.h>
#endif

#include <algorithm>
#include <cstring>

#include "superstep/base/error.h"
#include "superstep/file/check.h"
#include "superstep/file/records/crc32c.h"

namespace superstep::data::zarr {
namespace {

using Bytes = std::span<const std::byte>;

[[noreturn]] void damaged(const std::string& where, const char* words) {
  throw Error(ErrorCode::bad_file, fmt::format("is damaged: {}", words), where);
}

// zlib's stream or gzip's.
void inflate_into(Bytes packed, std::span<std::byte> to, const std::string& where) {
  z_stream stream{};
  constexpr int either = 32 + MAX_WBITS;  // by the header
  if (inflateInit2(&stream, either) != Z_OK)
    throw Error(ErrorCode::out_of_memory, "no memory to unpack it", where);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(packed.data()));
  stream.avail_in = static_cast<uInt>(packed.size());
  stream.next_out = reinterpret_cast<Bytef*>(to.data());
  stream.avail_out = static_cast<uInt>(to.size());
  const int state = inflate(&stream, Z_FINISH);
  inflateEnd(&stream);
  if (state != Z_STREAM_END || stream.avail_out != 0) damaged(where, "its stream is not what it should be");
}

void zstd_into([[maybe_unused]] Bytes packed, [[maybe_unused]] std::span<std::byte> to,
               const std::string& where) {
#ifdef SUPERSTEP_ZSTD
  if (ZSTD_decompress(to.data(), to.size(), packed.data(), packed.size()) != to.size())
    damaged(where, "its stream is not what it should be");
#else
  throw Error(ErrorCode::unsupported, "is packed by zstd, which this program was built without", where);
#endif
}

void lz4_into([[maybe_unused]] Bytes packed, [[maybe_unused]] std::span<std::byte> to,
              const std::string& where) {
#ifdef SUPERSTEP_LZ4
  const int got =
      LZ4_decompress_safe(reinterpret_cast<const char*>(packed.data()), reinterpret_cast<char*>(to.data()),
                          static_cast<int>(packed.size()), static_cast<int>(to.size()));
  if (got != static_cast<int>(to.size())) damaged(where, "its stream is not what it should be");
#else
  throw Error(ErrorCode::unsupported, "is packed by lz4, which this program was built without", where);
#endif
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
      case 1: return lz4_into(packed, to, where_);
      case 3: return inflate_into(packed, to, where_);
      case 4: return zstd_into(packed, to, where_);
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

bool is_known([[maybe_unused]] Codec codec) {
#ifndef SUPERSTEP_ZSTD
  if (codec == Codec::zstd) return false;
#endif
  return true;
}

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
  if (codec == Codec::deflate) inflate_into(packed, bytes, where);
  if (codec == Codec::zstd) zstd_into(packed, bytes, where);
  if (codec == Codec::blosc) Blosc(packed, size, where).unpack(bytes);
  return bytes;
}

}  // namespace superstep::data::zarr
