// The table of generators, in the order `superstep list` shows them: one line each.
#include "superstep/base/text.h"
#include "superstep/data/ald_generator.h"
#include "superstep/data/bragg_generator.h"
#include "superstep/data/cifar_generator.h"
#include "superstep/data/conductivity_generator.h"
#include "superstep/data/cookiebox_generator.h"
#include "superstep/data/digits_generator.h"
#include "superstep/data/generator.h"
#include "superstep/data/mri_generator.h"
#include "superstep/data/wall_generator.h"

namespace superstep::data {

std::span<const GeneratorEntry> generators() {
  // clang-format off
  static const std::vector<GeneratorEntry> table{
      bragg_generator_entry(),
      conductivity_generator(),
      ald_generator(),
      digits_generator(),
      cifar10_generator(),
      resnet50_generator(),
      cookiebox_generator(),
      unet_generator(),
      wall_generator(),
  };
  // clang-format on
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
