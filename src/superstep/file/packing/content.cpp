#include "superstep/file/packing/content.h"

#include <sys/uio.h>

#include <algorithm>
#include <cstring>
#include <list>
#include <map>
#include <mutex>
#include <optional>

#include "superstep/base/error.h"
#include "superstep/file/check.h"
#include "superstep/file/form.h"
#include "superstep/file/packing/unpacker.h"

namespace superstep::data {
namespace {

constexpr std::uint64_t block = 1 << 20;  // that is unpacked and kept at a time: chosen
// Kept in all: what a buffer to shuffle with reaches over (SampleRows::forced_order()), twice.
constexpr std::size_t kept_blocks = 256;
// Places that are kept of a file, so that their windows of 32 KB are 64 MB at most, if it packs to a quarter.
constexpr std::uint64_t most_places = 2048, usual_ratio = 4, least_apart = 1 << 20;
constexpr std::size_t most_readers = 4;  // that go on somewhere in the file: chosen

StreamForm form_in(const StableFile& file) {
  std::byte mark[stream_mark_bytes] = {};
  const auto there = std::span(mark).first(std::min<std::size_t>(stream_mark_bytes, file.size()));
  file.read(0, there);
  return stream_form_of(there);
}

}  // namespace

class Content::Packed {
 public:
  Packed(const StableFile& file, StreamForm form) : file_(file), form_(form) {
    const std::uint64_t apart = std::max(least_apart, usual_ratio * file.size() / most_places);
    first_ = open_unpacker(file, form, {}, apart, [this](UnpackPlace place) {
      const std::uint64_t at = place.unpacked;
      places_.emplace(at, std::move(place));
    });
  }

  bool has(std::uint64_t offset, std::uint64_t count) {
    const std::lock_guard lock(mutex_);
    if (count > UINT64_MAX - offset) return false;
    while (!end_ && known_ < offset + count) go_on();
    return !end_ || offset + count <= *end_;
  }
  std::uint64_t size() {
    const std::lock_guard lock(mutex_);
    while (!end_) go_on();
    return *end_;
  }
  void read(std::uint64_t offset, std::span<std::byte> to) {
    while (!to.empty()) {
      const Block found = at(offset / block);
      const auto inside = static_cast<std::size_t>(offset % block);
      if (inside >= found->size()) refuse();
      const std::size_t some = std::min(to.size(), found->size() - inside);
      std::memcpy(to.data(), found->data() + inside, some);
      offset += some;
      to = to.subspan(some);
    }
  }
  double stored_position(std::uint64_t offset) {
    const std::lock_guard lock(mutex_);
    const double stored = static_cast<double>(end_ ? file_.size() : first_->packed_position());
    return known_ == 0 ? 0
                       : stored * std::min(1.0, static_cast<double>(offset) / static_cast<double>(known_));
  }

 private:
  using Block = std::shared_ptr<const std::vector<std::byte>>;

  [[noreturn]] void refuse() const {
    file_.require_unchanged();
    throw Error(ErrorCode::bad_file, "is cut short", file_.path().string());
  }

  // One block more of the file, by the reader that goes through it first.
  void go_on() {
    std::vector<std::byte> bytes(block);
    const std::uint64_t begin = known_;
    bytes.resize(first_->take(bytes));
    known_ += bytes.size();
    if (bytes.size() < block) {
      end_ = known_;
      file_.require_unchanged();
    }
    require_plausible_ratio(static_cast<double>(known_), static_cast<double>(first_->packed_position()),
                            file_.path().string());
    keep(begin / block, std::move(bytes));
  }

  Block at(std::uint64_t number) {
    const std::lock_guard lock(mutex_);
    if (const auto kept = kept_.find(number); kept != kept_.end()) return touch(kept->second);
    while (!end_ && known_ <= number * block) {
      go_on();
      if (known_ > number * block)
        if (const auto kept = kept_.find(number); kept != kept_.end()) return touch(kept->second);
    }
    if (number * block >= known_) refuse();
    return again(number);
  }

  // A block that was passed by and is no longer kept.
  Block again(std::uint64_t number) {
    Unpacker& reader = reader_before(number * block);
    std::vector<std::byte> bytes;
    for (;;) {
      // A place lies somewhere within a block: up to the next one it is passed by.
      const std::uint64_t begin = reader.position(), skip = (block - begin % block) % block;
      bytes.resize(skip > 0 ? skip : block);
      bytes.resize(reader.take(bytes));
      if (bytes.empty()) refuse();
      if (skip > 0) continue;
      const std::uint64_t made = begin / block;
      keep(made, std::move(bytes));
      if (made == number) return order_.front().second;
      bytes = {};
    }
  }

