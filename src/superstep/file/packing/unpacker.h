// Streams of gzip and zstd, unpacked from their beginning on, or from a place in between that was kept.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "superstep/base/system/stable_file.h"

namespace superstep::data {

// Where unpacking can begin: what is needed for that.
struct UnpackPlace {
  std::uint64_t packed = 0, unpacked = 0;  // bytes from the beginnings
  // Of gzip, inside a member: the bits of the byte before that belong to what follows, and the last 32 KB.
  // Else none: a member or frame begins.
  int bits = 0;
  std::vector<std::byte> window = {};
};

class Unpacker {
 public:
  virtual ~Unpacker() = default;
  // Fills `to`, or as much of it as there is before the end. Throws Error (bad_file) where it is damaged or
  // cut short.
  virtual std::size_t take(std::span<std::byte> to) = 0;
  virtual std::uint64_t position() const = 0;         // in the unpacked bytes
  virtual std::uint64_t packed_position() const = 0;  // in the file
};

enum class StreamForm : std::uint8_t { plain, gzip, zstd };
// By the first bytes of a file.
StreamForm stream_form_of(std::span<const std::byte> begin);
constexpr std::size_t stream_mark_bytes = 4;

// From `place` on. `found` is called, while it goes on, with places to begin at later that are `apart` bytes
// or more from one another; none: with no place. Without it nothing holds what is unpacked against the
// checksums of gzip, which a first reader has done. Throws Error (unsupported) where the program was built
// without zstd.
using FoundPlace = std::function<void(UnpackPlace place)>;
std::unique_ptr<Unpacker> open_unpacker(const StableFile& file, StreamForm form,
                                        const UnpackPlace& place = {}, std::uint64_t apart = 0,
                                        FoundPlace found = {});

}  // namespace superstep::data
