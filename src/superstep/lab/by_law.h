// A machine that is asked about a model by the law of networks, where that is nearer to measurements than the
// model of its style (machine/rates/choices.h).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "superstep/machine/machine.h"
#include "superstep/machine/rates/models.h"
#include "superstep/run/model.h"

namespace superstep::lab {

// What laws know of one model: its sums, counted once.
class ModelByLaw {
 public:
  ModelByLaw(const run::Model& model, bool training);

  // The machine, asked by law; the same one where its own model is nearer, or a stack of its file drives it.
  // `software`: as tables name it; empty: the usual one.
  machine::Machine on(machine::Machine machine, const std::string& software = {}) const;

 private:
  machine::NetworkSums sums_;
  bool training_;
};

// "by the law of networks, whose mean error was 26 % of 273 measured networks where this machine's kind of
// model had 35 %": why a prediction is the law's, or, of `by_law` false, why not; empty: nothing to choose.
std::string why_by_law(const machine::Machine& machine, bool training, bool by_law);

bool of_sheet(const machine::Machine& machine);  // made of a data sheet: it has no file
// Machines without a file that a model can be asked about: of which a data sheet is known.
std::vector<machine::Machine> machines_of_sheets();

}  // namespace superstep::lab
