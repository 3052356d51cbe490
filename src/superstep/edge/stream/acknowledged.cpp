#include "superstep/edge/stream/acknowledged.h"

#include <cstring>
#include <utility>

namespace superstep::edge {
namespace {

// Without a word for so long, the other side is another one than before, or has lost what it was sent.
constexpr auto patience = std::chrono::seconds(1);
constexpr auto longest_wait =
    std::chrono::milliseconds(5);  // of a frame for those that are committed with it
constexpr std::size_t most_together = 256;
constexpr std::size_t number_bytes = sizeof(std::uint64_t);

std::string text_of(std::uint64_t number) { return {reinterpret_cast<const char*>(&number), number_bytes}; }

}  // namespace

AcknowledgedSender::AcknowledgedSender(const std::string& endpoint, std::size_t window, CurvePointer curve)
    : socket_(SocketKind::dealer, endpoint,
              {.high_water = static_cast<int>(window), .curve = std::move(curve)}),
      window_(window) {}

void AcknowledgedSender::take_acknowledgements(std::chrono::milliseconds wait) {
  MessageParts parts;
  for (; socket_.receive(parts, wait); wait = std::chrono::milliseconds(0)) {
    heard_ = Clock::now();
    for (std::size_t at = 0; at + number_bytes <= parts[0].size(); at += number_bytes) {
      std::uint64_t number = 0;
      std::memcpy(&number, parts[0].data() + at, number_bytes);
      unacknowledged_.erase(number);
    }
  }
  if (unacknowledged_.empty()) heard_ = Clock::now();
  if (Clock::now() - heard_ < patience) return;
  handed_over_ = 0;  // all that waits, once more
  heard_ = Clock::now();
}

void AcknowledgedSender::send_what_waits() {
  for (auto next = unacknowledged_.lower_bound(handed_over_); next != unacknowledged_.end(); ++next) {
    if (!socket_.send(next->second, std::chrono::milliseconds(0))) return;
    handed_over_ = next->first + 1;
    if (next->first < ever_sent_)
      ++sent_again_;
    else
      ever_sent_ = handed_over_;
  }
}

bool AcknowledgedSender::send(const std::vector<std::string>& parts, std::chrono::milliseconds wait) {
  const auto until = Clock::now() + wait;
  take_acknowledgements(std::chrono::milliseconds(0));
  send_what_waits();
  while (unacknowledged_.size() >= window_) {
    if (Clock::now() >= until) return false;
    take_acknowledgements(std::chrono::milliseconds(1));
    send_what_waits();
  }
  std::vector<std::string> message{text_of(next_)};
  message.insert(message.end(), parts.begin(), parts.end());
  unacknowledged_.emplace(next_++, std::move(message));
  send_what_waits();
  return true;
}

bool AcknowledgedSender::wait_for_all(std::chrono::milliseconds wait) {
  for (const auto until = Clock::now() + wait; !unacknowledged_.empty() && Clock::now() < until;) {
    send_what_waits();
    take_acknowledgements(std::chrono::milliseconds(1));
  }
  return unacknowledged_.empty();
}

bool Acknowledgements::take(MessageParts& parts) {
  if (parts.size() < 2 || parts[1].size() != number_bytes) return false;
  const std::string address(reinterpret_cast<const char*>(parts[0].data()), parts[0].size());
  if (count_++ == 0) oldest_ = std::chrono::steady_clock::now();
  numbers_[address].append(reinterpret_cast<const char*>(parts[1].data()), number_bytes);
  parts.erase(parts.begin(), parts.begin() + 2);
  return true;
}

bool Acknowledgements::are_due() const {
  return count_ >= most_together ||
         (count_ > 0 && std::chrono::steady_clock::now() - oldest_ >= longest_wait);
}

void Acknowledgements::send(Socket& socket) {
  for (const auto& [address, numbers] : numbers_) {
    const std::string message[] = {address, numbers};
    socket.send(message, std::chrono::milliseconds(100));
  }
  numbers_.clear();
  count_ = 0;
}

}  // namespace superstep::edge
