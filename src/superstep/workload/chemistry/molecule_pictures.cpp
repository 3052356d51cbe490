#include "superstep/workload/chemistry/molecule_pictures.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "superstep/workload/pictures/molecule.h"
#include "superstep/workload/pictures/pictures.h"

namespace superstep::workload {

void present_formulas(page::Page& page, const MoleculeAnswers& answers, std::span<const std::size_t> chosen,
                      std::span<const double> errors, const Formulas& formulas,
                      const std::function<std::string(std::size_t)>& caption) {
  if (chosen.empty() || answers.shares.empty()) return;
  const std::vector<Chosen> drawn = best_median_worst(errors, formulas.of_each_kind);
  double most = 0;
  for (const Chosen& each : drawn)
    for (const double share : answers.shares[chosen[each.at]]) most = std::max(most, std::abs(share));
  page.heading("What atoms add", 3);
  page.paragraph(fmt::format("{} Red raises it, blue lowers it; the deepest color is {:.2g}{}.",
                             formulas.about, most, formulas.unit));
  std::string figures = "<div>\n";
  for (const Chosen& each : drawn) {
    const std::size_t i = chosen[each.at];
    const std::string text = fmt::format("{}: {}", each.why, caption(i));
    figures += fmt::format("<figure style=\"{}margin: 0.6rem\">{}<figcaption>{}</figcaption></figure>\n",
                           formulas.beside_each_other ? "display: inline-block; " : "",
                           molecule_svg(answers.samples[i]->molecule, answers.shares[i], most, text),
                           page::escape(text));
  }
  page.raw(figures + "</div>\n");
}

void present_formulas(page::Page& page, const MoleculeAnswers& answers, const Formulas& formulas,
                      const std::function<std::string(std::size_t)>& caption) {
  std::vector<std::size_t> all(answers.found.size());
  std::iota(all.begin(), all.end(), std::size_t{0});
  std::vector<double> errors;
  for (const std::size_t i : all) errors.push_back(std::abs(answers.found[i] - answers.samples[i]->label));
  present_formulas(page, answers, all, errors, formulas, caption);
}

}  // namespace superstep::workload
