// Predicted against measured temperatures, and structural formulas with what each atom adds.
#include "superstep/workload/pictures/pictures.h"

#include <fmt/format.h>

#include "superstep/workload/chemistry/molecule_pictures.h"
#include "superstep/workload/chemistry/polymer/polymer.h"

namespace superstep::workload {

std::string present_polymers(const MoleculeAnswers& answers, page::Page& page) {
  present_regression(page, {.quantity = "Glass transition temperature",
                            .unit = "K",
                            .truth = answers.labels(),
                            .found = answers.found,
                            .samples = answers.numbers});
  present_formulas(
      page, answers,
      {.about = "Gradient-weighted class activation: what each atom adds to the logarithm of the "
                "temperature beside the biases of the last layers.",
       .unit = ""},
      [&](std::size_t i) {
        return fmt::format("{} measured {:.0f} K, predicted {:.0f} K", answers.samples[i]->smiles,
                           answers.samples[i]->label, answers.found[i]);
      });
  return {};
}

}  // namespace superstep::workload
