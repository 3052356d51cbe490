#include "superstep/edge/live/live.h"

#include <fmt/format.h>

#include <algorithm>

#include "superstep/base/file.h"
#include "superstep/base/option_range.h"
#include "superstep/base/text.h"
#include "superstep/base/threads/own_threads.h"
#include "superstep/page/page.h"

namespace superstep::edge {
namespace {

constexpr std::size_t most_series = 4;  // kept to be looked at (chosen)
constexpr std::size_t most_changes = 100;

std::size_t port_of(const StitchSettings& settings, const ServedPorts& ports, const std::string& model) {
  for (std::size_t i = ports.outputs.size(); i-- > 0;) {
    if (!settings.output.empty() && ports.outputs[i].name != settings.output) continue;
    const auto& extents = ports.outputs[i].shape.extents();
    const bool square = extents.size() >= 2 && extents[extents.size() - 1] == extents[extents.size() - 2] &&
                        ports.outputs[i].shape.element_count() == extents.back() * extents.back();
    if (ports.batched && ports.outputs[i].element == ElementType::f32 && square) return i;
  }
  throw Error(ErrorCode::unsupported, "gives no square windows of f32 to stitch", model,
              settings.output.empty() ? "--stitch is for models of windows, such as ptychonn-128"
                                      : "--stitch output=NAME names one of its outputs");
}

// Angles are in radians here; amplitudes are relative to the beam's, and have no unit.
std::string unit_of(const std::string& output) {
  return output.find("phase") != std::string::npos ? "rad" : "";
}

}  // namespace

Live::Live(Settings settings, const ServedPorts& ports)
    : settings_(std::move(settings)), port_(port_of(settings_.stitch, ports, settings_.model)) {
  side_ = ports.outputs[port_].shape.extents().back();
  output_ = ports.outputs[port_].name;
  if (!settings_.positions.empty()) read_positions();
  if (settings_.folder.empty()) return;
  make_folder(settings_.folder);
  writer_ = start_thread([this] { write_now_and_then(); });
}

Live::~Live() {
  {
    const std::scoped_lock lock(mutex_);
    over_ = true;
  }
  ending_.notify_all();
  if (writer_.joinable()) writer_.join();
}

void Live::read_positions() {
  for (const std::string& line : split(read_text_file(settings_.positions), '\n')) {
    if (line.empty() || line.starts_with('#')) continue;
    const std::vector<std::string> words = split(line, ',');
    const auto frame = finite_number(words[0]);
    const auto y = words.size() == 3 ? finite_number(words[1]) : std::nullopt,
               x = words.size() == 3 ? finite_number(words[2]) : std::nullopt;
    if (!frame || !y || !x || *frame < 0) {
      if (positions_.empty() && words.size() == 3 && !frame) continue;  // names of the columns
      throw Error(ErrorCode::bad_file, fmt::format("'{}' is no position", line), settings_.positions.string(),
                  "a line is FRAME,Y,X, in meters");
    }
    positions_[static_cast<std::uint64_t>(*frame)] = {*y, *x};
  }
}

Live::Growing& Live::of(const std::string& series, const std::string& version) {
  if (const auto found = series_.find(series); found != series_.end() && !found->second.closed)
    return found->second;
  series_.erase(series);
  while (series_.size() >= most_series) {
    auto oldest = std::ranges::find_if(series_, [](const auto& one) { return one.second.closed; });
    series_.erase(oldest == series_.end() ? series_.begin() : oldest);
  }
  return series_
      .emplace(series, Growing{.canvas = StitchCanvas(settings_.stitch),
                               .facts = {.series = series,
                                         .model = settings_.model,
                                         .version = version,
                                         .pixel = settings_.stitch.pixel}})
      .first->second;
}

void Live::add(const std::string& series, std::uint64_t frame, const Position& position,
               const std::vector<Tensor>& outputs, const Version& version) {
  const std::scoped_lock lock(mutex_);
  Growing& growing = of(series, version.id());
  shown_ = series;
  growing.facts.version = version.id();
  if (versions_.empty() || versions_.back().version != version.id()) {
    versions_.push_back({version.id(), frame, series});
    if (versions_.size() > most_changes) versions_.erase(versions_.begin());
  }
  ++rate_count_;
  const auto now = std::chrono::steady_clock::now();
  if (const double seconds = std::chrono::duration<double>(now - rate_since_).count(); seconds > 0.5) {
    rate_ = static_cast<double>(rate_count_) / seconds;
    rate_since_ = now;
    rate_count_ = 0;
  }
  const auto given = positions_.find(frame);
  if (!position && given == positions_.end()) {
    ++growing.unplaced;
    return;
  }
  const auto place = position ? *position : given->second;
  const auto plane = static_cast<std::size_t>(side_ * side_);
  if (growing.canvas.add(outputs[port_].as<float>().first(plane), side_, place))
    growing.facts.positions[frame] = place;
  else
    ++growing.beyond;
}

// Pictures are made and written without holding up who adds to them.
void Live::write(Growing& growing, std::unique_lock<std::mutex>& lock) {
  if (settings_.folder.empty() || growing.canvas.added() == growing.written) return;
  const StitchCanvas canvas = growing.canvas;
  const PictureFacts facts = growing.facts;
  growing.written = canvas.added();
  lock.unlock();
  std::string failure;
  try {
    const StitchedPicture picture = canvas.picture();
    write_picture_cxi(settings_.folder / (facts.series + ".cxi"), picture, facts);
    write_picture_tiff(settings_.folder / (facts.series + ".tiff"), picture, facts);
  } catch (const std::exception& error) {
    failure = error.what();
  }
  lock.lock();
  failure_ = failure;
}

void Live::write_now_and_then() {
  std::unique_lock lock(mutex_);
  while (!ending_.wait_for(lock, settings_.between_files, [&] { return over_; })) {
    std::vector<std::string> names;
    for (const auto& [name, growing] : series_)
      if (!growing.closed) names.push_back(name);
    for (const std::string& name : names)
      if (const auto found = series_.find(name); found != series_.end()) write(found->second, lock);
  }
}

void Live::close(const std::string& series) {
  std::unique_lock lock(mutex_);
  const auto found = series_.find(series);
  if (found == series_.end() || found->second.closed) return;
  write(found->second, lock);
  if (const auto still = series_.find(series); still != series_.end()) still->second.closed = true;
}

void Live::finish() {
  std::vector<std::string> names;
  {
    const std::scoped_lock lock(mutex_);
    for (const auto& [name, growing] : series_) names.push_back(name);
  }
  for (const std::string& name : names) close(name);
}

Live::State Live::state() const {
  const std::scoped_lock lock(mutex_);
  State state{.versions = versions_, .failure = failure_};
  const auto found = series_.find(shown_);
  if (found == series_.end()) return state;
  const Growing& growing = found->second;
  state.series = shown_;
  state.version = growing.facts.version;
  state.added = growing.canvas.added();
  state.unplaced = growing.unplaced;
  state.beyond = growing.beyond;
  const double quiet = std::chrono::duration<double>(std::chrono::steady_clock::now() - rate_since_).count();
  state.frames_per_second = quiet > 2 ? 0 : rate_;
  state.pixel = settings_.stitch.pixel;
  state.output = output_;
  state.unit = unit_of(output_);
  for (const auto& [what, drawn] : drawn_)
    if (drawn.series == shown_) state.drawn[what] = drawn.range;
  return state;
}

std::optional<StitchedPicture> Live::picture(const std::string& series) const {
  std::optional<StitchCanvas> canvas;
  {
    const std::scoped_lock lock(mutex_);
    const auto found = series_.find(series);
    if (found == series_.end()) return std::nullopt;
    canvas = found->second.canvas;
  }
  return canvas->picture();
}

std::string Live::png(Shown what) {
  constexpr auto between_pictures = std::chrono::milliseconds(100);
  std::optional<StitchCanvas> canvas;
  {
    const std::scoped_lock lock(mutex_);
    const auto found = series_.find(shown_);
    if (found == series_.end()) return {};
    Drawn& drawn = drawn_[what];
    const auto now = std::chrono::steady_clock::now();
    const bool same = drawn.series == shown_ && drawn.added == found->second.canvas.added();
    if (!drawn.png.empty() && (same || now - drawn.when < between_pictures)) return drawn.png;
    drawn.when = now;
    canvas = found->second.canvas;
  }
  const StitchedPicture picture = canvas->picture();
  if (picture.width == 0) return {};
  const std::vector<float>& values = what == Shown::mean     ? picture.mean
                                     : what == Shown::spread ? picture.spread
                                                             : picture.weight;
  const auto map = what == Shown::mean ? page::Colormap::gray : page::Colormap::viridis;
  const page::ValueRange range = page::finite_range(values);
  const auto bytes = page::encode_png(
      page::colored(values, picture.width, picture.height, map, range.low, range.high, page::no_value_color));
  const std::scoped_lock lock(mutex_);
  Drawn& drawn = drawn_[what];
  drawn.png.assign(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  drawn.series = shown_;
  drawn.range = {range.low, range.high, picture.height, picture.width};
  drawn.added = canvas->added();
  return drawn.png;
}

}  // namespace superstep::edge
