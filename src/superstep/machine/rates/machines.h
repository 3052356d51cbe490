// Machines of which a data sheet alone is known: machines/rates/machines.csv.
#pragma once

#include <map>
#include <string>

#include "superstep/machine/rates/facts.h"

namespace superstep::machine {

struct SheetFacts {
  MachineFacts facts;
  std::string source;
  bool checked = true;  // false: from memory, not held against the source yet
};

const std::map<std::string, SheetFacts>& sheets();

// Facts of a machine by its id, of its sheet or else of its machine file; or of the file of such a name.
// Throws Error (invalid_argument) with the nearest name.
SheetFacts facts_named(const std::string& name);

}  // namespace superstep::machine
