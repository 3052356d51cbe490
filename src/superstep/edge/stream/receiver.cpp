#include "superstep/edge/stream/receiver.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <nlohmann/json.hpp>

#include "superstep/base/file.h"
#include "superstep/base/system/own_threads.h"
#include "superstep/edge/model/pixels.h"

namespace superstep::edge {
namespace {

constexpr std::size_t most_open = 16, most_closed_names = 64;  // of series: bounds of memory (chosen)
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

std::uint64_t number_of(const std::string& version) {
  std::uint64_t number = 0;
  std::from_chars(version.data(), version.data() + version.size(), number, 16);
  return number;
}

}  // namespace

Receiver::Receiver(const ReceiverSettings& settings, ModelService& model)
    : settings_(settings),
      model_(model),
      pull_(SocketKind::pull, settings.pull,
            {.most_bytes = static_cast<std::int64_t>(settings.most_frame_bytes)}) {
  const ServedPorts ports = model.current()->ports();
  if (ports.inputs.size() != 1 || ports.inputs[0].element != ElementType::f32)
    throw Error(ErrorCode::unsupported,
                "takes something else than one array of f32: frames are no such thing", model.name());
  if (!settings_.folder.empty()) {
    make_folder(settings_.folder);
    require_writable_folder(settings_.folder);
  }
  if (!settings_.publish.empty()) {
    publish_ =
        std::make_unique<Socket>(SocketKind::publish, settings_.publish,
                                 Socket::Settings{.high_water = 1000, .linger = std::chrono::seconds(1)});
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
  return account_;
}

std::vector<std::string> Receiver::files() const {
  const std::scoped_lock lock(mutex_);
  return files_;
}

std::string Receiver::failure() const {
  const std::scoped_lock lock(mutex_);
  return socket_failure_.empty() ? failure_ : socket_failure_;
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
  for (;;) {
    {
      const std::scoped_lock lock(mutex_);
      if (stopping_) return;
    }
    try {
      if (pull_.receive(parts, look_up)) take(parts);
    } catch (const std::exception& error) {
      const std::scoped_lock lock(mutex_);
      socket_failure_ = error.what();
      return;
    }
  }
}

void Receiver::take(const MessageParts& parts) {
  StreamMessage message;
  try {
    message = decode_message(parts);
  } catch (const Error&) {
    const std::scoped_lock lock(mutex_);
    ++account_.received;
    ++account_.corrupt;
    return;
  }
  if (const auto* started = std::get_if<SeriesBegin>(&message)) return begin(*started);
  if (const auto* ended = std::get_if<SeriesEnd>(&message)) return end(*ended);
  take_frame(std::get<Frame>(message));
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
  auto series = std::make_shared<OpenSeries>(OpenSeries{.series = Series(name)});
  if (!settings_.folder.empty()) series->results.emplace(settings_.folder, name, settings_.part_bytes);
  open_.emplace(name, series);
  order_.push_back(name);
  return series;
}

void Receiver::begin(const SeriesBegin& message) {
  const std::scoped_lock lock(mutex_);
  if (const SeriesPointer series = series_of(message.series)) series->series.announce(message.frames);
}

void Receiver::end(const SeriesEnd& message) {
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
    return nullptr;
  }
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
void Receiver::settle(const SeriesPointer& series, Outcome outcome) {
  for (StreamAccount* account : {&account_, &series->account}) {
    --account->waiting;
    if (outcome == Outcome::invalid)
      ++account->unfitting;
    else
      ++account->of(outcome);
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
  return job;
}

// Answers that wait for their writing are bounded, too: who writes slowly holds the detector back.
void Receiver::wait_for_room() {
  const auto most = static_cast<std::size_t>(model_.batcher().settings().queue_rows);
  std::unique_lock lock(mutex_);
  room_.wait(lock, [&] { return stopping_ || answers_.size() < most; });
}

void Receiver::take_frame(const Frame& frame) {
  wait_for_room();
  const SeriesPointer series = accept(frame);
  if (!series) return;
  const std::shared_ptr<Version> version = model_.current();
  const JobPointer job = version ? job_of(frame, version) : nullptr;
  if (!job) {
    const std::scoped_lock lock(mutex_);
    return settle(series, version ? Outcome::invalid : Outcome::refused);
  }
  job->done = [this, series, number = frame.number](Job& done, Outcome outcome, const std::string&) {
    const std::scoped_lock lock(mutex_);
    if (outcome == Outcome::served)
      answers_.push_back({series, number, done.version, std::move(done.outputs), done.rows});
    else
      settle(series, outcome);
    answers_there_.notify_one();
  };
  if (model_.batcher().submit(job, true)) return;
  const std::scoped_lock lock(mutex_);
  settle(series, Outcome::refused);
}

// --- the thread that takes answers

void Receiver::take_answers() {
  for (;;) {
    std::optional<Answered> answered;
    SeriesPointer ending;
    {
      std::unique_lock lock(mutex_);
      answers_there_.wait(lock, [&] { return !answers_.empty() || !ending_.empty() || finishing_; });
      if (!answers_.empty()) {
        answered = std::move(answers_.front());
        answers_.pop_front();
        room_.notify_one();
      } else if (!ending_.empty()) {
        ending = ending_.front();
        ending_.pop_front();
      } else {
        return;
      }
    }
    if (answered)
      hand_over(*answered);
    else
      close_if_done(ending);
  }
}

template <class Write>
bool Receiver::try_to_write(const Write& write) {
  std::string why;
  try {
    write();
  } catch (const std::exception& error) {
    why = error.what();
  }
  const std::scoped_lock lock(mutex_);
  failure_ = why;
  return why.empty();
}

// Until there is room again, say: meanwhile answers wait, then frames, and at last the detector. Given up
// when all of it is to end.
template <class Write>
void Receiver::insist_on_writing(const Write& write) {
  constexpr auto between_tries = std::chrono::milliseconds(200);
  while (!try_to_write(write)) {
    std::unique_lock lock(mutex_);
    if (room_.wait_for(lock, between_tries, [&] { return finishing_; })) return;
  }
}

void Receiver::hand_over(const Answered& answered) {
  try {
    if (publish_) publish(answered);
  } catch (const std::exception& error) {
    publish_.reset();
    const std::scoped_lock lock(mutex_);
    socket_failure_ = error.what();
  }
  if (answered.series->results) {
    SeriesResults& results = *answered.series->results;
    results.add(answered.frame, number_of(answered.version->id()), answered.version->ports().outputs,
                answered.outputs, answered.rows);
    if (results.wants_flush()) insist_on_writing([&] { results.flush(); });
  }
  const std::scoped_lock lock(mutex_);
  settle(answered.series, Outcome::served);
}

void Receiver::publish(const Answered& answered) {
  nlohmann::json outputs = nlohmann::json::array();
  std::vector<std::string> parts(1);
  for (std::size_t i = 0; i < answered.outputs.size(); ++i) {
    outputs.push_back({{"name", answered.version->ports().outputs[i].name},
                       {"dtype", name_of(answered.outputs[i].type())},
                       {"shape", answered.outputs[i].shape().extents()}});
    parts.emplace_back(reinterpret_cast<const char*>(answered.outputs[i].bytes()),
                       answered.outputs[i].byte_count());
  }
  parts[0] = nlohmann::json{{"protocol", "superstep-answer/1"},  {"series", answered.series->series.name()},
                            {"frame", answered.frame},           {"model", model_.name()},
                            {"version", answered.version->id()}, {"outputs", outputs}}
                 .dump();
  publish_->send(parts, std::chrono::milliseconds(0));
}

// A series ends when its end was said and nothing of it waits any more.
void Receiver::close_if_done(const SeriesPointer& series) {
  {
    const std::scoped_lock lock(mutex_);
    const auto found = open_.find(series->series.name());
    if (!series->ended || series->account.waiting > 0 || found == open_.end() || found->second != series)
      return;
    open_.erase(found);
    order_.remove(series->series.name());
    closed_.push_back(series->series.name());
    if (closed_.size() > most_closed_names) closed_.pop_front();
    ++account_.series;
    account_.missing += series->series.missing();
    account_.incomplete += series->series.missing() > 0;
  }
  if (!series->results) return;
  insist_on_writing([&] { series->results->flush(); });
  insist_on_writing([&] { write_summary(*series); });
  const std::scoped_lock lock(mutex_);
  files_.insert(files_.end(), series->results->files().begin(), series->results->files().end());
}

void Receiver::write_summary(const OpenSeries& series) {
  constexpr std::size_t most_ranges = 10'000;
  const StreamAccount& account = series.account;
  nlohmann::json outcomes = nlohmann::json::object();
  for (const Outcome outcome : all_outcomes)
    if (account.of(outcome) > 0) outcomes[name_of(outcome)] = account.of(outcome);
  nlohmann::json files = nlohmann::json::array();
  for (const std::string& file : series.results->files())
    files.push_back(std::filesystem::path(file).filename().string());
  const nlohmann::json summary{{"series", series.series.name()},
                               {"announced", series.series.announced()},
                               {"seen", series.series.seen()},
                               {"missing", series.series.missing()},
                               {"missing_ranges", series.series.missing_ranges(most_ranges)},
                               {"received", account.received},
                               {"duplicate", account.duplicate},
                               {"unfitting", account.unfitting},
                               {"outcomes", outcomes},
                               {"model", model_.name()},
                               {"files", files}};
  write_file_atomically(settings_.folder / (series.series.name() + ".json"), summary.dump(1) + "\n");
}

}  // namespace superstep::edge
