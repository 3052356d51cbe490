#include "superstep/edge/journal/segment_log.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>
#include <zlib.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>

#include "superstep/base/error.h"
#include "superstep/base/system/mapped_file.h"

namespace superstep::edge {
namespace {

constexpr std::string_view format_name = "SSTEPJ1\n", ending = ".journal";
constexpr std::size_t head_bytes = 9;  // length, sum, kind

[[noreturn]] void fail(const std::filesystem::path& path, const char* what, int error) {
  throw Error(ErrorCode::io, fmt::format("{}: {}", what, std::strerror(error)), path.string());
}

std::uint32_t word_at(std::span<const std::byte> bytes) {
  std::uint32_t word = 0;
  std::memcpy(&word, bytes.data(), sizeof word);
  return word;
}

std::uint32_t sum_of(std::uint32_t sum, std::span<const std::byte> bytes) {
  return static_cast<std::uint32_t>(crc32_z(sum, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

// Where a folder's entries changed, they are on the disk only when it is, too.
void flush_folder(const std::filesystem::path& folder) {
  const int opened = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (opened < 0) fail(folder, "cannot be opened", errno);
  ::fsync(opened);
  ::close(opened);
}

void write_at(int file, std::span<const std::byte> bytes, std::size_t at, const std::filesystem::path& path) {
  while (!bytes.empty()) {
    const ssize_t written = ::pwrite(file, bytes.data(), bytes.size(), static_cast<off_t>(at));
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) fail(path, "cannot be written", written < 0 ? errno : ENOSPC);
    bytes = bytes.subspan(static_cast<std::size_t>(written));
    at += static_cast<std::size_t>(written);
  }
}

}  // namespace

SegmentLog::SegmentLog(std::filesystem::path folder, std::size_t segment_bytes)
    : folder_(std::move(folder)), segment_bytes_(segment_bytes) {
  for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
    const std::string name = entry.path().filename().string();
    std::uint64_t number = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
    if (error != std::errc() || std::string_view(end) != ending || number == 0) continue;
    sizes_[number] = entry.file_size();
    newest_ = std::max(newest_, number);
  }
}

SegmentLog::~SegmentLog() {
  if (file_ >= 0) ::close(file_);
}

std::filesystem::path SegmentLog::file_of(std::uint64_t segment) const {
  return folder_ / fmt::format("{:08}{}", segment, ending);
}

std::vector<std::uint64_t> SegmentLog::segments() const {
  std::vector<std::uint64_t> numbers;
  for (const auto& [segment, size] : sizes_) numbers.push_back(segment);
  return numbers;
}

void SegmentLog::read(std::uint64_t segment, FunctionRef<void(const LogRecord& record)> each) const {
  if (!std::filesystem::exists(file_of(segment))) return;
  const MappedFile file(file_of(segment));
  std::span<const std::byte> rest = file.bytes();
  if (rest.size() < format_name.size() || word_at(rest) == 0) return;  // killed before its first record
  if (std::memcmp(rest.data(), format_name.data(), format_name.size()) != 0)
    throw Error(ErrorCode::bad_file, "is no segment of a journal", file_of(segment).string());
  rest = rest.subspan(format_name.size());
  while (rest.size() >= head_bytes) {
    const std::size_t length = word_at(rest);
    if (length == 0 || length > rest.size() - head_bytes + 1) break;
    const auto checked = rest.subspan(head_bytes - 1, length);
    if (sum_of(0, checked) != word_at(rest.subspan(4))) break;
    each({segment, static_cast<std::uint8_t>(checked[0]), checked.subspan(1)});
    rest = rest.subspan(head_bytes - 1 + length);
  }
}

void SegmentLog::begin_segment() {
  if (file_ >= 0) commit();
  const std::filesystem::path path = file_of(newest_ + 1);
  const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (file < 0) fail(path, "cannot be made", errno);
  if (const int error = ::posix_fallocate(file, 0, static_cast<off_t>(segment_bytes_)); error != 0) {
    ::close(file);
    ::unlink(path.c_str());
    fail(path, "there is no room for a segment of the journal", error);
  }
  write_at(file, std::as_bytes(std::span(format_name)), 0, path);
  flush_folder(folder_);
  if (file_ >= 0) ::close(file_);
  file_ = file;
  ++newest_;
  size_ = segment_bytes_;
  sizes_[newest_] = size_;
  written_ = format_name.size();
  uncommitted_ = true;
}

void SegmentLog::append(std::uint8_t kind, std::span<const std::span<const std::byte>> contents) {
  std::array<std::byte, head_bytes> head{};
  head[8] = static_cast<std::byte>(kind);
  std::uint32_t sum = sum_of(0, {&head[8], 1});
  std::size_t at = written_ + head_bytes;
  for (const auto part : contents) {
    write_at(file_, part, at, file_of(newest_));
    if (!part.empty()) sum = sum_of(sum, part);
    at += part.size();
  }
  const auto length = static_cast<std::uint32_t>(at - written_ - head_bytes + 1);
  std::memcpy(head.data(), &length, sizeof length);
  std::memcpy(&head[4], &sum, sizeof sum);
  write_at(file_, head, written_, file_of(newest_));
  written_ = at;
  size_ = std::max(size_, written_);
  sizes_[newest_] = size_;
  uncommitted_ = true;
}

void SegmentLog::commit() {
  if (!uncommitted_) return;
  if (::fdatasync(file_) != 0) fail(file_of(newest_), "cannot be brought to the disk", errno);
  uncommitted_ = false;
}

void SegmentLog::drop_before(std::uint64_t segment) {
  while (!sizes_.empty() && sizes_.begin()->first < std::min(segment, newest_)) {
    std::filesystem::remove(file_of(sizes_.begin()->first));
    sizes_.erase(sizes_.begin());
  }
}

std::uint64_t SegmentLog::bytes() const {
  std::uint64_t sum = 0;
  for (const auto& [segment, size] : sizes_) sum += size;
  return sum;
}

}  // namespace superstep::edge
