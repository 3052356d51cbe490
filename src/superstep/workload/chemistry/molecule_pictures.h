// Structural formulas with what each atom adds to a network's answer.
#pragma once

#include <functional>
#include <span>
#include <string>

#include "superstep/page/page.h"
#include "superstep/workload/chemistry/molecule_samples.h"

namespace superstep::workload {

struct Formulas {
  std::string about;             // in the report, before how much the deepest colour is
  std::string unit;              // of the shares, with a space before it
  std::size_t of_each_kind = 3;  // best, median, worst
  bool beside_each_other = true;
};

// Those of the answers `chosen` that are best, median and worst by their `errors`, in the order of `chosen`.
// `caption` of an answer comes behind why it is there. Nothing where the answers have no shares.
void present_formulas(page::Page& page, const MoleculeAnswers& answers, std::span<const std::size_t> chosen,
                      std::span<const double> errors, const Formulas& formulas,
                      const std::function<std::string(std::size_t)>& caption);

// Of all answers by the distance between what was found and the label.
void present_formulas(page::Page& page, const MoleculeAnswers& answers, const Formulas& formulas,
                      const std::function<std::string(std::size_t)>& caption);

}  // namespace superstep::workload
