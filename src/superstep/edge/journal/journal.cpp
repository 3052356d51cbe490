#include "superstep/edge/journal/journal.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>

#include "superstep/base/error.h"
#include "superstep/base/file.h"
#include "superstep/base/json.h"
#include "superstep/edge/stream/frame.h"

namespace superstep::edge {
namespace {

using nlohmann::json;

constexpr std::size_t most_closed_names = 64;  // chosen: as many as a receiver remembers

std::filesystem::path made(const std::filesystem::path& folder) {
  make_folder(folder);
  require_writable_folder(folder);
  return folder;
}

std::span<const std::byte> bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }

// Numbers as [first, last, first, last ...].
template <class Numbers>
json ranges_of(const Numbers& numbers) {
  json ranges = json::array();
  for (const std::uint64_t number : numbers) {
    if (!ranges.empty() && ranges.back().get<std::uint64_t>() + 1 == number)
      ranges.back() = number;
    else
      ranges.insert(ranges.end(), {number, number});
  }
  return ranges;
}

template <class Use>
void for_ranges(const json& ranges, const Use& use) {
  for (std::size_t i = 0; i + 1 < ranges.size(); i += 2)
    for (auto number = ranges[i].get<std::uint64_t>(); number <= ranges[i + 1].get<std::uint64_t>();
         ++number) {
      if (number >= most_frames) throw Error(ErrorCode::bad_file, "a frame that is none", "the journal");
      use(number);
    }
}

std::vector<std::uint64_t> numbers_of(const json& ranges) {
  std::vector<std::uint64_t> numbers;
  for_ranges(ranges, [&](std::uint64_t number) { numbers.push_back(number); });
  return numbers;
}

// A record of a frame: lengths of the series' name and of every part, its number, then all of them.
std::vector<std::uint64_t> frame_head(const std::string& series, std::uint64_t number,
                                      const FrameParts& parts) {
  std::vector<std::uint64_t> head{number, series.size(), parts.size()};
  for (const auto part : parts) head.push_back(part.size());
  return head;
}

struct StoredFrame {
  std::string series;
  std::uint64_t number = 0;
  FrameParts parts;
};

StoredFrame stored_frame(std::span<const std::byte> contents) {
  const auto word = [&] {
    std::uint64_t value = 0;
    if (contents.size() < sizeof value)
      throw Error(ErrorCode::bad_file, "a record is too short", "the journal");
    std::memcpy(&value, contents.data(), sizeof value);
    contents = contents.subspan(sizeof value);
    return value;
  };
  const auto take = [&](std::uint64_t size) {
    if (contents.size() < size) throw Error(ErrorCode::bad_file, "a record is too short", "the journal");
    const auto part = contents.first(size);
    contents = contents.subspan(size);
    return part;
  };
  StoredFrame frame;
  frame.number = word();
  const std::uint64_t name = word(), parts = word();
  if (frame.number >= most_frames || name > most_name_bytes || parts > 16)
    throw Error(ErrorCode::bad_file, "a frame that is none", "the journal");
  std::vector<std::uint64_t> sizes;
  for (std::uint64_t i = 0; i < parts; ++i) sizes.push_back(word());
  const auto series = take(name);
  frame.series.assign(reinterpret_cast<const char*>(series.data()), series.size());
  for (const std::uint64_t size : sizes) frame.parts.push_back(take(size));
  return frame;
}

}  // namespace

Journal::Journal(const Settings& settings)
    : settings_(settings), lock_(made(settings.folder)), log_(settings.folder, settings.segment_bytes) {
  try {
    for (const std::uint64_t segment : log_.segments())
      log_.read(segment, [this](const LogRecord& record) { read_record(record); });
  } catch (const json::exception& error) {
    throw Error(ErrorCode::bad_file, fmt::format("cannot be read: {}", error.what()),
                settings.folder.string());
  }
}

// A name becomes a file's: what is none is of a journal that was damaged, or made by somebody else.
Journal::Known& Journal::of(const std::string& series) {
  if (!is_series_name(series)) throw Error(ErrorCode::bad_file, "a series that is none", "the journal");
  return series_.try_emplace(series, series).first->second;
}

