#include "superstep/run/ranks/gradient_exchange.h"

#include <chrono>

namespace superstep::run {
namespace {

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

}  // namespace

target::Parts GradientExchange::parts() {
  if (world_.size() == 1) return {};
  return {.count = world_.size(), .index = world_.rank(), .average = [this](std::span<float> means) { average(means); }};
}

void GradientExchange::average(std::span<float> means) {
  const double begun = now();
  world_.barrier();  // so that waiting for a slower rank is not taken for communication
  const double together = now();
  world_.sum(means, SumOrder::by_rank);
  const float share = 1.0f / static_cast<float>(world_.size());
  for (float& mean : means) mean *= share;
  waiting_.push_back(together - begun);
  communication_.push_back(now() - together);
  bytes_ = static_cast<double>(means.size_bytes());
}

}  // namespace superstep::run
