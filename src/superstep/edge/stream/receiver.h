// Frames of a detector through a model: from where messages come to files and to whoever listens.
#pragma once

#include <condition_variable>
#include <deque>
#include <filesystem>
#include <functional>
#include <list>
#include <map>
#include <mutex>
#include <optional>
#include <thread>

#include "superstep/edge/journal/journal.h"
#include "superstep/edge/live/live.h"
#include "superstep/edge/service/model_service.h"
#include "superstep/edge/stream/ends.h"
#include "superstep/edge/stream/frame_listener.h"
#include "superstep/edge/stream/publisher.h"
#include "superstep/edge/stream/results.h"
#include "superstep/edge/stream/series.h"
#include "superstep/edge/stream/stream_account.h"
#include "superstep/edge/stream/wire.h"

namespace superstep::edge {

// What the model has of scaled pixels: as they are, log(1 + pixel), or each row's from 0 to 1.
enum class Pixels { linear, logarithm, unit };

struct ReceiverSettings {
  std::string pull;              // where frames come from (ends.h)
  std::string publish;           // where answers are published; empty: nowhere
  CurvePointer curve{};          // keys, of both; null: in the clear
  std::string channel;           // of frames that have several (thresholds); empty: those are not read
  bool shared = false;           // the stream's other frames come to other servers
  std::filesystem::path folder;  // of files with the answers; empty: none
  // Frames are kept here until their answers are in files, and acknowledged (acknowledged.h); empty: they are
  // not.
  std::filesystem::path journal;
  std::size_t segment_bytes = std::size_t{64} << 20;  // of the journal's files
  float scale = 1;                                    // of pixels that are no f32
  Pixels meaning = Pixels::linear;
  std::chrono::milliseconds stall{0};  // a series of which nothing came for so long is ended; 0: none is
  std::size_t most_frame_bytes = std::size_t{64} << 20;
  std::size_t part_bytes = std::size_t{64} << 20;  // of answers in a file
};

// Two threads: one receives and asks the model, one takes the answers. While the model's queue is full
// nothing is received, which holds the sender back (unless the queue drops its oldest). Answers whose file
// finds no room wait in memory, up to four files' bytes, while others are given and published; beyond that
// the sender is held back, too. With a journal a series goes on where a receiver before this one ended,
// however it ended.
class Receiver {
 public:
  // Throws Error (unsupported) where the model has several inputs or none of f32, and what Socket throws.
  // `live` and `listener` may be null; they must outlive this.
  Receiver(const ReceiverSettings& settings, ModelService& model, Live* live = nullptr,
           FrameListener* listener = nullptr);
  ~Receiver();
  Receiver(const Receiver&) = delete;
  Receiver& operator=(const Receiver&) = delete;

  std::string pull_endpoint() const { return inlet_->endpoint(); }
  std::string publish_endpoint() const { return publish_endpoint_; }
  StreamAccount account() const;
  std::vector<std::string> files() const;
  std::uint64_t journal_bytes() const { return journal_ ? journal_->bytes() : 0; }
  std::string failure() const;  // why answers cannot be written, or frames not received; empty: they can

  // Receives no more. What the model was asked is still answered.
  void stop();
  // After the model has told all it was asked: takes the last answers, ends every series, writes the files.
  void finish();

 private:
  struct OpenSeries {
    Series series;
    std::optional<SeriesResults> results;
    std::uint64_t waiting = 0;
    bool ended = false;
    StreamAccount account;  // of this series
    Clock::time_point last_came = Clock::now();
  };
  using SeriesPointer = std::shared_ptr<OpenSeries>;
  struct Answered {
    SeriesPointer series;
    std::uint64_t frame = 0;
    std::shared_ptr<Version> version;
    std::vector<Tensor> outputs;
    std::int64_t rows = 0;
    Live::Position position;
  };

  void receive();
  bool receive_one(MessageParts& parts);
  void resume();
  void resume(const Journal::Known& known);
  void replay(const MessageParts& parts);
  void acknowledge();
  void end_stalled();
  void take(const MessageParts& parts);
  void begin(const SeriesBegin& message);
  void wait_for_room();
  void take_frame(const Frame& frame, const MessageParts& parts);
  void tell_listener(const Frame& frame) const;
  void ask(const SeriesPointer& series, const Frame& frame);
  void end(const SeriesEnd& message);
  SeriesPointer series_of(const std::string& name);  // null: it has ended
  SeriesPointer accept(const Frame& frame);          // counts it; null: it is not asked about
  JobPointer job_of(const Frame& frame, const std::shared_ptr<Version>& version) const;
  SeriesPointer opened(const std::string& name, int files_named, std::vector<std::string> files);
  void settle(const SeriesPointer& series, std::uint64_t frame, Outcome outcome);

  void take_answers();
  void hand_over(const Answered& answered);
  void write_results(SeriesResults& results);
  void write_if_there_is_room(SeriesResults& results);
  bool write_ended(OpenSeries& series, bool insists);
  void write_what_is_left();
  std::size_t unwritten_bytes();
  bool is_full_of_unwritten();
  bool note_room(bool found);
  void publish_all();
  void stop_publishing(const char* why);
  bool is_finishing() const;
  bool is_over(const SeriesPointer& series);
  void close_if_done(const SeriesPointer& series);
  void flush_open_series();
  bool try_to_write(const std::function<void()>& write, std::string& failure);
  bool insist_on_writing(const std::function<void()>& write, std::string& failure, const bool& given_up);

  const ReceiverSettings settings_;
  ModelService& model_;
  Live* const live_;
  FrameListener* const listener_;
  std::unique_ptr<Journal> journal_;  // null: there is none
  std::unique_ptr<Inlet> inlet_;
  std::unique_ptr<Publisher> publish_;  // of the thread that takes answers
  std::string publish_endpoint_;
  std::uint64_t refused_before_ = 0;  // connections, by a publisher that is no more

  mutable std::mutex mutex_;
  std::condition_variable answers_there_, room_;
  bool stopping_ = false, finishing_ = false;
  StreamAccount account_;
  std::map<std::string, SeriesPointer> open_;
  std::list<std::string> order_, closed_;  // names: as they were begun, as they ended (the latest)
  std::deque<Answered> answers_;
  std::deque<SeriesPointer> ending_;
  std::vector<std::string> files_;
  std::string failure_, journal_failure_, socket_failure_;  // the first is of files of answers
  std::list<SeriesPointer> unwritten_;  // ended, without their files; of the thread that takes answers
  Clock::time_point next_try_;          // of its writing, where the last found no room
  std::thread receiver_, taker_;
};

}  // namespace superstep::edge
