// What ZeroMQ itself takes of a frame's way to a server and of its answer's way back: PUSH to PULL and PUB to
// SUB over loopback, nothing computed between, by three threads in the place of two programs.
//   bench_hops [FRAMES] [BYTES] [RATE]
#include <fmt/format.h>
#include <sys/prctl.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "superstep/base/statistics.h"
#include "superstep/edge/zeromq/socket.h"

namespace superstep::bench {
namespace {

using Clock = std::chrono::steady_clock;
using edge::Socket;
using edge::SocketKind;

constexpr auto look_up = std::chrono::milliseconds(100);

struct Times {
  std::vector<double> late, whole;  // s, from when a frame was due: when it was sent, when its answer came
};

// Gives back the number that each frame begins with.
void answer(Socket& pull, Socket& publish, const std::atomic<bool>& over) {
  edge::MessageParts parts;
  std::vector<std::string> number(1);
  while (!over) {
    if (!pull.receive(parts, look_up)) continue;
    number[0].assign(reinterpret_cast<const char*>(parts[0].data()), sizeof(std::uint64_t));
    publish.send(number, look_up);
  }
}

void listen(Socket& socket, std::vector<Clock::time_point>& came, const std::atomic<bool>& over) {
  edge::MessageParts parts;
  while (!over) {
    if (!socket.receive(parts, look_up)) continue;
    const auto now = Clock::now();
    std::uint64_t number = 0;
    std::memcpy(&number, parts[0].data(), sizeof number);
    if (number < came.size()) came[number] = now;
  }
}

Times measure(std::uint64_t frames, std::size_t bytes, double rate) {
  Socket push(SocketKind::push, "tcp://127.0.0.1:*", {}),
      publish(SocketKind::publish, "tcp://127.0.0.1:*", {});
  Socket pull(SocketKind::pull, push.endpoint(), {.connects = true});
  Socket hear(SocketKind::subscribe, publish.endpoint(), {.connects = true});
  std::atomic<bool> over = false;
  std::vector<Clock::time_point> due(frames), came(frames);
  std::jthread server([&] { answer(pull, publish, over); }), listener([&] { listen(hear, came, over); });
  std::this_thread::sleep_for(2 * look_up);  // connections
  ::prctl(PR_SET_TIMERSLACK, 1UL);           // as the detector does
  Times times;
  std::vector<std::string> frame{std::string(std::max(bytes, sizeof(std::uint64_t)), 'x')};
  const auto begin = Clock::now();
  for (std::uint64_t i = 0; i < frames; ++i) {
    due[i] = begin + std::chrono::duration_cast<Clock::duration>(
                         std::chrono::duration<double>(static_cast<double>(i) / rate));
    std::memcpy(frame[0].data(), &i, sizeof i);
    std::this_thread::sleep_until(due[i]);
    times.late.push_back(std::chrono::duration<double>(Clock::now() - due[i]).count());
    push.send(frame, look_up);
  }
  std::this_thread::sleep_for(2 * look_up);
  over = true;
  server.join(), listener.join();
  for (std::uint64_t i = 0; i < frames; ++i)
    if (came[i] != Clock::time_point())
      times.whole.push_back(std::chrono::duration<double>(came[i] - due[i]).count());
  return times;
}

void print(const char* what, std::vector<double> seconds) {
  std::ranges::sort(seconds);
  fmt::print("{:<24} p50 {:>6.0f} us, p99 {:>6.0f} us\n", what, 1e6 * nearest_rank(seconds, 0.5),
             1e6 * nearest_rank(seconds, 0.99));
}

}  // namespace
}  // namespace superstep::bench

int main(int count, char** words) {
  const auto number = [&](int i, double otherwise) { return count > i ? std::atof(words[i]) : otherwise; };
  const double frames = std::clamp(number(1, 5000), 100.0, 1e6), rate = std::clamp(number(3, 1000), 1.0, 1e6);
  const auto times =
      superstep::bench::measure(static_cast<std::uint64_t>(frames),
                                static_cast<std::size_t>(std::clamp(number(2, 484), 8.0, 1e8)), rate);
  superstep::bench::print("sent later than due", times.late);
  superstep::bench::print("answered after due", times.whole);
}
