#include "superstep/edge/stream/receiver.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>

#include "superstep/base/file.h"
#include "superstep/base/text.h"
#include "superstep/base/threads/own_threads.h"
#include "superstep/edge/model/pixels.h"
#include "superstep/edge/stream/summary.h"
#include "superstep/physics/xray/bragg_patches.h"

namespace superstep::edge {
namespace {

constexpr std::size_t most_open = 16;  // of series: a bound of memory (chosen)
constexpr auto look_up = std::chrono::milliseconds(50);

std::vector<std::int64_t> without_ones(const std::vector<std::int64_t>& extents) {
  std::vector<std::int64_t> kept;
  std::ranges::copy_if(extents, std::back_inserter(kept), [](std::int64_t extent) { return extent != 1; });
  return kept;
}

// Rows that a frame is: one, or as many as its first axis has where the rest is a row.
std::int64_t rows_of(const ServedPorts& ports, const std::vector<std::int64_t>& extents) {
  const std::vector<std::int64_t> row = without_ones(ports.inputs[0].shape.extents());
  if (without_ones(extents) == row) return 1;
  if (!ports.batched || extents.empty()) return 0;
  return without_ones({extents.begin() + 1, extents.end()}) == row ? extents[0] : 0;
}

// One that is left out without a word would be missed by nobody.
void require_one_channel(const Frame& frame, const std::string& chosen) {
  if (chosen.empty() && !frame.other_channels.empty())
    throw Error(ErrorCode::unsupported,
                fmt::format("it has {} channels, and none was chosen by --pull-channel; beside the first: {}",
                            frame.other_channels.size() + 1, join(frame.other_channels, ", ")),
                "a frame's message");
}

void give_meaning(Pixels meaning, std::int64_t rows, std::span<float> values) {
  if (meaning == Pixels::logarithm)
    for (float& value : values) value = std::log1p(std::max(0.0f, value));
  const std::size_t row = values.size() / static_cast<std::size_t>(rows);
  if (meaning == Pixels::unit)
    for (std::size_t first = 0; first < values.size(); first += row)
      data::scale_to_unit(values.subspan(first, row));
}

}  // namespace

Receiver::Receiver(const ReceiverSettings& settings, ModelService& model, Live* live, FrameListener* listener)
    : settings_(settings),
      model_(model),
      live_(live),
      listener_(listener),
      journal_(settings.journal.empty()
                   ? nullptr
                   : std::make_unique<Journal>(Journal::Settings{.folder = settings.journal,
                                                                 .results = settings.folder,
                                                                 .segment_bytes = settings.segment_bytes})),
      inlet_(
          open_inlet(settings.pull, !settings.journal.empty(), settings.most_frame_bytes, settings.curve)) {
  const ServedPorts ports = model.current()->ports();
  if (ports.inputs.size() != 1 || ports.inputs[0].element != ElementType::f32)
    throw Error(ErrorCode::unsupported,
                "takes something else than one array of f32: frames are no such thing", model.name());
  if (!settings_.folder.empty()) {
    make_folder(settings_.folder);
    require_writable_folder(settings_.folder);
  }
  if (!settings_.publish.empty()) {
    publish_ = std::make_unique<Publisher>(settings_.publish, settings_.curve);
    publish_endpoint_ = publish_->endpoint();
  }
  taker_ = start_thread([this] { take_answers(); });
  try {
    receiver_ = start_thread([this] { receive(); });
  } catch (...) {
    finish();
    throw;
  }
}

Receiver::~Receiver() {
  stop();
  finish();
}

StreamAccount Receiver::account() const {
  const std::scoped_lock lock(mutex_);
  StreamAccount account = account_;
  account.refused_connections = inlet_->refused() + (publish_ ? publish_->refused() : refused_before_);
  return account;
}

std::vector<std::string> Receiver::files() const {
  const std::scoped_lock lock(mutex_);
  return files_;
}

std::string Receiver::failure() const {
  const std::scoped_lock lock(mutex_);
  for (const std::string* failure : {&socket_failure_, &failure_, &journal_failure_})
    if (!failure->empty()) return *failure;
  return {};
}

void Receiver::stop() {
  {
    const std::scoped_lock lock(mutex_);
    stopping_ = true;
  }
  room_.notify_all();
  if (receiver_.joinable()) receiver_.join();
}

void Receiver::finish() {
  {
    const std::scoped_lock lock(mutex_);
    finishing_ = true;
    for (const auto& [name, series] : open_) {
      if (journal_) continue;  // the next server goes on with it
      series->ended = true;
      ending_.push_back(series);
    }
  }
  answers_there_.notify_all();
  room_.notify_all();
  if (taker_.joinable()) taker_.join();
}

// --- the thread that receives

void Receiver::receive() {
  MessageParts parts;
  try {
    if (journal_) resume();
    while (receive_one(parts)) continue;
    if (inlet_->has_unkept()) acknowledge();
  } catch (const std::exception& error) {
    const std::scoped_lock lock(mutex_);
    socket_failure_ = error.what();
  }
}

bool Receiver::receive_one(MessageParts& parts) {
  {
    const std::scoped_lock lock(mutex_);
    if (stopping_) return false;
  }
  const auto wait = inlet_->has_unkept() ? std::chrono::milliseconds(1) : look_up;
  const bool came = inlet_->receive(parts, wait);
  if (came) take(parts);
  if (inlet_->is_due() || (!came && inlet_->has_unkept())) acknowledge();
  if (settings_.stall.count() > 0) end_stalled();
  return true;
}

// What was appended is on the disk before anybody hears that it is kept.
void Receiver::acknowledge() {
  if (journal_ && !insist_on_writing([&] { journal_->commit(); }, journal_failure_, stopping_)) return;
  inlet_->acknowledge();
}

void Receiver::end_stalled() {
  const std::scoped_lock lock(mutex_);
  for (const auto& [name, series] : open_) {
    if (series->ended || Clock::now() - series->last_came < settings_.stall) continue;
    series->ended = true;
    ending_.push_back(series);
    answers_there_.notify_all();
  }
}

// --- what a receiver before this one left

void Receiver::resume(const Journal::Known& known) {
  const SeriesPointer series = opened(known.series.name(), known.files_named, known.files);
  series->series = known.series;
  StreamAccount account;
  account.received = known.series.seen();
  account.waiting = known.waiting.size();
  for (const Outcome outcome : all_outcomes)
    (outcome == Outcome::invalid ? account.unfitting : account.of(outcome)) =
        known.outcomes[static_cast<std::size_t>(outcome)];
  series->account = account;
  account_ += account;
  series->ended = known.ended;
  if (known.ended && account.waiting == 0) ending_.push_back(series);
}

void Receiver::replay(const MessageParts& parts) {
  const auto frame = std::get<Frame>(decode_message(parts, settings_.channel));
  wait_for_room();
  SeriesPointer series;
  {
    const std::scoped_lock lock(mutex_);
    if (stopping_) return;
    series = open_.at(frame.series);
  }
  ask(series, frame);
}

void Receiver::resume() {
  {
    const std::scoped_lock lock(mutex_);
    closed_ = journal_->closed();
    for (const auto& [name, known] : journal_->known()) resume(known);
  }
  answers_there_.notify_all();
  journal_->replay([&](const MessageParts& parts) { replay(parts); },
                   [&](const std::string& series, std::uint64_t number) {
                     const std::scoped_lock lock(mutex_);
                     settle(open_.at(series), number, Outcome::failed);
                   });
}

void Receiver::take(const MessageParts& parts) {
  StreamMessage message;
  try {
    message = decode_message(parts, settings_.channel);
    if (const auto* frame = std::get_if<Frame>(&message)) require_one_channel(*frame, settings_.channel);
  } catch (const Error& error) {
    const std::scoped_lock lock(mutex_);
    ++account_.received;
    ++(error.code() == ErrorCode::unsupported ? account_.unread : account_.corrupt);
    account_.add_reason(fmt::format("{}: {}", error.where(), error.message()));
    return;
  }
  if (const auto* started = std::get_if<SeriesBegin>(&message)) return begin(*started);
  if (const auto* ended = std::get_if<SeriesEnd>(&message)) return end(*ended);
  take_frame(std::get<Frame>(message), parts);
}

Receiver::SeriesPointer Receiver::series_of(const std::string& name) {
  if (const auto found = open_.find(name); found != open_.end())
    return found->second->ended ? nullptr : found->second;
  if (std::ranges::find(closed_, name) != closed_.end()) return nullptr;
  if (open_.size() >= most_open) {  // its detector went away without a word
    const SeriesPointer oldest = open_.at(order_.front());
    order_.pop_front();
    oldest->ended = true;
    ending_.push_back(oldest);
  }
  return opened(name, 0, {});
}

Receiver::SeriesPointer Receiver::opened(const std::string& name, int files_named,
                                         std::vector<std::string> files) {
  auto series = std::make_shared<OpenSeries>(OpenSeries{.series = Series(name)});
  if (!settings_.folder.empty()) {
    SeriesResults::Settings results{.folder = settings_.folder,
                                    .series = name,
                                    .part_bytes = settings_.part_bytes,
                                    .first_number = files_named + 1};
    for (const std::string& file : files) results.files.push_back((settings_.folder / file).string());
    if (journal_) {
      results.before = [this, name](const std::string& file, int number, const auto& frames) {
        journal_->announce_file(name, file, number, frames);
      };
      results.after = [this, name](const std::string& file, int, const auto& frames) {
        journal_->file_is_there(name, file, frames);
      };
    }
    series->results.emplace(std::move(results));
  }
  open_.emplace(name, series);
  order_.push_back(name);
  return series;
}

void Receiver::begin(const SeriesBegin& message) {
  {
    const std::scoped_lock lock(mutex_);
    const SeriesPointer series = series_of(message.series);
    if (!series) return;
    series->series.announce(message.frames);
  }
  if (journal_)
    insist_on_writing([&] { journal_->begin(message.series, message.frames); }, journal_failure_, stopping_);
}

void Receiver::end(const SeriesEnd& message) {
  bool known = false;
  {
    const std::scoped_lock lock(mutex_);
    known = series_of(message.series) != nullptr;
  }
  if (journal_ && known &&
      !insist_on_writing([&] { journal_->end(message.series); }, journal_failure_, stopping_))
    return;
  {
    const std::scoped_lock lock(mutex_);
    const SeriesPointer series = series_of(message.series);
    if (!series) return;
    series->ended = true;
    ending_.push_back(series);
  }
  answers_there_.notify_all();
}

Receiver::SeriesPointer Receiver::accept(const Frame& frame) {
  const std::scoped_lock lock(mutex_);
  ++account_.received;
  const SeriesPointer series = series_of(frame.series);
  if (!series) {
    ++account_.late;
    account_.add_reason("it came behind the end of its series");
    return nullptr;
  }
  series->last_came = Clock::now();
  ++series->account.received;
  if (!series->series.add(frame.number)) {
    ++account_.duplicate;
    ++series->account.duplicate;
    return nullptr;
  }
  ++account_.waiting;
  ++series->account.waiting;
  return series;
}

// What was waiting has become something. The last of a series that has ended ends it.
void Receiver::settle(const SeriesPointer& series, std::uint64_t frame, Outcome outcome) {
  for (StreamAccount* account : {&account_, &series->account}) {
    --account->waiting;
    if (outcome == Outcome::invalid)
      ++account->unfitting;
    else
      ++account->of(outcome);
  }
  // What was not its turn yet is asked again by the next receiver.
  const bool is_final =
      outcome != Outcome::served && outcome != Outcome::closed && outcome != Outcome::refused;
  if (journal_ && is_final) try {
      journal_->settle(series->series.name(), frame, outcome);
    } catch (const Error& error) {  // no room on the disk: the next receiver finds out again
      journal_failure_ = error.what();
    }
  if (!series->ended || series->account.waiting > 0) return;
  ending_.push_back(series);
  answers_there_.notify_one();
}

JobPointer Receiver::job_of(const Frame& frame, const std::shared_ptr<Version>& version) const {
  const std::int64_t rows = rows_of(version->ports(), frame.extents);
  if (rows < 1 || rows > model_.batcher().settings().queue_rows) return nullptr;
  JobPointer job = make_job(version, rows);
  if (frame.element == ElementType::f32 && settings_.scale == 1)
    std::memcpy(job->inputs[0].bytes(), frame.pixels.data(), frame.pixels.size());
  else
    convert_pixels(frame.element, frame.pixels, settings_.scale, true, job->inputs[0].as<float>());
  give_meaning(settings_.meaning, rows, job->inputs[0].as<float>());
  return job;
}

// Answers that wait for their writing are bounded, too: who writes slowly holds the detector back.
void Receiver::wait_for_room() {
  const auto most = static_cast<std::size_t>(model_.batcher().settings().queue_rows);
  std::unique_lock lock(mutex_);
  room_.wait(lock, [&] { return stopping_ || answers_.size() < most; });
}

void Receiver::take_frame(const Frame& frame, const MessageParts& parts) {
  wait_for_room();
  const SeriesPointer series = accept(frame);
  if (!series) return;
  if (journal_ && !insist_on_writing([&] { journal_->frame(frame.series, frame.number, parts); },
                                     journal_failure_, stopping_)) {
    const std::scoped_lock lock(mutex_);
    return settle(series, frame.number, Outcome::closed);
  }
  ask(series, frame);
}

void Receiver::tell_listener(const Frame& frame) const {
  std::vector<float> pixels(frame.pixels.size() / size_in_bytes(frame.element));
  convert_pixels(frame.element, frame.pixels, settings_.scale, frame.element != ElementType::f32, pixels);
  listener_->on_frame(frame, pixels);
}

void Receiver::ask(const SeriesPointer& series, const Frame& frame) {
  const std::shared_ptr<Version> version = model_.current();
  const JobPointer job = version ? job_of(frame, version) : nullptr;
  if (!job) {
    const std::scoped_lock lock(mutex_);
    if (version) {
      const std::string why = fmt::format("{} of {} is not what the model takes",
                                          to_string(Shape(frame.extents)), name_of(frame.element));
      for (StreamAccount* account : {&account_, &series->account}) account->add_reason(why);
    }
    return settle(series, frame.number, version ? Outcome::invalid : Outcome::refused);
  }
  if (listener_) tell_listener(frame);
  job->done = [this, series, number = frame.number, position = frame.position](Job& done, Outcome outcome,
                                                                               const std::string&) {
    const std::scoped_lock lock(mutex_);
    if (outcome == Outcome::served)
      answers_.push_back({series, number, done.version, std::move(done.outputs), done.rows, position});
    else
      settle(series, number, outcome);
    answers_there_.notify_one();
  };
  if (model_.batcher().submit(job, true)) return;
  const std::scoped_lock lock(mutex_);
  settle(series, frame.number, Outcome::refused);
}

}  // namespace superstep::edge
