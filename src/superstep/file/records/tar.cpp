#include "superstep/file/records/tar.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <string_view>

#include "superstep/base/error.h"
#include "superstep/base/integers.h"
#include "superstep/base/progress.h"
#include "superstep/base/system/interrupt_check.h"
#include "superstep/base/text.h"

namespace superstep::data {
namespace {

// A header takes up a block, and so does what it is rounded up to (POSIX.1-1988, ustar).
constexpr std::uint64_t block = 512;
constexpr std::uint64_t longest_name = 1 << 20;  // of a long name or a pax header; chosen

using Header = std::array<char, block>;

std::string_view field(const Header& header, std::size_t at, std::size_t length) {
  const std::string_view text(header.data() + at, length);
  return text.substr(0, text.find('\0'));
}

// Octal digits, or (GNU) a big-endian number whose first bit is set.
std::optional<std::uint64_t> number(const Header& header, std::size_t at, std::size_t length) {
  const auto first = static_cast<unsigned char>(header[at]);
  if (first & 0x80) {
    std::uint64_t value = first & 0x3f;
    for (std::size_t i = 1; i < length; ++i) {
      if (value >> 55) return std::nullopt;
      value = value << 8 | static_cast<unsigned char>(header[at + i]);
    }
    return value;
  }
  std::string_view text = field(header, at, length);
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 8);
  if (text.empty()) return 0;
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// The sum of its bytes, its own counted as spaces.
bool has_its_sum(const Header& header) {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < header.size(); ++i)
    sum += i >= 148 && i < 156 ? ' ' : static_cast<unsigned char>(header[i]);
  return number(header, 148, 8) == sum;
}

bool is_zeros(const Header& header) {
  return std::string_view(header.data(), header.size()).find_first_not_of('\0') == std::string_view::npos;
}

std::string name_in(const Header& header) {
  const std::string_view name = field(header, 0, 100), prefix = field(header, 345, 155);
  const bool has_prefix = field(header, 257, 6) == "ustar" && !prefix.empty();
  return has_prefix ? fmt::format("{}/{}", prefix, name) : std::string(name);
}

// What a pax header or a long name says of the next member.
struct Said {
  std::optional<std::string> name;
  std::optional<std::uint64_t> size;
};

class TarReader {
 public:
  explicit TarReader(const Content& file) : file_(file) {}

  std::vector<TarMember> members() {
    Progress progress = Progress::passing("looking through the archive", file_.stored_bytes(), "bytes");
    InterruptCheck stop;
    while (file_.has(at_, 1)) {
      if (!next()) break;
      progress.update(file_.stored_position(at_));
      stop.throw_if_due(file_.path().string());
    }
    file_.require_unchanged();
    return std::move(members_);
  }

 private:
  [[noreturn]] void fail(ErrorCode code, const std::string& message, const std::string& hint = {}) const {
    throw Error(code, fmt::format("{} at byte {}", message, format_count(static_cast<double>(at_))),
                file_.path().string(), hint);
  }

  // False at the end, which is two blocks of zeros (one is taken for it, as others do).
  bool next() {
    if (!file_.has(at_, block)) fail(ErrorCode::bad_file, "the archive is cut short");
    Header header;
    file_.read(at_, std::as_writable_bytes(std::span(header)));
    if (is_zeros(header)) return false;
    if (!has_its_sum(header)) fail(ErrorCode::bad_file, "this is no header of tar");
    const auto own_size = number(header, 124, 12);
    const char kind = header[156];
    const bool has_said_size = kind != 'x' && kind != 'L' && kind != 'K' && kind != 'g' && said_.size;
    const auto size = has_said_size ? said_.size : own_size;
    if (!size || !file_.has(at_ + block, *size))
      fail(ErrorCode::bad_file, "the archive is cut short, or damaged: a member ends beyond it");
    take(header, kind, at_ + block, *size);
    at_ += block + round_up(*size, block);
    return true;
  }

  void take(const Header& header, char kind, std::uint64_t begin, std::uint64_t size) {
    if (kind == 'x') return take_pax(text_at(begin, size));
    if (kind == 'L') {
      std::string name = text_at(begin, size);
      name.resize(std::min(name.size(), name.find('\0')));
      said_.name = std::move(name);
      return;
    }
    if (kind == 'g' || kind == 'K') return;
    if (kind == 'S')
      fail(ErrorCode::unsupported, "a file with holes (sparse) begins", "write it without --sparse");
    if (kind == '0' || kind == '\0' || kind == '7')
      members_.push_back({said_.name.value_or(name_in(header)), begin, size});
    said_ = {};
  }

  std::string text_at(std::uint64_t begin, std::uint64_t size) const {
    if (size > longest_name)
      fail(ErrorCode::bad_file, fmt::format("a name or header of {} bytes begins", size));
    std::string text(size, '\0');
    file_.read(begin, std::as_writable_bytes(std::span(text)));
    return text;
  }

  // Lines of "LENGTH KEY=VALUE\n", the length that of the whole line.
  void take_pax(std::string_view text) {
    while (!text.empty() && text.front() != '\0') {
      std::size_t length = 0;
      const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), length);
      const auto digits = static_cast<std::size_t>(end - text.data());
      if (error != std::errc() || length <= digits + 1 || length > text.size())
        fail(ErrorCode::bad_file, "a damaged pax header begins");
      const std::string_view line = text.substr(digits + 1, length - digits - 2);
      text.remove_prefix(length);
      const std::size_t equals = line.find('=');
      if (equals == std::string_view::npos) continue;
      const std::string_view key = line.substr(0, equals), value = line.substr(equals + 1);
      if (key == "path") said_.name = std::string(value);
      if (key.starts_with("GNU.sparse"))
        fail(ErrorCode::unsupported, "a file with holes (sparse) begins", "write it without --sparse");
      std::uint64_t size = 0;
      if (key == "size" && std::from_chars(value.data(), value.data() + value.size(), size).ec == std::errc())
        said_.size = size;
    }
  }

  const Content& file_;
  std::uint64_t at_ = 0;
  Said said_;
  std::vector<TarMember> members_;
};

}  // namespace

std::vector<TarMember> tar_members(const Content& file) { return TarReader(file).members(); }

bool is_tar(const std::filesystem::path& path) {
  Header header{};
  const std::string begin = first_content(path, block);
  if (begin.size() < block) return false;
  std::ranges::copy(begin, header.begin());
  return !is_zeros(header) && has_its_sum(header);
}

}  // namespace superstep::data
