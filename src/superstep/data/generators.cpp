// The table of generators, in the order `superstep list` shows them: one line each.
#include "superstep/base/text.h"
#include "superstep/data/ald_generator.h"
#include "superstep/data/autophase.h"
#include "superstep/data/bragg_generator.h"
#include "superstep/data/cifar_generator.h"
#include "superstep/data/conductivity_generator.h"
#include "superstep/data/cookiebox_generator.h"
#include "superstep/data/digits_generator.h"
#include "superstep/data/frames.h"
#include "superstep/data/function_generator.h"
#include "superstep/data/generator.h"
#include "superstep/data/language_generator.h"
#include "superstep/data/metal_generator.h"
#include "superstep/data/mri_generator.h"
#include "superstep/data/oscillation_generator.h"
#include "superstep/data/polymer_generator.h"
#include "superstep/data/ptycho.h"
#include "superstep/data/returns.h"
#include "superstep/data/sobel_tracks.h"
#include "superstep/data/uno_generator.h"
#include "superstep/data/wall_generator.h"
#include "superstep/data/water_generator.h"
#include "superstep/data/yield_generator.h"

namespace superstep::data {

std::span<const GeneratorEntry> generators() {
  // clang-format off
  static const std::vector<GeneratorEntry> table{
      bragg_generator_entry(),
      cifar10_generator(),
      ptychonn_64_generator(),
      ptychonn_128_generator(),
      cookiebox_generator(),
      uno_generator(),
      unet_256_generator(),
      unet_64_generator(),
      pca_compress_generator(),
      sobel_generator(),
      digits_generator(),
      conductivity_generator(),
      ald_generator(),
      resnet50_generator(),
      efficientnet_b0_generator(),
      efficientnet_b4_generator(),
      mobilenet_v3_small_generator(),
      mobilenet_v3_large_generator(),
      schnet_generator(),
      polymer_gcn_generator(),
      yieldgnn_generator(),
      autophasenn_generator(),
      deepmd_generator(),
      bert_small_generator(),
      distilbert_generator(),
      oscillation_generator(),
      function_generator(),
      mcmc_generator(),
      wall_generator(),
  };
  // clang-format on
  return table;
}

const GeneratorEntry& find_generator(std::string_view name) {
  if (name == "bert-large") name = "distilbert";  // its former name: the same text
  std::vector<std::string> names;
  for (const GeneratorEntry& entry : generators()) {
    if (entry.name == name) return entry;
    names.push_back(entry.name);
  }
  throw Error(ErrorCode::invalid_argument, "no generator for a workload of this name", std::string(name),
              unknown_name_hint(name, names));
}

}  // namespace superstep::data
