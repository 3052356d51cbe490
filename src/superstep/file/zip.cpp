#include "superstep/file/zip.h"

#include <fmt/format.h>
#include <zip.h>

#include <algorithm>
#include <memory>

#include "superstep/base/error.h"
#include "superstep/base/system/interrupt_check.h"
#include "superstep/file/check.h"

namespace superstep::data {
namespace {

// Deflate cannot shrink by more (zlib technical details: 1032:1).
constexpr zip_uint64_t largest_ratio = 1032;
constexpr std::size_t piece_bytes = 1 << 24;

using Archive = std::unique_ptr<zip_t, decltype(&zip_discard)>;
using Entry = std::unique_ptr<zip_file_t, decltype(&zip_fclose)>;

std::string text_of(zip_error_t& error) {
  std::string text = zip_error_strerror(&error);
  zip_error_fini(&error);
  return text;
}

Archive open_in_memory(std::span<const std::byte> bytes, std::string_view where) {
  if (bytes.empty())
    throw Error(ErrorCode::bad_file, "this is not a zip archive: it is empty", std::string(where));
  zip_error_t error;
  zip_error_init(&error);
  zip_source_t* source = zip_source_buffer_create(bytes.data(), bytes.size(), 0, &error);
  zip_t* archive = source ? zip_open_from_source(source, ZIP_RDONLY, &error) : nullptr;
  if (!archive) {
    if (source) zip_source_free(source);
    throw Error(ErrorCode::bad_file, fmt::format("this is not a whole zip archive: {}", text_of(error)),
                std::string(where));
  }
  zip_error_fini(&error);
  return {archive, zip_discard};
}

void require_plausible(const zip_stat_t& entry, std::size_t archive_size, const std::string& where) {
  constexpr zip_uint64_t needed = ZIP_STAT_NAME | ZIP_STAT_SIZE | ZIP_STAT_COMP_SIZE | ZIP_STAT_COMP_METHOD;
  if ((entry.valid & needed) != needed) throw Error(ErrorCode::bad_file, "the zip entry is damaged", where);
  if (entry.comp_method != ZIP_CM_STORE && entry.comp_method != ZIP_CM_DEFLATE)
    throw Error(ErrorCode::unsupported,
                fmt::format("zip compression method {} is not read", entry.comp_method), where);
  const bool stored = entry.comp_method == ZIP_CM_STORE;
  if (stored ? entry.size != entry.comp_size : entry.size / largest_ratio > entry.comp_size)
    throw Error(ErrorCode::bad_file,
                fmt::format("the zip entry claims {} bytes but {} compressed bytes cannot hold them",
                            entry.size, entry.comp_size),
                where);
  if (entry.comp_size > archive_size) throw Error(ErrorCode::bad_file, "the zip entry is cut short", where);
}

std::string place_of(std::string_view archive, std::string_view entry) {
  return fmt::format("{}: entry '{}'", archive, entry);
}

std::vector<ZipEntry> list(zip_t* archive, std::size_t archive_size, std::string_view where) {
  std::vector<ZipEntry> entries;
  double unpacked = 0, packed = 0;  // bytes
  const zip_int64_t count = zip_get_num_entries(archive, 0);
  for (zip_int64_t i = 0; i < count; ++i) {
    const auto index = static_cast<zip_uint64_t>(i);
    zip_stat_t status;
    zip_stat_init(&status);
    if (zip_stat_index(archive, index, 0, &status) != 0)
      throw Error(ErrorCode::bad_file, fmt::format("zip entry {} is damaged", i), std::string(where));
    const std::string name = status.valid & ZIP_STAT_NAME ? status.name : "";
    if (name.ends_with('/')) continue;
    require_plausible(status, archive_size, place_of(where, name));
    entries.push_back({name, status.size, index});
    unpacked += static_cast<double>(status.size);
    packed += static_cast<double>(status.comp_size);
  }
  // Entries that share their bytes unpack to any amount.
  if (packed > static_cast<double>(archive_size))
    throw Error(ErrorCode::bad_file, "entries of the zip archive lie over each other", std::string(where));
  require_plausible_ratio(unpacked, packed, where);
  return entries;
}

}  // namespace

struct ZipReader::State {
  std::string where;
  Archive archive;
  std::vector<ZipEntry> entries;
};

ZipReader::ZipReader(std::span<const std::byte> bytes, std::string_view where)
    : state_(new State{std::string(where), open_in_memory(bytes, where), {}}) {
  state_->entries = list(state_->archive.get(), bytes.size(), where);
}

ZipReader::~ZipReader() = default;
const std::vector<ZipEntry>& ZipReader::entries() const { return state_->entries; }

struct ZipReader::Stream::State {
  std::string where;
  Entry entry;
  InterruptCheck stop{};

