// Predicted against measured temperatures, and structural formulas with what each atom adds.
#include "superstep/workload/pictures/pictures.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "superstep/physics/chemistry/smiles.h"
#include "superstep/workload/chemistry/polymer/polymer.h"
#include "superstep/workload/pictures/molecule.h"

namespace superstep::workload {
namespace {

constexpr std::size_t formulas_of_each_kind = 3;  // best, median, worst

// One formula with its caption, as wide as it is.
std::string figure(const PolymerPredictions& all, const Chosen& chosen, double most) {
  const std::size_t i = chosen.at;
  const std::string caption = fmt::format("{}: {} measured {:.0f} K, predicted {:.0f} K", chosen.why,
                                          all.smiles[i], all.measured[i], all.found[i]);
  return fmt::format(
      "<figure style=\"display: inline-block; margin: 0.6rem\">{}<figcaption>{}</figcaption></figure>\n",
      molecule_svg(data::parse_smiles(all.smiles[i]), all.shares[i], most, caption), page::escape(caption));
}

void add_formulas(page::Page& page, const PolymerPredictions& all) {
  std::vector<double> errors;
  for (std::size_t i = 0; i < all.found.size(); ++i)
    errors.push_back(std::abs(all.found[i] - all.measured[i]));
  const std::vector<Chosen> chosen = best_median_worst(errors, formulas_of_each_kind);
  double most = 0;
  for (const Chosen& each : chosen)
    for (const double share : all.shares[each.at]) most = std::max(most, std::abs(share));
  page.heading("What atoms add", 3);
  page.paragraph(fmt::format(
      "Gradient-weighted class activation: what each atom adds to the logarithm of the temperature "
      "beside the biases of the last layers. Red raises it, blue lowers it; the deepest colour is {:.2g}.",
      most));
  std::string figures = "<div>\n";
  for (const Chosen& each : chosen) figures += figure(all, each, most);
  page.raw(figures + "</div>\n");
}

}  // namespace

std::string present_polymers(const PolymerPredictions& predictions, page::Page& page) {
  present_regression(page, {.quantity = "Glass transition temperature",
                            .unit = "K",
                            .truth = predictions.measured,
                            .found = predictions.found,
                            .samples = predictions.samples});
  add_formulas(page, predictions);
  return {};
}

}  // namespace superstep::workload
