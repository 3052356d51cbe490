#include "superstep/file/packing/unpacker.h"

#include <fmt/format.h>
#include <zlib.h>
#ifdef SUPERSTEP_ZSTD
#include <zstd.h>
#endif

#include <algorithm>
#include <cstring>

#include "superstep/base/error.h"

namespace superstep::data {
namespace {

constexpr std::size_t piece = 128 << 10;  // of the file, read at a time: chosen

// The file's bytes, a piece at a time.
class PackedBytes {
 public:
  PackedBytes(const StableFile& file, std::uint64_t at) : file_(file), next_(at) {}

  // What is left of the piece, the next one where none is; empty: the file has ended.
  std::span<const std::byte> left() {
    if (at_ == bytes_.size() && next_ < file_.size()) {
      bytes_.resize(static_cast<std::size_t>(std::min<std::uint64_t>(piece, file_.size() - next_)));
      file_.read(next_, bytes_);
      next_ += bytes_.size(), at_ = 0;
    }
    return std::span(bytes_).subspan(at_);
  }
  void pass(std::size_t count) { at_ += count; }
  std::uint64_t position() const { return next_ - (bytes_.size() - at_); }
  const StableFile& file() const { return file_; }

 private:
  const StableFile& file_;
  std::uint64_t next_;
  std::vector<std::byte> bytes_;
  std::size_t at_ = 0;
};

[[noreturn]] void refuse(const StableFile& file, const std::string& message) {
  file.require_unchanged();
  throw Error(ErrorCode::bad_file, message, file.path().string(),
              "copy it again, or unpack it with gzip or zstd to see how far it goes");
}

// Members of gzip, one behind the other, as `pigz` and `bgzip` write them too (RFC 1952). Places inside of a
// member are those between two blocks of deflate, where zlib stops when it is asked to.
class GzipUnpacker : public Unpacker {
 public:
  GzipUnpacker(const StableFile& file, const UnpackPlace& place, std::uint64_t apart, FoundPlace found)
      : bytes_(file, place.packed - (place.bits > 0 ? 1 : 0)),
        position_(place.unpacked),
        last_place_(place.unpacked),
        apart_(apart),
        found_(std::move(found)) {
    inside_ = !place.window.empty();
    start(inside_);
    if (!inside_) return;
    if (place.bits > 0) {
      const int value = std::to_integer<int>(bytes_.left()[0]);
      bytes_.pass(1);
      inflatePrime(&stream_, place.bits, value >> (8 - place.bits));
    }
    inflateSetDictionary(&stream_, reinterpret_cast<const Bytef*>(place.window.data()),
                         static_cast<uInt>(place.window.size()));
  }
  ~GzipUnpacker() override { inflateEnd(&stream_); }
  GzipUnpacker(const GzipUnpacker&) = delete;
  GzipUnpacker& operator=(const GzipUnpacker&) = delete;

  std::size_t take(std::span<std::byte> to) override {
    std::size_t done = 0;
    while (done < to.size() && !ended_) {
      const auto in = bytes_.left();
      if (in.empty()) refuse(bytes_.file(), "is cut short: its last member of gzip does not end");
      stream_.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(in.data()));
      stream_.avail_in = static_cast<uInt>(in.size());
      stream_.next_out = reinterpret_cast<Bytef*>(to.data() + done);
      const auto room = std::min<std::size_t>(to.size() - done, 1 << 30);
      stream_.avail_out = static_cast<uInt>(room);
      const int state = inflate(&stream_, found_ ? Z_BLOCK : Z_NO_FLUSH);
      bytes_.pass(in.size() - stream_.avail_in);
      done += room - stream_.avail_out, position_ += room - stream_.avail_out;
      if (state == Z_STREAM_END)
        next_member();
      else if (state != Z_OK && state != Z_BUF_ERROR)
        refuse(bytes_.file(),
               fmt::format("is damaged: its gzip cannot be unpacked at byte {}", bytes_.position()));
      else if (found_)
        offer_place();
    }
    return done;
  }
  std::uint64_t position() const override { return position_; }
  std::uint64_t packed_position() const override { return bytes_.position(); }

 private:
  void start(bool raw) {
    constexpr int gzip = 16 + MAX_WBITS;
    if (inflateInit2(&stream_, raw ? -MAX_WBITS : gzip) != Z_OK)
      throw Error(ErrorCode::out_of_memory, "no memory to unpack it", bytes_.file().path().string());
  }

  // What follows is another member, zeros up to the end (of tapes), or nothing.
  void next_member() {
    constexpr std::size_t trailer = 8;  // checksum and length; zlib has not read those of a raw stream
    for (std::size_t i = 0; inside_ && i < trailer; ++i)
      if (!bytes_.left().empty()) bytes_.pass(1);
    while (!bytes_.left().empty() && bytes_.left()[0] == std::byte{0}) bytes_.pass(1);
    ended_ = bytes_.left().empty();
    if (ended_) return;
    if (bytes_.left()[0] != std::byte{0x1f})
      refuse(bytes_.file(),
             fmt::format("is damaged: no member of gzip begins at byte {}", bytes_.position()));
    inside_ = false;
    inflateEnd(&stream_);
    stream_ = {};
    start(false);
    if (found_ && position_ >= last_place_ + apart_) tell({bytes_.position(), position_});
  }