void Journal::read_record(const LogRecord& record) {
  if (record.kind == of_frame) {
    const StoredFrame frame = stored_frame(record.contents);
    Known& known = of(frame.series);
    if (!known.series.add(frame.number)) return;
    known.waiting.insert(frame.number);
    places_[frame.series][frame.number] = record.segment;
    ++waiting_in_[record.segment];
    return;
  }
  const std::string_view text(reinterpret_cast<const char*>(record.contents.data()), record.contents.size());
  // A state says what the records before it have said, if they are still there.
  if (record.kind == of_state) return std::exchange(has_state_, true) ? void() : read_state(text);
  const json what = parse_json_or_throw(text);
  const auto name = what.at("series").get<std::string>();
  if (record.kind == of_begin) of(name).series.announce(what.at("frames").get<std::uint64_t>());
  if (record.kind == of_end) of(name).ended = true;
  if (record.kind == of_closed) apply_closed(name);
  if (record.kind == of_settled) {
    const auto outcome = what.at("outcome").get<std::size_t>();
    if (outcome >= all_outcomes.size())
      throw Error(ErrorCode::bad_file, "an outcome that is none", "the journal");
    apply_settled(name, what.at("frame").get<std::uint64_t>(), all_outcomes[outcome]);
  }
  if (record.kind == of_file) {
    const auto file = what.at("file").get<std::string>();
    of(name).files_named = std::max(of(name).files_named, what.at("number").get<int>());
    if (std::filesystem::exists(settings_.results / file))
      apply_file(name, file, what.at("number").get<int>(), numbers_of(what.at("frames")));
  }
}

std::string Journal::state() const {
  json all = json::array();
  for (const auto& [name, known] : series_) {
    std::vector<std::uint64_t> seen;
    for (std::uint64_t number = 0; number < known.series.end(); ++number)
      if (known.series.has(number)) seen.push_back(number);
    all.push_back({{"series", name},
                   {"frames", known.series.announced()},
                   {"ended", known.ended},
                   {"seen", ranges_of(seen)},
                   {"waiting", ranges_of(known.waiting)},
                   {"outcomes", known.outcomes},
                   {"files", known.files},
                   {"named", known.files_named}});
  }
  return json{{"series", all}, {"closed", closed_}}.dump();
}

void Journal::read_state(std::string_view text) {
  const json state = parse_json_or_throw(text);
  for (const json& one : state.at("series")) {
    Known& known = of(one.at("series").get<std::string>());
    known.series.announce(one.at("frames").get<std::uint64_t>());
    known.ended = one.at("ended").get<bool>();
    for_ranges(one.at("seen"), [&](std::uint64_t number) { known.series.add(number); });
    for_ranges(one.at("waiting"), [&](std::uint64_t number) { known.waiting.insert(number); });
    known.outcomes = one.at("outcomes").get<OutcomeCounts>();
    known.files = one.at("files").get<std::vector<std::string>>();
    known.files_named = one.at("named").get<int>();
  }
  closed_ = state.at("closed").get<std::list<std::string>>();
}

void Journal::replay(FunctionRef<void(const FrameParts& parts)> each,
                     FunctionRef<void(const std::string& series, std::uint64_t number)> lost) {
  std::map<std::string, std::set<std::uint64_t>> left;
  std::vector<std::uint64_t> segments;
  {
    const std::scoped_lock lock(mutex_);
    for (const auto& [name, known] : series_) left[name] = known.waiting;
    segments = log_.segments();
  }
  for (const std::uint64_t segment : segments)
    log_.read(segment, [&](const LogRecord& record) {
      if (record.kind != of_frame) return;
      const StoredFrame frame = stored_frame(record.contents);
      const auto found = left.find(frame.series);
      if (found != left.end() && found->second.erase(frame.number) > 0) each(frame.parts);
    });
  for (const auto& [name, numbers] : left)
    for (const std::uint64_t number : numbers) lost(name, number);
}

// --- writing

void Journal::append(Kind kind, const std::vector<std::span<const std::byte>>& contents) {
  std::size_t bytes = 0;
  for (const auto part : contents) bytes += part.size();
  if (!log_.is_open() || !log_.has_room(bytes)) {
    log_.begin_segment();
    needs_state_ = true;
  }
  if (needs_state_) {
    const std::string now = state();
    const std::span<const std::byte> whole = bytes_of(now);
    log_.append(of_state, {&whole, 1});
    needs_state_ = false;
  }
  log_.append(kind, contents);
}

