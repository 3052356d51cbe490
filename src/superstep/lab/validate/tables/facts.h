// Facts of machines and models that lie beside tables of measurements: machines-facts.csv and models.csv.
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "superstep/machine/rates/facts.h"
#include "superstep/machine/rates/models.h"

namespace superstep::lab {

using machine::ModelFacts;

struct TableFacts {
  std::map<std::string, machine::MachineFacts> machines;
  std::map<std::string, ModelFacts> models;
  // Of the zoo's, by name and length of sequences; made when they are asked for.
  mutable std::map<std::pair<std::string, std::int64_t>, ModelFacts> zoo;
};

// Of a folder; files that are not there say nothing. Built-in machines that no line is of are added. Throws
// Error (bad_file).
TableFacts read_table_facts(const std::filesystem::path& folder);

}  // namespace superstep::lab
