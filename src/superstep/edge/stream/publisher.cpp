#include "superstep/edge/stream/publisher.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "superstep/edge/kafka/kafka.h"

namespace superstep::edge {
namespace {

constexpr auto between_looks = std::chrono::milliseconds(100);
constexpr auto patience = std::chrono::milliseconds(30'000);

}  // namespace

Publisher::Publisher(const std::string& address, CurvePointer curve)
    : outlet_(open_publisher(address, std::move(curve))), one_value_(is_kafka(address)) {}

void Publisher::publish(const std::string& series, std::uint64_t frame, const std::string& model,
                        const Version& version, const std::vector<Tensor>& outputs,
                        const std::function<bool()>& should_end) {
  nlohmann::json listed = nlohmann::json::array();
  std::vector<std::string> parts(1);
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    listed.push_back({{"name", version.ports().outputs[i].name},
                      {"dtype", name_of(outputs[i].type())},
                      {"shape", outputs[i].shape().extents()}});
    if (i == 0 || !one_value_) parts.emplace_back();
    parts.back().append(reinterpret_cast<const char*>(outputs[i].bytes()), outputs[i].byte_count());
  }
  parts[0] =
      nlohmann::json{
          {"protocol", "superstep-answer/1"}, {"series", series}, {"frame", frame}, {"model", model},
          {"version", version.id()},          {"outputs", listed}}
          .dump();
  while (!outlet_->send(parts, between_looks))
    if (should_end())
      throw Error(ErrorCode::io, "answers have found no room when all was to end", outlet_->endpoint());
}

void Publisher::flush() { outlet_->flush(patience); }

}  // namespace superstep::edge
