#include "superstep/file/packing/packing.h"

#include <fmt/format.h>
#include <zlib.h>
#ifdef SUPERSTEP_ZSTD
#include <zstd.h>
#endif
#ifdef SUPERSTEP_LZ4
#include <lz4.h>
#include <lz4frame.h>
#endif

#include <algorithm>
#include <cstring>
#include <limits>

#include "superstep/base/error.h"
#include "superstep/file/packing/snappy.h"

namespace superstep::data {
namespace {

using Bytes = std::span<const std::byte>;

// False: damaged, or of another length.
bool inflate_into(Bytes packed, std::span<std::byte> to, const std::string& where) {
  constexpr std::size_t most = std::numeric_limits<uInt>::max();
  if (packed.size() > most || to.size() > most)
    throw Error(ErrorCode::unsupported, "has a packed piece of more than 4 GB", where);
  z_stream stream{};
  constexpr int either = 32 + MAX_WBITS;  // by the header
  if (inflateInit2(&stream, either) != Z_OK)
    throw Error(ErrorCode::out_of_memory, "no memory to unpack it", where);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(packed.data()));
  stream.avail_in = static_cast<uInt>(packed.size());
  std::byte none{};
  stream.next_out = reinterpret_cast<Bytef*>(to.empty() ? &none : to.data());
  stream.avail_out = static_cast<uInt>(to.size());
  const int state = inflate(&stream, Z_FINISH);
  inflateEnd(&stream);
  return state == Z_STREAM_END && stream.avail_out == 0;
}

#ifdef SUPERSTEP_ZSTD
bool zstd_into(Bytes packed, std::span<std::byte> to) {
  return ZSTD_decompress(to.data(), to.size(), packed.data(), packed.size()) == to.size();
}
#endif

#ifdef SUPERSTEP_LZ4
bool lz4_into(Bytes packed, std::span<std::byte> to) {
  constexpr std::size_t most = std::numeric_limits<int>::max();
  if (packed.size() > most || to.size() > most) return false;
  const int got =
      LZ4_decompress_safe(reinterpret_cast<const char*>(packed.data()), reinterpret_cast<char*>(to.data()),
                          static_cast<int>(packed.size()), static_cast<int>(to.size()));
  return got == static_cast<int>(to.size());
}

bool lz4_frame_into(Bytes packed, std::span<std::byte> to) {
  LZ4F_dctx* context = nullptr;
  if (LZ4F_isError(LZ4F_createDecompressionContext(&context, LZ4F_VERSION))) return false;
  std::size_t from = 0, done = 0, left = 1;
  while (left != 0) {
    std::size_t taken = packed.size() - from, made = to.size() - done;
    left =
        LZ4F_decompress(context, to.data() + done, &made, packed.data() + from, &taken, /*options=*/nullptr);
    from += taken, done += made;
    if (LZ4F_isError(left) || (left != 0 && taken == 0 && made == 0)) break;
  }
  LZ4F_freeDecompressionContext(context);
  return left == 0 && done == to.size();
}
#endif

bool unpacks(Packing packing, Bytes packed, std::span<std::byte> to, const std::string& where) {
  switch (packing) {
    case Packing::none:
      if (packed.size() != to.size()) return false;
      std::ranges::copy(packed, to.begin());
      return true;
    case Packing::deflate: return inflate_into(packed, to, where);
    case Packing::snappy: return unpack_snappy(packed, to);
#ifdef SUPERSTEP_ZSTD
    case Packing::zstd: return zstd_into(packed, to);
#endif
#ifdef SUPERSTEP_LZ4
    case Packing::lz4: return lz4_into(packed, to);
    case Packing::lz4_frame: return lz4_frame_into(packed, to);
#endif
    default: break;
  }
  throw Error(ErrorCode::unsupported,
              fmt::format("is packed by {}, which this program was built without", name_of(packing)), where,
              "build it where the library is installed (tools/setup), or write the file without packing");
}

}  // namespace

bool is_built_in([[maybe_unused]] Packing packing) {
#ifndef SUPERSTEP_ZSTD
  if (packing == Packing::zstd) return false;
#endif
#ifndef SUPERSTEP_LZ4
  if (packing == Packing::lz4 || packing == Packing::lz4_frame) return false;
#endif
  return true;
}

const char* name_of(Packing packing) {
  switch (packing) {
    case Packing::none: return "nothing";
    case Packing::deflate: return "deflate";
    case Packing::zstd: return "zstd";
    case Packing::lz4:
    case Packing::lz4_frame: return "LZ4";
    case Packing::snappy: break;
  }
  return "Snappy";
}

void unpack_into(Packing packing, Bytes packed, std::span<std::byte> to, const std::string& where) {
  if (!unpacks(packing, packed, to, where))
    throw Error(ErrorCode::bad_file, "is damaged: its stream is not what it should be", where);
}

}  // namespace superstep::data