  void offer_place() {
    constexpr int between_blocks = 128, last_block = 64, bits = 7;
    const bool can = (stream_.data_type & between_blocks) && !(stream_.data_type & last_block);
    if (!can || position_ < last_place_ + apart_) return;
    constexpr std::size_t window_bytes = 32 << 10;
    UnpackPlace place{bytes_.position(), position_, stream_.data_type & bits};
    place.window.resize(window_bytes);
    uInt size = window_bytes;
    if (inflateGetDictionary(&stream_, reinterpret_cast<Bytef*>(place.window.data()), &size) != Z_OK ||
        size == 0)
      return;
    place.window.resize(size);
    tell(std::move(place));
  }

  void tell(UnpackPlace place) {
    last_place_ = position_;
    found_(std::move(place));
  }

  PackedBytes bytes_;
  z_stream stream_ = {};
  bool inside_ = false, ended_ = false;  // inside: the stream was begun without its header
  std::uint64_t position_, last_place_, apart_;
  FoundPlace found_;
};

#ifdef SUPERSTEP_ZSTD
// Frames, one behind the other: places are where they begin.
class ZstdUnpacker : public Unpacker {
 public:
  ZstdUnpacker(const StableFile& file, const UnpackPlace& place, std::uint64_t apart, FoundPlace found)
      : bytes_(file, place.packed),
        stream_(ZSTD_createDStream(), ZSTD_freeDStream),
        position_(place.unpacked),
        last_place_(place.unpacked),
        apart_(apart),
        found_(std::move(found)) {
    if (!stream_) throw Error(ErrorCode::out_of_memory, "no memory to unpack it", file.path().string());
  }

  std::size_t take(std::span<std::byte> to) override {
    ZSTD_outBuffer out{to.data(), to.size(), 0};
    while (out.pos < out.size) {
      const auto left = bytes_.left();
      if (left.empty() && between_frames_) break;
      ZSTD_inBuffer in{left.data(), left.size(), 0};
      const std::size_t before = out.pos, state = ZSTD_decompressStream(stream_.get(), &out, &in);
      if (ZSTD_isError(state))
        refuse(bytes_.file(),
               fmt::format("cannot be unpacked at byte {}: {}", bytes_.position(), ZSTD_getErrorName(state)));
      bytes_.pass(in.pos);
      position_ += out.pos - before;
      between_frames_ = state == 0;
      if (!between_frames_ && left.empty() && out.pos == before)
        refuse(bytes_.file(), "is cut short: its last frame of zstd does not end");
      if (between_frames_ && found_ && position_ >= last_place_ + apart_ && !bytes_.left().empty()) {
        last_place_ = position_;
        found_({bytes_.position(), position_});
      }
    }
    return out.pos;
  }
  std::uint64_t position() const override { return position_; }
  std::uint64_t packed_position() const override { return bytes_.position(); }

 private:
  PackedBytes bytes_;
  std::unique_ptr<ZSTD_DStream, decltype(&ZSTD_freeDStream)> stream_;
  bool between_frames_ = true;
  std::uint64_t position_, last_place_, apart_;
  FoundPlace found_;
};
#endif

}  // namespace

StreamForm stream_form_of(std::span<const std::byte> begin) {
  const std::string_view text(reinterpret_cast<const char*>(begin.data()), begin.size());
  if (text.starts_with("\x1f\x8b")) return StreamForm::gzip;
  if (text.starts_with("\x28\xb5\x2f\xfd")) return StreamForm::zstd;
  // A frame to be passed by, with which `pzstd` begins: 0x184D2A50 to 0x184D2A5F.
  if (text.size() >= 4 && (text[0] & 0xf0) == 0x50 && text.substr(1, 3) == "\x2a\x4d\x18")
    return StreamForm::zstd;
  return StreamForm::plain;
}

std::unique_ptr<Unpacker> open_unpacker(const StableFile& file, StreamForm form, const UnpackPlace& place,
                                        std::uint64_t apart, FoundPlace found) {
  if (form == StreamForm::gzip) return std::make_unique<GzipUnpacker>(file, place, apart, std::move(found));
#ifdef SUPERSTEP_ZSTD
  return std::make_unique<ZstdUnpacker>(file, place, apart, std::move(found));
#else
  throw Error(ErrorCode::unsupported, "is packed by zstd, which this program was built without",
              file.path().string(), "unpack it, or build where libzstd is installed (tools/setup)");
#endif
}

}  // namespace superstep::data
