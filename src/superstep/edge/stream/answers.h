// Answers to frames as a server publishes them (publisher.h), and when each of them came.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "superstep/edge/zeromq/socket.h"

namespace superstep::edge {

// A thread of its own, which takes the time as soon as a message is there.
class AnswerListener {
 public:
  using Clock = std::chrono::steady_clock;
  // Listens to the answers of a series of so many frames; is heard of by the server when this returns. Throws
  // Error: io (nobody publishes there within the time), what Socket throws.
  AnswerListener(const std::string& address, std::string series, std::uint64_t frames,
                 std::chrono::milliseconds patience, CurvePointer curve = nullptr);
  ~AnswerListener();
  AnswerListener(const AnswerListener&) = delete;
  AnswerListener& operator=(const AnswerListener&) = delete;

  // Until so many frames are answered, or nothing has come for `quiet`, or `should_stop`; listens no more.
  void finish(std::uint64_t frames, std::chrono::milliseconds quiet, bool (*should_stop)());
  // Once finished: when the first answer to the frame came; none: it did not.
  std::optional<Clock::time_point> came(std::uint64_t frame) const;

 private:
  void listen();
  void take(const MessageParts& parts, Clock::time_point now);

  Socket socket_;
  const std::string series_;
  std::vector<Clock::time_point> came_;  // by frame; the clock's zero: not yet
  std::atomic<std::uint64_t> answered_ = 0;
  std::atomic<bool> over_ = false;
  std::thread thread_;
};

}  // namespace superstep::edge
