// The thread of a receiver that takes answers: publishes them, writes them, and ends series.
#include <algorithm>
#include <charconv>

#include "superstep/edge/stream/receiver.h"
#include "superstep/edge/stream/summary.h"

namespace superstep::edge {
namespace {

constexpr std::size_t most_closed_names = 64;                   // of series: a bound of memory (chosen)
constexpr auto between_tries = std::chrono::milliseconds(200);  // to write what found no room

std::uint64_t number_of(const std::string& version) {
  std::uint64_t number = 0;
  std::from_chars(version.data(), version.data() + version.size(), number, 16);
  return number;
}

}  // namespace

void Receiver::take_answers() {
  for (;;) {
    std::optional<Answered> answered;
    SeriesPointer ending;
    {
      std::unique_lock lock(mutex_);
      const auto something = [&] { return !answers_.empty() || !ending_.empty() || finishing_; };
      if (unwritten_.empty())
        answers_there_.wait(lock, something);
      else
        answers_there_.wait_for(lock, between_tries, something);
      if (!answers_.empty()) {
        answered = std::move(answers_.front());
        answers_.pop_front();
        room_.notify_one();
      } else if (!ending_.empty()) {
        ending = ending_.front();
        ending_.pop_front();
      } else if (finishing_) {
        break;
      }
    }
    if (answered)
      hand_over(*answered);
    else if (ending)
      close_if_done(ending);
    write_what_is_left();
  }
  std::erase_if(unwritten_, [&](const SeriesPointer& series) { return write_ended(*series, true); });
  note_room(unwritten_.empty());
  if (journal_) flush_open_series();
  publish_all();
  if (!settings_.shared || settings_.folder.empty()) return;
  insist_on_writing([&] { write_stream_account(settings_.folder, account()); }, failure_, finishing_);
}

// What the next receiver need not ask again.
void Receiver::flush_open_series() {
  for (const auto& [name, series] : open_) {
    if (!series->results) continue;
    write_results(*series->results);
    files_.insert(files_.end(), series->results->files().begin(), series->results->files().end());
  }
}

// What is in a file is not asked again: what was published of it has arrived before that.
void Receiver::write_results(SeriesResults& results) {
  publish_all();
  insist_on_writing([&] { results.flush(); }, failure_, finishing_);
}

void Receiver::publish_all() {
  try {
    if (publish_) publish_->flush();
  } catch (const std::exception& error) {
    stop_publishing(error.what());
  }
}

void Receiver::stop_publishing(const char* why) {
  std::unique_ptr<Publisher> closed;  // ends after the lock: it may linger
  const std::scoped_lock lock(mutex_);
  refused_before_ = publish_->refused();
  closed = std::move(publish_);
  socket_failure_ = why;
}

bool Receiver::is_finishing() const {
  const std::scoped_lock lock(mutex_);
  return finishing_;
}

bool Receiver::try_to_write(const std::function<void()>& write, std::string& failure) {
  std::string why;
  try {
    write();
  } catch (const std::exception& error) {
    why = error.what();
  }
  const std::scoped_lock lock(mutex_);
  failure = why;
  return why.empty();
}

// Until there is room again, say: meanwhile answers wait, then frames, and at last the detector. False: it
// was given up, when all of it is to end.
bool Receiver::insist_on_writing(const std::function<void()>& write, std::string& failure,
                                 const bool& given_up) {
  while (!try_to_write(write, failure)) {
    std::unique_lock lock(mutex_);
    if (room_.wait_for(lock, between_tries, [&] { return given_up; })) return false;
  }
  return true;
}

// --- files that find no room

std::size_t Receiver::unwritten_bytes() {
  std::size_t bytes = 0;
  for (const SeriesPointer& series : unwritten_) bytes += series->results->bytes();
  const std::scoped_lock lock(mutex_);
  for (const auto& [name, series] : open_)
    if (series->results) bytes += series->results->bytes();
  return bytes;
}

bool Receiver::is_full_of_unwritten() {
  constexpr std::size_t most_parts = 4;
  return unwritten_bytes() >= most_parts * settings_.part_bytes;
}

bool Receiver::note_room(bool found) {
  constexpr auto beside_others = std::chrono::seconds(1);  // who are answered: a try takes its time
  if (!found) next_try_ = Clock::now() + beside_others;
  const std::size_t bytes = found && unwritten_.empty() ? 0 : unwritten_bytes();
  const std::scoped_lock lock(mutex_);
  account_.unwritten_bytes = bytes;
  return found;
}

// While memory is left for what is not written, nobody waits for it.
void Receiver::write_if_there_is_room(SeriesResults& results) {
  if (is_full_of_unwritten()) {
    write_results(results);
    note_room(true);
  } else if (Clock::now() >= next_try_) {
    publish_all();
    note_room(try_to_write([&] { results.flush(); }, failure_));
  }
}

// What of it is written already is not written again. False: it found no room.
bool Receiver::write_ended(OpenSeries& series, bool insists) {
  publish_all();
  const auto write = [&] {
    series.results->flush();
    write_series_summary(settings_.folder, series.series, series.account, model_.name(),
                         series.results->files(), settings_.shared);
    if (journal_) journal_->close(series.series.name());
  };
  if (!(insists ? insist_on_writing(write, failure_, finishing_) : try_to_write(write, failure_)))
    return false;
  const std::scoped_lock lock(mutex_);
  files_.insert(files_.end(), series.results->files().begin(), series.results->files().end());
  return true;
}

void Receiver::write_what_is_left() {
  if (unwritten_.empty() || Clock::now() < next_try_) return;
  bool room = true;
  while (room && !unwritten_.empty()) {
    room = write_ended(*unwritten_.front(), false);
    if (room) unwritten_.pop_front();
  }
  note_room(room);
}

void Receiver::hand_over(const Answered& answered) {
  try {
    if (publish_)
      publish_->publish(answered.series->series.name(), answered.frame, model_.name(), *answered.version,
                        answered.outputs, [this] { return is_finishing(); });
  } catch (const std::exception& error) {
    stop_publishing(error.what());
  }
  if (live_)
    live_->add(answered.series->series.name(), answered.frame, answered.position, answered.outputs,
               *answered.version);
  if (answered.series->results) {
    SeriesResults& results = *answered.series->results;
    results.add(answered.frame, number_of(answered.version->id()), answered.version->ports().outputs,
                answered.outputs, answered.rows);
    if (results.wants_flush()) write_if_there_is_room(results);
  }
  const std::scoped_lock lock(mutex_);
  settle(answered.series, answered.frame, Outcome::served);
}

// A series ends when its end was said and nothing of it waits any more.
bool Receiver::is_over(const SeriesPointer& series) {
  const std::scoped_lock lock(mutex_);
  const auto found = open_.find(series->series.name());
  if (!series->ended || series->account.waiting > 0 || found == open_.end() || found->second != series)
    return false;
  open_.erase(found);
  order_.remove(series->series.name());
  closed_.push_back(series->series.name());
  if (closed_.size() > most_closed_names) closed_.pop_front();
  ++account_.series;
  if (!settings_.shared) account_.missing += series->series.missing();
  account_.incomplete += !settings_.shared && series->series.missing() > 0;
  return true;
}

void Receiver::close_if_done(const SeriesPointer& series) {
  if (!is_over(series)) return;
  if (live_) live_->close(series->series.name());
  if (listener_) listener_->on_end(series->series.name());
  if (!series->results || write_ended(*series, is_finishing() || is_full_of_unwritten())) return;
  unwritten_.push_back(series);
  note_room(false);
}

}  // namespace superstep::edge