  // The one that is nearest before it, or a new one where a place is nearer.
  Unpacker& reader_before(std::uint64_t offset) {
    auto best = readers_.end();
    for (auto each = readers_.begin(); each != readers_.end(); ++each)
      if ((*each)->position() <= offset &&
          (best == readers_.end() || (*each)->position() > (*best)->position()))
        best = each;
    const auto after = places_.upper_bound(offset);
    const UnpackPlace beginning;
    const UnpackPlace& place = after == places_.begin() ? beginning : std::prev(after)->second;
    if (best == readers_.end() || place.unpacked > (*best)->position()) {
      if (readers_.size() == most_readers) readers_.pop_back();
      readers_.push_front(open_unpacker(file_, form_, place));
    } else {
      readers_.splice(readers_.begin(), readers_, best);
    }
    return *readers_.front();
  }

  using Order = std::list<std::pair<std::uint64_t, Block>>;
  Block touch(Order::iterator kept) {
    order_.splice(order_.begin(), order_, kept);
    return kept->second;
  }
  void keep(std::uint64_t number, std::vector<std::byte> bytes) {
    if (const auto kept = kept_.find(number); kept != kept_.end()) {
      touch(kept->second);
      return;
    }
    order_.emplace_front(number, std::make_shared<const std::vector<std::byte>>(std::move(bytes)));
    kept_[number] = order_.begin();
    if (order_.size() <= kept_blocks) return;
    kept_.erase(order_.back().first);
    order_.pop_back();
  }

  const StableFile& file_;
  StreamForm form_;
  std::mutex mutex_;
  std::unique_ptr<Unpacker> first_;
  std::uint64_t known_ = 0;  // how far the first one is
  std::optional<std::uint64_t> end_;
  std::map<std::uint64_t, UnpackPlace> places_;   // by where they are in what is unpacked
  std::list<std::unique_ptr<Unpacker>> readers_;  // the last used first
  Order order_;                                   // of blocks, the last used first
  std::map<std::uint64_t, Order::iterator> kept_;
};

Content::Content(const std::filesystem::path& path) : file_(path) {
  if (const StreamForm form = form_in(file_); form != StreamForm::plain)
    packed_ = std::make_unique<Packed>(file_, form);
}
Content::~Content() = default;

bool Content::is_ordered() const { return is_packed() && size() > kept_blocks * block / 2; }
bool Content::has(std::uint64_t offset, std::uint64_t count) const {
  if (packed_) return packed_->has(offset, count);
  return offset <= file_.size() && count <= file_.size() - offset;
}
std::uint64_t Content::size() const { return packed_ ? packed_->size() : file_.size(); }
void Content::read(std::uint64_t offset, std::span<std::byte> to) const {
  packed_ ? packed_->read(offset, to) : file_.read(offset, to);
}
void Content::read(std::uint64_t offset, std::span<std::byte> first, std::span<std::byte> second) const {
  const iovec places[] = {{first.data(), first.size()}, {second.data(), second.size()}};
  const std::size_t all = first.size() + second.size();
  if (!packed_ &&
      ::preadv(file_.descriptor(), places, 2, static_cast<off_t>(offset)) == static_cast<ssize_t>(all))
    return;
  read(offset, first);  // packed, or less than all at once: what is wrong, if something is, is said there
  read(offset + first.size(), second);
}
double Content::stored_position(std::uint64_t offset) const {
  return packed_ ? packed_->stored_position(offset) : static_cast<double>(offset);
}

std::string first_content(const std::filesystem::path& path, std::size_t count) {
  std::error_code none;
  if (!std::filesystem::is_regular_file(path, none)) return {};
  try {
    const StableFile file(path);
    const StreamForm form = form_in(file);
    std::string begin(count, '\0');
    const auto bytes = std::as_writable_bytes(std::span(begin));
    if (form == StreamForm::plain) {
      begin.resize(static_cast<std::size_t>(std::min<std::uint64_t>(count, file.size())));
      file.read(0, std::as_writable_bytes(std::span(begin)));
    } else {
      begin.resize(open_unpacker(file, form)->take(bytes));
    }
    return begin;
  } catch (const Error&) {
    return {};
  }
}

std::filesystem::path unpacked_name(const std::filesystem::path& path) {
  if (ends_in(path, {".tgz"})) return std::filesystem::path(path).replace_extension(".tar");
  return ends_in(path, {".gz", ".zst", ".bgz"}) ? std::filesystem::path(path).replace_extension() : path;
}

bool holds_text(const std::filesystem::path& path, std::initializer_list<std::string_view> endings) {
  constexpr std::size_t looked_at = 4096;
  if (unpacked_name(path) == path) return is_text(path, endings);
  return is_printable_text(first_content(path, looked_at));
}

}  // namespace superstep::data