  [[noreturn]] void refuse(bool ended) const {
    throw Error(ErrorCode::bad_file,
                ended ? "the zip entry is damaged: it ends too early"
                      : fmt::format("the zip entry is damaged: {}", zip_file_strerror(entry.get())),
                where);
  }
};

ZipReader::Stream::Stream(const ZipReader& archive, const ZipEntry& entry) {
  zip_t* handle = archive.state_->archive.get();
  state_.reset(new State{place_of(archive.state_->where, entry.name),
                         Entry(zip_fopen_index(handle, entry.index, 0), zip_fclose)});
  if (!state_->entry)
    throw Error(ErrorCode::bad_file, fmt::format("cannot read the zip entry: {}", zip_strerror(handle)),
                state_->where);
}

ZipReader::Stream::~Stream() = default;
const std::string& ZipReader::Stream::where() const { return state_->where; }

// libzip 1.7.3 loses count of more than 4 GB at once.
void ZipReader::Stream::read(std::span<std::byte> bytes) {
  while (!bytes.empty()) {
    const std::size_t piece = std::min(bytes.size(), piece_bytes);
    const zip_int64_t got = zip_fread(state_->entry.get(), bytes.data(), piece);
    if (got <= 0) state_->refuse(got == 0);
    bytes = bytes.subspan(static_cast<std::size_t>(got));
    state_->stop.throw_if_due(state_->where);
  }
}

void ZipReader::Stream::finish() {
  std::byte beyond;  // reading to the end verifies the checksum
  const zip_int64_t got = zip_fread(state_->entry.get(), &beyond, 1);
  if (got > 0) throw Error(ErrorCode::bad_file, "the zip entry is longer than it says", state_->where);
  if (got < 0) state_->refuse(false);
}

namespace {

// libzip writes to a temporary file of its own and renames it at zip_close.
Archive begin_zip(const std::filesystem::path& path) {
  int code = 0;
  Archive archive(zip_open(path.c_str(), ZIP_CREATE | ZIP_TRUNCATE, &code), zip_discard);
  if (!archive) {
    zip_error_t error;
    zip_error_init_with_code(&error, code);
    throw Error(ErrorCode::io, fmt::format("cannot write: {}", text_of(error)), path.string());
  }
  return archive;
}

// The archive owns `source` from here on; null: it could not be made.
void add_entry(const Archive& archive, const std::filesystem::path& path, const std::string& name,
               zip_source_t* source) {
  const zip_int64_t index = source ? zip_file_add(archive.get(), name.c_str(), source, ZIP_FL_ENC_UTF_8) : -1;
  if (index < 0) {
    if (source) zip_source_free(source);
    throw Error(ErrorCode::io, fmt::format("cannot add '{}': {}", name, zip_strerror(archive.get())),
                path.string());
  }
  zip_set_file_compression(archive.get(), static_cast<zip_uint64_t>(index), ZIP_CM_STORE, 0);
  // The same content gives the same bytes: 1 January 1980, the first day a zip archive knows.
  zip_file_set_dostime(archive.get(), static_cast<zip_uint64_t>(index), 0, 0x21, 0);
}

void end_zip(Archive archive, const std::filesystem::path& path) {
  if (zip_close(archive.get()) != 0)
    throw Error(ErrorCode::io, fmt::format("cannot write: {}", zip_strerror(archive.get())), path.string());
  static_cast<void>(archive.release());
}

}  // namespace

void write_zip(const std::filesystem::path& path, const ZipEntries& entries) {
  Archive archive = begin_zip(path);
  for (const auto& [name, bytes] : entries)
    add_entry(archive, path, name, zip_source_buffer(archive.get(), bytes.data(), bytes.size(), 0));
  end_zip(std::move(archive), path);
}

void write_zip_of_files(const std::filesystem::path& path,
                        const std::map<std::string, std::filesystem::path>& files,
                        const std::string& comment) {
  Archive archive = begin_zip(path);
  for (const auto& [name, file] : files)
    add_entry(archive, path, name, zip_source_file(archive.get(), file.c_str(), 0, -1));
  if (!comment.empty()) {
    constexpr std::size_t longest_comment = 65535;  // of the format: its length has two bytes
    if (comment.size() > longest_comment ||
        zip_set_archive_comment(archive.get(), comment.data(), static_cast<zip_uint16_t>(comment.size())) !=
            0)
      throw Error(ErrorCode::io, "its comment is too long", path.string());
  }
  end_zip(std::move(archive), path);
}

}  // namespace superstep::data
