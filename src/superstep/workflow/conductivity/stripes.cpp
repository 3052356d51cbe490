// What the stripes that a segmentation leaves do to the conductivity: by which pixels they turn, and how
// many.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "superstep/base/statistics.h"
#include "superstep/base/text.h"
#include "superstep/workflow/conductivity/study.h"
#include "superstep/workload/spread.h"

namespace superstep::workflow {
namespace {

constexpr std::size_t quarters = 4;

// Shares of the pixels of a section that conduct and should not, and the other way round.
struct Turned {
  double conducting = 0, insulating = 0;
};

Turned turned_pixels(std::span<const std::uint8_t> truth, std::span<const std::uint8_t> found) {
  Turned turned;
  for (std::size_t i = 0; i < truth.size(); ++i) {
    turned.conducting += found[i] > truth[i];
    turned.insulating += found[i] < truth[i];
  }
  const auto pixels = static_cast<double>(truth.size());
  return {turned.conducting / pixels, turned.insulating / pixels};
}

// Over some of the sections.
StripeErrors errors_over(const Sections& test, const Way& way, std::span<const std::size_t> which) {
  StripeErrors sum;
  const auto each = 1 / static_cast<double>(std::max<std::size_t>(1, which.size()));
  for (const std::size_t k : which) {
    const auto truth = test.image(static_cast<std::int64_t>(k));
    const Turned turned = turned_pixels(truth, std::span(way.images).subspan(k * truth.size(), truth.size()));
    const double change = way.ratio[k] - test.ratio[k];
    sum.conducting += each * turned.conducting;
    sum.insulating += each * turned.insulating;
    sum.bias += each * change;
    sum.error += each * std::abs(change);
    sum.paths_made += way.ratio[k] > 0 && test.ratio[k] <= 0 ? each : 0;
    sum.paths_lost += way.ratio[k] <= 0 && test.ratio[k] > 0 ? each : 0;
  }
  return sum;
}

std::vector<std::size_t> by_wrong_pixels(const Way& way) {
  std::vector<std::size_t> order(way.wrong.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](std::size_t k) { return way.wrong[k]; });
  return order;
}

}  // namespace

StripeErrors stripe_errors(const Sections& test, const Way& way) {
  StripeErrors errors = errors_over(test, way, by_wrong_pixels(way));
  std::vector<double> change;
  for (std::size_t k = 0; k < way.ratio.size(); ++k) change.push_back(std::abs(way.ratio[k] - test.ratio[k]));
  errors.rank_correlation = workload::rank_correlation(way.wrong, change);
  return errors;
}

std::string table_of_stripes(const Sections& test, const Way& way) {
  TextTable table(
      {"sections", "wrong pixels", "conduct", "insulate", "bias", "mean error", "paths made", "lost"});
  const std::vector<std::size_t> order = by_wrong_pixels(way);
  const auto add = [&](std::string name, std::span<const std::size_t> which) {
    const StripeErrors e = errors_over(test, way, which);
    const auto percent = [](double share, int digits) {
      return fmt::format("{:.{}f} %", 100 * share, digits);
    };
    table.add_row({std::move(name), percent(e.conducting + e.insulating, 2), percent(e.conducting, 2),
                   percent(e.insulating, 2), fmt::format("{:+.4f}", e.bias), fmt::format("{:.4f}", e.error),
                   percent(e.paths_made, 1), percent(e.paths_lost, 1)});
  };
  const char* names[quarters] = {"the cleanest quarter", "the second", "the third", "the most striped"};
  for (std::size_t q = 0; q < quarters; ++q) {
    const std::size_t first = order.size() * q / quarters, last = order.size() * (q + 1) / quarters;
    if (last > first) add(names[q], std::span(order).subspan(first, last - first));
  }
  add("all", order);
  return table.to_string();
}

}  // namespace superstep::workflow
