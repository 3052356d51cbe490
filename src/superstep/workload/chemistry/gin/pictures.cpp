// How well actives are found, and structural formulas with what each atom adds.
#include "superstep/workload/pictures/pictures.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "superstep/workload/chemistry/gin/gin.h"
#include "superstep/workload/pictures/molecule.h"

namespace superstep::workload {
namespace {

constexpr std::size_t formulas_of_each_kind = 3;  // best, median, worst
constexpr std::size_t bins = 10;

double error_of(const ActivityPredictions& all, std::size_t i) {
  return std::abs(probability_of(all.odds[i]) - (all.molecules[i]->assayed.active ? 1 : 0));
}

std::vector<std::size_t> by_falling_odds(const ActivityPredictions& all) {
  std::vector<std::size_t> order(all.odds.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, std::greater<>(), [&](std::size_t i) { return all.odds[i]; });
  return order;
}

// What share of all actives is found among the molecules that are tried first.
void add_enrichment(page::Page& page, const ActivityPredictions& all) {
  double actives = 0, found = 0;
  for (const DrawnMolecule* each : all.molecules) actives += each->assayed.active;
  if (actives == 0) return;
  page::Series curve{.label = "the network", .x = {0}, .y = {0}};
  const auto count = static_cast<double>(all.odds.size());
  const std::vector<std::size_t> order = by_falling_odds(all);
  for (std::size_t i = 0; i < order.size(); ++i) {
    found += all.molecules[order[i]]->assayed.active;
    curve.x.push_back(static_cast<double>(i + 1) / count);
    curve.y.push_back(found / actives);
  }
  page.plot({.title = "Actives found",
             .x_label = "share of the molecules tried, likeliest first",
             .y_label = "share of the actives found",
             .series = {std::move(curve), {.label = "by chance", .x = {0, 1}, .y = {0, 1}}}});
}

// Of molecules with about one probability, how many are active.
void add_reliability(page::Page& page, const ActivityPredictions& all) {
  std::vector<double> count(bins), said(bins), active(bins);
  for (std::size_t i = 0; i < all.odds.size(); ++i) {
    const double probability = probability_of(all.odds[i]);
    const auto bin = std::min(bins - 1, static_cast<std::size_t>(probability * bins));
    count[bin] += 1, said[bin] += probability, active[bin] += all.molecules[i]->assayed.active;
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

std::string figure(const ActivityPredictions& all, std::size_t i, const char* why, double most) {
  const DrawnMolecule& molecule = *all.molecules[i];
  const std::string caption =
      fmt::format("{}: {} is {}, probability {:.2f}", why, molecule.smiles,
                  molecule.assayed.active ? "active" : "not active", probability_of(all.odds[i]));
  return fmt::format(
      "<figure style=\"display: inline-block; margin: 0.6rem\">{}<figcaption>{}</figcaption></figure>\n",
      molecule_svg(molecule.assayed.molecule, all.shares[i], most, caption), page::escape(caption));
}

// The best, median and worst of the actives: others have little to show.
void add_formulas(page::Page& page, const ActivityPredictions& all) {
  std::vector<std::size_t> active;
  std::vector<double> errors;
  for (std::size_t i = 0; i < all.odds.size(); ++i)
    if (all.molecules[i]->assayed.active) active.push_back(i), errors.push_back(error_of(all, i));
  if (active.empty()) return;
  const std::vector<Chosen> chosen = best_median_worst(errors, formulas_of_each_kind);
  double most = 0;
  for (const Chosen& each : chosen)
    for (const double share : all.shares[active[each.at]]) most = std::max(most, std::abs(share));
  page.heading("What atoms add", 3);
  page.paragraph(
      fmt::format("Class activation: what each atom adds to the logarithm of the odds. Red raises them, blue "
                  "lowers them; the "
                  "deepest colour is {:.2g}.",
                  most));
  std::string figures = "<div>\n";
  for (const Chosen& each : chosen) figures += figure(all, active[each.at], each.why, most);
  page.raw(figures + "</div>\n");
}

}  // namespace

std::string present_activity(const ActivityPredictions& predictions, page::Page& page) {
  add_enrichment(page, predictions);
  add_reliability(page, predictions);
  add_formulas(page, predictions);
  return {};
}

}  // namespace superstep::workload
