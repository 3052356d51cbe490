#include "superstep/workload/spread.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace superstep::workload {
namespace {

constexpr std::size_t fewest_samples = 20;  // chosen: two in each tenth
constexpr std::size_t most_parts = 10;

std::vector<std::size_t> order_of(std::span<const double> values) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return values[i]; });
  return order;
}

std::vector<double> ranks_of(std::span<const double> values) {
  const std::vector<std::size_t> order = order_of(values);
  std::vector<double> ranks(values.size());
  for (std::size_t first = 0; first < order.size();) {
    std::size_t last = first + 1;
    while (last < order.size() && values[order[last]] == values[order[first]]) ++last;
    for (std::size_t i = first; i < last; ++i) ranks[order[i]] = static_cast<double>(first + last - 1) / 2;
    first = last;
  }
  return ranks;
}

double sum_of_squares(std::span<const double> values) {
  return std::inner_product(values.begin(), values.end(), values.begin(), 0.0);
}

// |error| in spreads: infinite where a spread of zero has an error.
double times(double error, double spread) {
  if (error == 0) return 0;
  return spread > 0 ? std::abs(error) / spread : std::numeric_limits<double>::infinity();
}

double share_within(std::span<const double> multiples, double most) {
  const auto inside = std::ranges::count_if(multiples, [&](double multiple) { return multiple <= most; });
  return static_cast<double>(inside) / static_cast<double>(multiples.size());
}

// The smallest multiple that split conformal prediction asks for: rank ceil((n + 1) 0.9) of n.
double conformal_multiple(std::vector<double> multiples) {
  std::ranges::sort(multiples);
  const double rank = std::ceil(0.9 * static_cast<double>(multiples.size() + 1));
  return multiples[std::min(multiples.size(), static_cast<std::size_t>(rank)) - 1];
}

std::vector<SpreadCalibration::Part> parts_of(std::span<const double> errors,
                                              std::span<const double> spreads) {
  const std::vector<std::size_t> order = order_of(spreads);
  std::vector<SpreadCalibration::Part> parts(most_parts);
  for (std::size_t part = 0; part < most_parts; ++part) {
    const std::size_t first = part * order.size() / most_parts;
    const std::size_t last = (part + 1) * order.size() / most_parts;
    for (std::size_t i = first; i < last; ++i) {
      parts[part].spread += spreads[order[i]] * spreads[order[i]];
      parts[part].error += errors[order[i]] * errors[order[i]];
    }
    const auto count = static_cast<double>(last - first);
    parts[part] = {std::sqrt(parts[part].spread / count), std::sqrt(parts[part].error / count)};
  }
  return parts;
}

}  // namespace

double rank_correlation(std::span<const double> a, std::span<const double> b) {
  std::vector<double> ranks_a = ranks_of(a), ranks_b = ranks_of(b);
  const double middle = a.empty() ? 0 : static_cast<double>(a.size() - 1) / 2;
  for (double& rank : ranks_a) rank -= middle;
  for (double& rank : ranks_b) rank -= middle;
  const double norm = std::sqrt(sum_of_squares(ranks_a) * sum_of_squares(ranks_b));
  return norm > 0 ? std::inner_product(ranks_a.begin(), ranks_a.end(), ranks_b.begin(), 0.0) / norm : 0;
}

std::optional<SpreadCalibration> calibrate_spread(std::span<const double> errors,
                                                  std::span<const double> spreads) {
  const double stated = sum_of_squares(spreads);
  if (errors.size() < fewest_samples || errors.size() != spreads.size() || !(stated > 0) ||
      !std::isfinite(stated) || !std::isfinite(sum_of_squares(errors)))
    return std::nullopt;
  std::vector<double> sizes, multiples, learnt, held;
  for (std::size_t i = 0; i < errors.size(); ++i) {
    sizes.push_back(std::abs(errors[i]));
    multiples.push_back(times(errors[i], spreads[i]));
    (i % 2 == 0 ? learnt : held).push_back(multiples.back());
  }
  const double for_90 = conformal_multiple(std::move(learnt));
  return SpreadCalibration{.factor = std::sqrt(sum_of_squares(errors) / stated),
                           .inside_one = share_within(multiples, 1),
                           .inside_two = share_within(multiples, 2),
                           .rank_correlation = rank_correlation(sizes, spreads),
                           .times_for_90 = for_90,
                           .inside_90 = share_within(held, for_90),
                           .parts = parts_of(errors, spreads)};
}

}  // namespace superstep::workload
