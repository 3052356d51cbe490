// Messages that are sent again until somebody has said that he keeps them: over a DEALER that finds a ROUTER.
//
// A message has a number of its own (u64, little-endian) as first part; an acknowledgement is one part with
// the numbers of all messages that it is of. ZeroMQ's PUSH has no such thing: what lies in its buffers when
// the receiver is killed is gone.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "superstep/edge/zeromq/socket.h"

namespace superstep::edge {

class AcknowledgedSender {
 public:
  AcknowledgedSender(const std::string& endpoint, std::size_t window, CurvePointer curve = nullptr);

  // False: there was no room in the window within the time.
  bool send(const std::vector<std::string>& parts, std::chrono::milliseconds wait);
  // True: all is acknowledged.
  bool wait_for_all(std::chrono::milliseconds wait);
  std::uint64_t sent_again() const { return sent_again_; }
  std::size_t unacknowledged() const { return unacknowledged_.size(); }

 private:
  using Clock = std::chrono::steady_clock;
  void take_acknowledgements(std::chrono::milliseconds wait);
  void send_what_waits();

  Socket socket_;
  std::size_t window_;
  std::uint64_t next_ = 0, handed_over_ = 0, sent_again_ = 0, ever_sent_ = 0;
  std::map<std::uint64_t, std::vector<std::string>> unacknowledged_;
  Clock::time_point heard_ = Clock::now();
};

// The other side: what is to be acknowledged, all at once when it is on the disk. `parts`: of a router's
// message.
class Acknowledgements {
 public:
  // Takes the address and the number off the front of a message. False: it has none.
  bool take(MessageParts& parts);
  bool empty() const { return numbers_.empty(); }
  // The oldest waits for so long, or there are many.
  bool are_due() const;
  void send(Socket& socket);

 private:
  std::map<std::string, std::string> numbers_;  // by address
  std::size_t count_ = 0;
  std::chrono::steady_clock::time_point oldest_;
};

}  // namespace superstep::edge