void Journal::append(Kind kind, const std::string& text) { append(kind, {bytes_of(text)}); }

void Journal::begin(const std::string& series, std::uint64_t announced) {
  const std::scoped_lock lock(mutex_);
  append(of_begin, json{{"series", series}, {"frames", announced}}.dump());
  of(series).series.announce(announced);
}

void Journal::frame(const std::string& series, std::uint64_t number, const FrameParts& parts) {
  const std::scoped_lock lock(mutex_);
  const std::vector<std::uint64_t> head = frame_head(series, number, parts);
  std::vector<std::span<const std::byte>> contents{std::as_bytes(std::span(head)), bytes_of(series)};
  contents.insert(contents.end(), parts.begin(), parts.end());
  append(of_frame, contents);
  Known& known = of(series);
  known.series.add(number);
  known.waiting.insert(number);
  places_[series][number] = log_.newest();
  ++waiting_in_[log_.newest()];
}

void Journal::end(const std::string& series) {
  const std::scoped_lock lock(mutex_);
  append(of_end, json{{"series", series}}.dump());
  of(series).ended = true;
}

void Journal::commit() {
  const std::scoped_lock lock(mutex_);
  log_.commit();
}

// The frame waits no more. False: it did not.
bool Journal::release(const std::string& series, std::uint64_t number) {
  if (of(series).waiting.erase(number) == 0) return false;
  auto& places = places_[series];
  if (const auto place = places.find(number); place != places.end()) {
    if (--waiting_in_[place->second] == 0) waiting_in_.erase(place->second);
    places.erase(place);
  }
  return true;
}

void Journal::apply_settled(const std::string& series, std::uint64_t number, Outcome outcome) {
  if (release(series, number)) ++of(series).outcomes[static_cast<std::size_t>(outcome)];
}

void Journal::settle(const std::string& series, std::uint64_t number, Outcome outcome) {
  const std::scoped_lock lock(mutex_);
  append(of_settled,
         json{{"series", series}, {"frame", number}, {"outcome", static_cast<std::size_t>(outcome)}}.dump());
  apply_settled(series, number, outcome);
  drop_settled_segments();
}

void Journal::announce_file(const std::string& series, const std::string& file, int number,
                            const std::vector<std::uint64_t>& frames) {
  const std::scoped_lock lock(mutex_);
  append(of_file,
         json{{"series", series}, {"file", file}, {"number", number}, {"frames", ranges_of(frames)}}.dump());
  of(series).files_named = std::max(of(series).files_named, number);
  log_.commit();
}

void Journal::apply_file(const std::string& series, const std::string& file, int number,
                         const std::vector<std::uint64_t>& frames) {
  Known& known = of(series);
  known.files_named = std::max(known.files_named, number);
  if (std::ranges::find(known.files, file) == known.files.end()) known.files.push_back(file);
  for (const std::uint64_t frame : frames) apply_settled(series, frame, Outcome::served);
}

void Journal::file_is_there(const std::string& series, const std::string& file,
                            const std::vector<std::uint64_t>& frames) {
  const std::scoped_lock lock(mutex_);
  apply_file(series, file, 0, frames);
  drop_settled_segments();
}

void Journal::apply_closed(const std::string& series) {
  if (const auto found = series_.find(series); found != series_.end()) {
    const std::set<std::uint64_t> waiting = found->second.waiting;
    for (const std::uint64_t number : waiting) release(series, number);
    series_.erase(series);
  }
  places_.erase(series);
  closed_.push_back(series);
  if (closed_.size() > most_closed_names) closed_.pop_front();
}

void Journal::close(const std::string& series) {
  const std::scoped_lock lock(mutex_);
  append(of_closed, json{{"series", series}}.dump());
  log_.commit();
  apply_closed(series);
  drop_settled_segments();
}

// Those at the front in which no frame waits; the newest stays.
void Journal::drop_settled_segments() {
  const std::uint64_t first = waiting_in_.empty() ? log_.newest() : waiting_in_.begin()->first;
  if (log_.oldest() >= first || !log_.is_open()) return;
  log_.commit();  // the state that the newest begins with stands for them
  log_.drop_before(first);
}

std::uint64_t Journal::bytes() const {
  const std::scoped_lock lock(mutex_);
  return log_.bytes();
}

}  // namespace superstep::edge
