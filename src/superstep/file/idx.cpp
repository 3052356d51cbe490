#include "superstep/file/idx.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <bit>
#include <optional>
#include <vector>

#include "superstep/base/error.h"
#include "superstep/base/system/free_memory.h"
#include "superstep/base/system/interrupt_check.h"
#include "superstep/base/system/partial_files.h"
#include "superstep/base/system/regular_file.h"
#include "superstep/file/check.h"

namespace superstep::data {
namespace {

constexpr std::uint64_t piece_bytes = 1 << 24;  // read at a time, so that a false size costs nothing

class GzipFile {
 public:
  GzipFile(const std::filesystem::path& path, const char* mode) : file_(gzopen(path.c_str(), mode)) {}
  ~GzipFile() { close(); }
  GzipFile(const GzipFile&) = delete;
  GzipFile& operator=(const GzipFile&) = delete;
  bool open() const { return file_ != nullptr; }
  gzFile get() const { return file_; }
  bool close() {
    const bool good = !file_ || gzclose(file_) == Z_OK;
    file_ = nullptr;
    return good;
  }

 private:
  gzFile file_;
};

std::optional<ElementType> type_of_code(int code) {
  switch (code) {
    case 0x08: return ElementType::u8;
    case 0x09: return ElementType::i8;
    case 0x0b: return ElementType::i16;
    case 0x0c: return ElementType::i32;
    case 0x0d: return ElementType::f32;
    case 0x0e: return ElementType::f64;
    default: return {};
  }
}

class Reader {
 public:
  explicit Reader(const std::filesystem::path& path)
      : path_((require_regular_file(path), path.string())), file_(path, "rb") {
    if (!file_.open()) throw Error(ErrorCode::io, "cannot be opened for reading", path_);
  }

  Tensor read() {
    const auto magic = bytes(4);
    const auto type = type_of_code(static_cast<int>(magic[2]));
    if (magic[0] != 0 || magic[1] != 0 || !type) refuse("is not an IDX file");
    std::vector<std::int64_t> extents;
    for (int axis = 0; axis < static_cast<int>(magic[3]); ++axis) extents.push_back(big_endian(bytes(4)));
    return elements(*type, Shape(extents));
  }

 private:
  [[noreturn]] void refuse(const std::string& message) const {
    throw Error(ErrorCode::bad_file, message, path_);
  }

  std::vector<std::uint8_t> bytes(std::size_t count) {
    std::vector<std::uint8_t> buffer(count);
    fill(buffer.data(), count);
    return buffer;
  }

  void fill(std::uint8_t* target, std::size_t count) const {
    if (gzread(file_.get(), target, static_cast<unsigned>(count)) != static_cast<int>(count))
      refuse("ends too early, or its compression is damaged");
  }

  static std::int64_t big_endian(const std::vector<std::uint8_t>& b) {
    return std::int64_t{b[0]} << 24 | std::int64_t{b[1]} << 16 | std::int64_t{b[2]} << 8 | b[3];
  }

  // The tensor takes up room as it is filled: a size that the file only claims costs nothing.
  Tensor elements(ElementType type, const Shape& shape) {
    const std::size_t size = size_in_bytes(type);
    const double bytes_in_all = static_cast<double>(shape.element_count()) * static_cast<double>(size);
    if (gzdirect(file_.get()) == 0)  // packed: a plain file that is too short is told as that
      require_plausible_ratio(bytes_in_all, static_cast<double>(std::filesystem::file_size(path_)), path_);
    require_memory(bytes_in_all, path_);
    Tensor tensor(type, shape);
    auto* bytes = reinterpret_cast<std::uint8_t*>(tensor.bytes());
    InterruptCheck stop;
    for (std::size_t done = 0; done < tensor.byte_count(); stop.throw_if_due(path_)) {
      const std::size_t piece = std::min<std::size_t>(piece_bytes, tensor.byte_count() - done);
      fill(bytes + done, piece);
      done += piece;
    }
    if (char extra; gzread(file_.get(), &extra, 1) != 0)
      refuse("is longer than its shape " + to_string(shape));
    if (std::endian::native == std::endian::little && size > 1)
      for (std::size_t i = 0; i < tensor.byte_count(); i += size) std::reverse(bytes + i, bytes + i + size);
    return tensor;
  }

  std::string path_;
  GzipFile file_;
};

}  // namespace

Tensor read_idx(const std::filesystem::path& path) {
  try {
    return Reader(path).read();
  } catch (const Error& error) {
    throw error.where().empty() ? error.in(path.string()) : error;  // a shape that overflows
  }
}

struct IdxWriter::State {
  std::filesystem::path path, partial;
  std::uint64_t missing;
  GzipFile file;
  bool closed = false;

  void require(bool worked) const {
    if (!worked) throw Error(ErrorCode::io, "cannot be written", path.string());
  }
};

IdxWriter::IdxWriter(const std::filesystem::path& path, const Shape& shape) {
  const std::filesystem::path partial = partial_name(path);
  const char* mode = path.extension() == ".gz" ? "wb6" : "wbT";  // T: plain
  state_.reset(new State{path, partial, static_cast<std::uint64_t>(shape.element_count()), {partial, mode}});
  state_->require(state_->file.open());
  std::vector<std::uint8_t> header{0, 0, 0x08, static_cast<std::uint8_t>(shape.rank())};
  for (std::int64_t extent : shape)
    for (int shift = 24; shift >= 0; shift -= 8) header.push_back(static_cast<std::uint8_t>(extent >> shift));
  state_->missing += header.size();
  append(header);
}

IdxWriter::~IdxWriter() {
  state_->file.close();
  std::error_code ignored;
  if (!state_->closed) std::filesystem::remove(state_->partial, ignored);
}

void IdxWriter::append(std::span<const std::uint8_t> elements) {
  if (elements.size() > state_->missing)
    throw Error(ErrorCode::internal, "more elements than the shape has", state_->path.string());
  state_->missing -= elements.size();
  while (!elements.empty()) {
    const auto piece = elements.first(std::min<std::size_t>(piece_bytes, elements.size()));
    state_->require(gzwrite(state_->file.get(), piece.data(), static_cast<unsigned>(piece.size())) ==
                    static_cast<int>(piece.size()));
    elements = elements.subspan(piece.size());
  }
}

void IdxWriter::close() {
  if (state_->missing)
    throw Error(ErrorCode::internal, "fewer elements than the shape has", state_->path.string());
  state_->require(state_->file.close());
  std::error_code error;
  std::filesystem::rename(state_->partial, state_->path, error);
  state_->require(!error);
  state_->closed = true;
}

}  // namespace superstep::data
