#include "superstep/language/decode/sampling.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "superstep/base/error.h"

namespace superstep::language {
namespace {

void require(bool right, const char* option, const char* range) {
  if (!right) throw Error(ErrorCode::invalid_argument, fmt::format("must be {}", range), option);
}

}  // namespace

Sampler::Sampler(const SamplingSettings& settings) : settings_(settings), random_(settings.seed) {
  require(settings.temperature >= 0 && std::isfinite(settings.temperature), "--temperature", "0 or more");
  require(settings.top_k >= 0, "--top-k", "0 or more");
  require(settings.top_p > 0 && settings.top_p <= 1, "--top-p", "above 0 and at most 1");
}

std::int32_t Sampler::next(std::span<const float> scores) {
  if (std::ranges::any_of(scores, [](float score) { return std::isnan(score); }))
    throw Error(ErrorCode::diverged, "a score of the model is no number", {}, "the weights are damaged");
  if (settings_.temperature == 0)
    return static_cast<std::int32_t>(std::ranges::max_element(scores) - scores.begin());
  // The likeliest first; of equal ones the one of the lower number.
  std::vector<std::int32_t> order(scores.size());
  std::iota(order.begin(), order.end(), 0);
  const auto likelier = [&](std::int32_t a, std::int32_t b) {
    const float x = scores[static_cast<std::size_t>(a)], y = scores[static_cast<std::size_t>(b)];
    return x != y ? x > y : a < b;
  };
  std::size_t kept = order.size();
  if (settings_.top_k > 0) kept = std::min(kept, static_cast<std::size_t>(settings_.top_k));
  std::ranges::partial_sort(order, order.begin() + static_cast<std::ptrdiff_t>(kept), likelier);
  order.resize(kept);
  const double top = scores[static_cast<std::size_t>(order[0])];
  std::vector<double> shares;
  for (const std::int32_t token : order)
    shares.push_back(std::exp((scores[static_cast<std::size_t>(token)] - top) / settings_.temperature));
  double sum = std::accumulate(shares.begin(), shares.end(), 0.0), so_far = 0;
  std::size_t count = 0;
  while (count < shares.size() && (count == 0 || so_far < settings_.top_p * sum)) so_far += shares[count++];
  double drawn = random_.uniform() * so_far;
  for (std::size_t i = 0; i < count; ++i)
    if ((drawn -= shares[i]) < 0) return order[i];
  return order[count - 1];
}

}  // namespace superstep::language
