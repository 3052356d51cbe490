// Zarr stores, versions 2 and 3: a folder per array, its rows in chunks of about a megabyte that have all of
// the other axes, packed by zstd where this program has it, else by gzip.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>
#include <zlib.h>
#ifdef SUPERSTEP_ZSTD
#include <zstd.h>
#endif

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "superstep/base/encoding/base64.h"
#include "superstep/base/error.h"
#include "superstep/file/convert/writer_forms.h"
#include "superstep/file/npy.h"

namespace superstep::data {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr std::size_t chunk_bytes = 1 << 20;  // of rows, unpacked: chosen

#ifdef SUPERSTEP_ZSTD
constexpr bool has_zstd = true;
std::string packed(std::span<const std::byte> bytes) {
  constexpr int level = 1;  // of 22, the fastest of the usual ones: chosen
  std::string to(ZSTD_compressBound(bytes.size()), '\0');
  const std::size_t size = ZSTD_compress(to.data(), to.size(), bytes.data(), bytes.size(), level);
  if (ZSTD_isError(size)) throw Error(ErrorCode::internal, "a chunk could not be packed by zstd");
  to.resize(size);
  return to;
}
#else
constexpr bool has_zstd = false;
// With the header of gzip, whose time is 0, so that equal chunks have equal bytes.
std::string packed(std::span<const std::byte> bytes) {
  constexpr int gzip_header = 15 + 16, memory = 8, level = 1;
  z_stream stream{};
  if (deflateInit2(&stream, level, Z_DEFLATED, gzip_header, memory, Z_DEFAULT_STRATEGY) != Z_OK)
    throw Error(ErrorCode::out_of_memory, "a chunk could not be packed by gzip");
  std::string to(deflateBound(&stream, bytes.size()), '\0');
  stream.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(to.data());
  stream.avail_out = static_cast<uInt>(to.size());
  const int code = deflate(&stream, Z_FINISH);
  to.resize(to.size() - stream.avail_out);
  deflateEnd(&stream);
  if (code != Z_STREAM_END) throw Error(ErrorCode::internal, "a chunk could not be packed by gzip");
  return to;
}
#endif

const char* name_in_v3(ElementType type) {
  switch (type) {
    case ElementType::f64: return "float64";
    case ElementType::f32: return "float32";
    case ElementType::f16: return "float16";
    case ElementType::i64: return "int64";
    case ElementType::i32: return "int32";
    case ElementType::i16: return "int16";
    case ElementType::i8: return "int8";
    case ElementType::u64: return "uint64";
    case ElementType::u32: return "uint32";
    case ElementType::u16: return "uint16";
    case ElementType::u8: return "uint8";
    case ElementType::boolean: return "bool";
    case ElementType::bf16: break;
  }
  throw Error(ErrorCode::internal, "Zarr has no such type");
}

void write_file(const fs::path& path, std::string_view text) {
  std::ofstream stream(path, std::ios::binary | std::ios::trunc);
  stream.write(text.data(), static_cast<std::streamsize>(text.size()));
  stream.close();
  if (!stream) throw Error(ErrorCode::io, "could not be written: is the disk full?", path.string());
}

json zero_of(ElementType type) {
  if (type == ElementType::boolean) return false;
  const bool floats = type == ElementType::f64 || type == ElementType::f32 || type == ElementType::f16;
  return floats ? json(0.0) : json(0);
}

// An array's folder, and the rows that do not fill a chunk yet.
class ChunkedArray {
 public:
  // `mark`: of one that stopped; null: the first.
  ChunkedArray(const fs::path& store, const SourceArray& array, int version, const json& mark)
      : folder_(store / array.name), array_(array), version_(version) {
    const auto row = std::max<std::size_t>(1, array.row_bytes());
    rows_ = std::clamp<std::int64_t>(static_cast<std::int64_t>(chunk_bytes / row), 1,
                                     std::max<std::int64_t>(1, array.rows));
    if (mark.is_null()) {
      fs::create_directories(folder_);
      write_metadata();
      return;
    }
    written_ = mark.value("chunks", std::int64_t{0});
    const auto waiting = base64_decode(mark.value("waiting", std::string()));
    if (!waiting || !fs::is_directory(folder_))
      throw Error(ErrorCode::bad_file, "is not what was left to go on with", folder_.string());
    waiting_ = *waiting;
  }

  json mark() const { return {{"chunks", written_}, {"waiting", base64_encode(waiting_)}}; }

  // Whole chunks are packed and written by all threads.
  void append(const Tensor& rows, ThreadPool* pool) {
    const std::byte* bytes = rows.bytes();
    waiting_.insert(waiting_.end(), bytes, bytes + rows.byte_count());
    const std::size_t each = static_cast<std::size_t>(rows_) * array_.row_bytes();
    if (each == 0) return;
    const auto whole = static_cast<std::int64_t>(waiting_.size() / each);
    const auto write = [&](std::int64_t i, int) {
      write_chunk(written_ + i, std::span(waiting_).subspan(static_cast<std::size_t>(i) * each, each));
    };
    if (pool)
      pool->parallel_for(whole, write);
    else
      for (std::int64_t i = 0; i < whole; ++i) write(i, 0);
    written_ += whole;
    waiting_.erase(waiting_.begin(), waiting_.begin() + whole * static_cast<std::ptrdiff_t>(each));
  }

  // Chunks are all of one size: the last one is filled up with zeros.
  void finish() {
    if (waiting_.empty()) return;
    waiting_.resize(static_cast<std::size_t>(rows_) * array_.row_bytes());
    write_chunk(written_++, waiting_);
    waiting_.clear();
  }

