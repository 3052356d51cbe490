// The table of potentials: classical ones by their names, and trained models by the folders of their runs.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "superstep/base/options.h"
#include "superstep/md/forces/force_field.h"

namespace superstep::md {

struct Potential {
  std::string name, summary;
  std::string elements;  // what it knows, for people
  std::vector<OptionSpec> options;
  double timestep = 1;            // fs, where none is given
  double compressibility = 5e-5;  // 1/bar: what the barostat takes where none is given
  // Atoms of `start` may be moved by whole edges of the box. Throws Error (invalid_argument) naming the atom
  // or option that does not suit.
  std::unique_ptr<ForceField> (*make)(const Options& options, data::Configuration& start);
};

std::span<const Potential> potentials();
const Potential* find_potential(std::string_view name);  // null where there is none

}  // namespace superstep::md
