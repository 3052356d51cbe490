#include "superstep/edge/stream/answers.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "superstep/base/error.h"
#include "superstep/base/json.h"
#include "superstep/base/threads/own_threads.h"

namespace superstep::edge {
namespace {

constexpr auto look_up = std::chrono::milliseconds(20);
constexpr int high_water = 1 << 20;  // answers: what is slow here must not be lost there

}  // namespace

AnswerListener::AnswerListener(const std::string& address, std::string series, std::uint64_t frames,
                               std::chrono::milliseconds patience, CurvePointer curve)
    : socket_(SocketKind::subscribe, address,
              {.high_water = high_water, .tells_of_connection = true, .curve = curve}),
      series_(std::move(series)),
      came_(frames) {
  if (!socket_.wait_for_connection(patience))
    throw Error(ErrorCode::io,
                curve ? "nobody publishes answers, with the key of --curve-server, for ours"
                      : "nobody publishes answers, in the clear",
                address, "superstep serve MODEL --pull tcp://... --publish 'tcp://*:31002' does");
  std::this_thread::sleep_for(look_up);  // the other side hears what is wanted right after the connection
  thread_ = start_thread([this] { listen(); });
}

AnswerListener::~AnswerListener() {
  over_ = true;
  if (thread_.joinable()) thread_.join();
}

void AnswerListener::listen() {
  MessageParts parts;
  while (!over_)
    if (socket_.receive(parts, look_up)) take(parts, Clock::now());
}

void AnswerListener::take(const MessageParts& parts, Clock::time_point now) {
  const auto* text = reinterpret_cast<const char*>(parts[0].data());
  const nlohmann::json head = parse_json(std::string_view(text, parts[0].size()));
  const auto says = [&](const char* name, const std::string& wanted) {
    const auto found = head.find(name);
    return found != head.end() && found->is_string() && found->get<std::string>() == wanted;
  };
  if (!head.is_object() || !says("protocol", "superstep-answer/1") || !says("series", series_)) return;
  const auto frame = head.find("frame");
  if (frame == head.end() || !frame->is_number_unsigned()) return;
  const auto number = frame->get<std::uint64_t>();
  if (number >= came_.size() || came_[number] != Clock::time_point()) return;
  came_[number] = now;
  ++answered_;
}

void AnswerListener::finish(std::uint64_t frames, std::chrono::milliseconds quiet, bool (*should_stop)()) {
  std::uint64_t before = answered_;
  auto last = Clock::now();
  while (answered_ < frames && Clock::now() - last < quiet && !should_stop()) {
    std::this_thread::sleep_for(look_up);
    if (answered_ != before) last = Clock::now();
    before = answered_;
  }
  over_ = true;
  thread_.join();
}

std::optional<AnswerListener::Clock::time_point> AnswerListener::came(std::uint64_t frame) const {
  if (frame >= came_.size() || came_[frame] == Clock::time_point()) return std::nullopt;
  return came_[frame];
}

}  // namespace superstep::edge