 private:
  std::vector<std::int64_t> chunk_extents() const {
    std::vector<std::int64_t> extents = array_.shape().extents();
    for (std::int64_t& extent : extents) extent = std::max<std::int64_t>(1, extent);
    if (!array_.single) extents[0] = rows_;
    return extents;
  }

  void write_chunk(std::int64_t number, std::span<const std::byte> bytes) const {
    std::string name = version_ == 2 ? "" : "c";
    const int rank = array_.shape().rank();
    for (int axis = 0; axis < rank; ++axis)
      name += fmt::format("{}{}", name.empty() ? "" : ".", axis == 0 && !array_.single ? number : 0);
    write_file(folder_ / (name.empty() ? "0" : name), packed(bytes));
  }

  void write_metadata() const {
    const std::vector<std::int64_t> shape = array_.shape().extents(), chunk = chunk_extents();
    if (version_ == 2) {
      const json packing = has_zstd ? json{{"id", "zstd"}, {"level", 1}} : json{{"id", "gzip"}, {"level", 1}};
      const json meta{{"zarr_format", 2},
                      {"shape", shape},
                      {"chunks", chunk},
                      {"dtype", npy_type_name(array_.type)},
                      {"compressor", packing},
                      {"fill_value", zero_of(array_.type)},
                      {"order", "C"},
                      {"filters", nullptr},
                      {"dimension_separator", "."}};
      return write_file(folder_ / ".zarray", meta.dump(1));
    }
    const json packing = has_zstd
                             ? json{{"name", "zstd"}, {"configuration", {{"level", 1}, {"checksum", false}}}}
                             : json{{"name", "gzip"}, {"configuration", {{"level", 1}}}};
    const json bytes{{"name", "bytes"}, {"configuration", {{"endian", "little"}}}};
    const json meta{{"zarr_format", 3},
                    {"node_type", "array"},
                    {"shape", shape},
                    {"data_type", name_in_v3(array_.type)},
                    {"chunk_grid", {{"name", "regular"}, {"configuration", {{"chunk_shape", chunk}}}}},
                    {"chunk_key_encoding", {{"name", "default"}, {"configuration", {{"separator", "."}}}}},
                    {"fill_value", zero_of(array_.type)},
                    {"codecs", json::array({bytes, packing})},
                    {"attributes", json::object()}};
    write_file(folder_ / "zarr.json", meta.dump(1));
  }

  fs::path folder_;
  SourceArray array_;
  int version_;
  std::int64_t rows_ = 1, written_ = 0;  // of a chunk; chunks
  std::vector<std::byte> waiting_;
};

class ZarrWriter : public SampleWriter {
 public:
  ZarrWriter(const WriterPlace& place, const SampleArraysToWrite& arrays, std::int64_t samples, int version)
      : path_(place.path), shown_(place.shown) {
    json marks(arrays.size(), nullptr);
    if (place.mark.empty())
      fs::create_directories(path_);
    else
      marks = read_mark(place).value("arrays", json::array());
    if (!marks.is_array() || marks.size() != arrays.size())
      throw Error(ErrorCode::bad_file, "is not what was left to go on with", shown_);
    for (std::size_t i = 0; i < arrays.size(); ++i) {
      const SourceArray& array = arrays[i];
      if (place.mark.empty()) write_groups(path_, fs::path(array.name), version);
      is_sample_.push_back(!array.single && array.rows == samples);
      arrays_.emplace_back(path_, array, version, marks[i]);
    }
  }

  void write(std::span<const Tensor> samples, ThreadPool& pool) override {
    auto tensor = samples.begin();
    for (std::size_t i = 0; i < arrays_.size(); ++i)
      if (is_sample_[i]) arrays_[i].append(*tensor++, &pool);
  }
  void write_shared(std::size_t array, const Tensor& rows) override { arrays_[array].append(rows, nullptr); }
  void close() override {
    for (ChunkedArray& array : arrays_) array.finish();
  }
  std::string mark() override {
    // Thousands of files: the file system as a whole is asked.
    const int folder = ::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const bool on_disk = folder >= 0 && ::syncfs(folder) == 0;
    if (folder >= 0) ::close(folder);
    if (!on_disk) throw Error(ErrorCode::io, "cannot be written to the disk", shown_);
    json marks = json::array();
    for (const ChunkedArray& array : arrays_) marks.push_back(array.mark());
    return json{{"arrays", marks}}.dump();
  }

 private:
  // The store itself, and every folder between it and an array.
  static void write_groups(const fs::path& store, const fs::path& array, int version) {
    const json group = version == 2
                           ? json{{"zarr_format", 2}}
                           : json{{"zarr_format", 3}, {"node_type", "group"}, {"attributes", json::object()}};
    fs::path folder = store;
    for (const fs::path& part : array) {
      fs::create_directories(folder);
      write_file(folder / (version == 2 ? ".zgroup" : "zarr.json"), group.dump(1));
      folder /= part;
    }
  }

  fs::path path_;
  std::string shown_;
  std::vector<bool> is_sample_;
  std::vector<ChunkedArray> arrays_;
};

}  // namespace

std::unique_ptr<SampleWriter> open_zarr2_samples(const WriterPlace& place, SampleArraysToWrite arrays,
                                                 std::int64_t samples) {
  return std::make_unique<ZarrWriter>(place, arrays, samples, 2);
}

std::unique_ptr<SampleWriter> open_zarr3_samples(const WriterPlace& place, SampleArraysToWrite arrays,
                                                 std::int64_t samples) {
  return std::make_unique<ZarrWriter>(place, arrays, samples, 3);
}

}  // namespace superstep::data
