// How well actives are found, and structural formulas with what each atom adds.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "superstep/workload/chemistry/gin/gin.h"
#include "superstep/workload/chemistry/molecule_pictures.h"

namespace superstep::workload {
namespace {

constexpr std::size_t bins = 10;

bool is_active(const MoleculeSample& sample) { return sample.label == 1; }

std::vector<std::size_t> by_falling_odds(const MoleculeAnswers& all) {
  std::vector<std::size_t> order(all.found.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, std::greater<>(), [&](std::size_t i) { return all.found[i]; });
  return order;
}

// What share of all actives is found among the molecules that are tried first.
void add_enrichment(page::Page& page, const MoleculeAnswers& all) {
  double actives = 0, found = 0;
  for (const MoleculeSample* each : all.samples) actives += is_active(*each);
  if (actives == 0) return;
  page::Series curve{.label = "the network", .x = {0}, .y = {0}};
  const auto count = static_cast<double>(all.found.size());
  const std::vector<std::size_t> order = by_falling_odds(all);
  for (std::size_t i = 0; i < order.size(); ++i) {
    found += is_active(*all.samples[order[i]]);
    curve.x.push_back(static_cast<double>(i + 1) / count);
    curve.y.push_back(found / actives);
  }
  page.plot({.title = "Actives found",
             .x_label = "share of the molecules tried, likeliest first",
             .y_label = "share of the actives found",
             .series = {std::move(curve), {.label = "by chance", .x = {0, 1}, .y = {0, 1}}}});
}

// Of molecules with about one probability, how many are active.
void add_reliability(page::Page& page, const MoleculeAnswers& all) {
  std::vector<double> count(bins), said(bins), active(bins);
  for (std::size_t i = 0; i < all.found.size(); ++i) {
    const double probability = probability_of(all.found[i]);
    const auto bin = std::min(bins - 1, static_cast<std::size_t>(probability * bins));
    count[bin] += 1, said[bin] += probability, active[bin] += is_active(*all.samples[i]);
  }
  std::vector<std::vector<std::string>> rows;
  for (std::size_t bin = 0; bin < bins; ++bin)
    if (count[bin] > 0)
      rows.push_back({fmt::format("{:.1f} to {:.1f}", static_cast<double>(bin) / bins,
                                  static_cast<double>(bin + 1) / bins),
                      fmt::format("{:.0f}", count[bin]), fmt::format("{:.3f}", said[bin] / count[bin]),
                      fmt::format("{:.3f}", active[bin] / count[bin])});
  page.heading("Probabilities and what came of them", 3);
  page.table({"probability", "molecules", "said in the mean", "active"}, rows);
}

// The best, median and worst of the actives: others have little to show.
void add_formulas(page::Page& page, const MoleculeAnswers& all) {
  std::vector<std::size_t> active;
  std::vector<double> errors;
  for (std::size_t i = 0; i < all.found.size(); ++i)
    if (is_active(*all.samples[i])) active.push_back(i), errors.push_back(1 - probability_of(all.found[i]));
  present_formulas(
      page, all, active, errors,
      {.about = "Class activation: what each atom adds to the logarithm of the odds.", .unit = ""},
      [&](std::size_t i) {
        return fmt::format("{} is active, probability {:.2f}", all.samples[i]->smiles,
                           probability_of(all.found[i]));
      });
}

}  // namespace

std::string present_activity(const MoleculeAnswers& answers, page::Page& page) {
  add_enrichment(page, answers);
  add_reliability(page, answers);
  add_formulas(page, answers);
  return {};
}

}  // namespace superstep::workload
