// The table of generators, in the order `superstep list` shows them: one line each.
#include "superstep/base/text.h"
#include "superstep/data/generator.h"
#include "superstep/data/language_generator.h"
#include "superstep/data/metal_generator.h"
#include "superstep/data/polymer_generator.h"
#include "superstep/data/returns.h"
#include "superstep/data/uno_generator.h"
#include "superstep/data/water_generator.h"
#include "superstep/data/yield_generator.h"

namespace superstep::data {

std::span<const GeneratorEntry> generators() {
  static const std::vector<GeneratorEntry> table{
      uno_generator(),
      polymer_gcn_generator(),
      yieldgnn_generator(),
      schnet_generator(),
      deepmd_generator(),
      bert_large_generator(),
      distilbert_generator(),
      mcmc_generator(),
  };
  return table;
}

const GeneratorEntry& find_generator(std::string_view name) {
  std::vector<std::string> names;
  for (const GeneratorEntry& entry : generators()) {
    if (entry.name == name) return entry;
    names.push_back(entry.name);
  }
  throw Error(ErrorCode::invalid_argument, "no generator for a workload of this name", std::string(name),
              unknown_name_hint(name, names));
}

}  // namespace superstep::data
