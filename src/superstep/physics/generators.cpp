// The table of generators, in the order `superstep list` shows them: one line each.
#include "superstep/base/text.h"
#include "superstep/physics/chemistry/activity/activity_generator.h"
#include "superstep/physics/chemistry/polymer_generator.h"
#include "superstep/physics/chemistry/uno_generator.h"
#include "superstep/physics/chemistry/yield_generator.h"
#include "superstep/physics/flow/gravity_wave_generator.h"
#include "superstep/physics/flow/wall_generator.h"
#include "superstep/physics/function_generator.h"
#include "superstep/physics/generator.h"
#include "superstep/physics/imaging/cifar_generator.h"
#include "superstep/physics/imaging/digits_generator.h"
#include "superstep/physics/imaging/mri_generator.h"
#include "superstep/physics/language/language_generator.h"
#include "superstep/physics/language/pair_generator.h"
#include "superstep/physics/language/question_generator.h"
#include "superstep/physics/language/text_generator.h"
#include "superstep/physics/materials/ald_generator.h"
#include "superstep/physics/materials/conductivity_generator.h"
#include "superstep/physics/materials/metal_generator.h"
#include "superstep/physics/materials/water_generator.h"
#include "superstep/physics/oscillation_generator.h"
#include "superstep/physics/returns.h"
#include "superstep/physics/xray/autophase.h"
#include "superstep/physics/xray/bragg_generator.h"
#include "superstep/physics/xray/cookiebox_generator.h"
#include "superstep/physics/xray/frames.h"
#include "superstep/physics/xray/ptycho.h"
#include "superstep/physics/xray/sobel_tracks.h"

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
      vit_base_generator(),
      resnext101_generator(),
      schnet_generator(),
      polymer_gcn_generator(),
      polymer_mpnn_generator(),
      gin_generator(),
      yieldgnn_generator(),
      autophasenn_generator(),
      deepmd_generator(),
      bert_small_generator(),
      distilbert_generator(),
      bert_large_generator(),
      bert_base_squad_generator(),
      gpt2_generator(),
      llama_generator(),
      oscillation_generator(),
      function_generator(),
      mcmc_generator(),
      wall_generator(),
      gravity_wave_generator(),
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
