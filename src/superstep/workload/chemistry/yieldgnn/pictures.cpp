// Predicted against measured yields, what each component does, and the molecules with what each atom adds.
#include "superstep/workload/pictures/pictures.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "superstep/workload/chemistry/yieldgnn/yieldgnn.h"
#include "superstep/workload/pictures/molecule.h"

namespace superstep::workload {
namespace {

constexpr std::size_t drawn_of_each_kind = 1;  // best, median, worst: a reaction is a wide drawing

struct Means {
  double measured = 0, found = 0, count = 0;
};

void add_role(page::Page& page, const YieldPredictions& all, data::Role role) {
  std::map<std::string, Means> means;
  for (std::size_t i = 0; i < all.reactions.size(); ++i) {
    Means& mean = means[all.reactions[i]->smiles[static_cast<std::size_t>(role)]];
    mean.measured += all.reactions[i]->yield, mean.found += all.found[i], mean.count += 1;
  }
  std::vector<std::pair<std::string, Means>> order(means.begin(), means.end());
  const auto measured = [](const auto& each) { return each.second.measured / each.second.count; };
  std::ranges::sort(order, std::greater<>(), measured);
  std::vector<std::vector<std::string>> rows;
  for (const auto& [smiles, mean] : order)
    rows.push_back({smiles.empty() ? "none" : smiles, fmt::format("{:.0f}", mean.count),
                    fmt::format("{:.1f}", mean.measured / mean.count),
                    fmt::format("{:.1f}", mean.found / mean.count)});
  page.table({data::role_name(role), "reactions", "measured, %", "predicted, %"}, rows);
}

std::string figure(const YieldPredictions& all, const Chosen& chosen, double most) {
  const Reaction& reaction = *all.reactions[chosen.at];
  const std::string caption = fmt::format("{}: {} measured {:.1f} %, predicted {:.1f} %", chosen.why,
                                          reaction.joined(), reaction.yield, all.found[chosen.at]);
  return fmt::format("<figure style=\"margin: 0.6rem\">{}<figcaption>{}</figcaption></figure>\n",
                     molecule_svg(reaction.molecules, all.shares[chosen.at], most, caption),
                     page::escape(caption));
}

void add_formulas(page::Page& page, const YieldPredictions& all) {
  std::vector<double> errors;
  for (std::size_t i = 0; i < all.found.size(); ++i)
    errors.push_back(std::abs(all.found[i] - all.reactions[i]->yield));
  const std::vector<Chosen> chosen = best_median_worst(errors, drawn_of_each_kind);
  double most = 0;
  for (const Chosen& each : chosen)
    for (const double share : all.shares[each.at]) most = std::max(most, std::abs(share));
  page.heading("What atoms add", 3);
  page.paragraph(
      fmt::format("What each atom adds to the yield beside descriptors: red raises it, blue lowers it; the "
                  "deepest colour is {:.2g} %.",
                  most));
  std::string figures = "<div>\n";
  for (const Chosen& each : chosen) figures += figure(all, each, most);
  page.raw(figures + "</div>\n");
}

}  // namespace

std::string present_yields(const YieldPredictions& predictions, page::Page& page) {
  std::vector<double> measured;
  for (const Reaction* each : predictions.reactions) measured.push_back(each->yield);
  present_regression(page, {.quantity = "Yield",
                            .unit = "%",
                            .truth = measured,
                            .found = predictions.found,
                            .samples = predictions.samples});
  page.heading("What components do", 3);
  for (const data::Role role : {data::Role::ligand, data::Role::base, data::Role::solvent})
    add_role(page, predictions, role);
  if (!predictions.shares.empty()) add_formulas(page, predictions);
  return {};
}

}  // namespace superstep::workload
