// The table of conventional methods, in the order `superstep list` shows them: one line each.
#include <vector>

#include "superstep/base/error.h"
#include "superstep/base/text.h"
#include "superstep/baseline/baseline.h"
#include "superstep/baseline/chemistry/activity.h"
#include "superstep/baseline/chemistry/kinetics_fit.h"
#include "superstep/baseline/chemistry/uno_ridge.h"
#include "superstep/baseline/chemistry/van_krevelen.h"
#include "superstep/baseline/flow/gravity_wave.h"
#include "superstep/baseline/flow/wall.h"
#include "superstep/baseline/imaging/image_classes.h"
#include "superstep/baseline/imaging/image_pca.h"
#include "superstep/baseline/imaging/mri.h"
#include "superstep/baseline/language/masked_ngram.h"
#include "superstep/baseline/language/next_word.h"
#include "superstep/baseline/language/questions.h"
#include "superstep/baseline/materials/ald.h"
#include "superstep/baseline/materials/conductivity.h"
#include "superstep/baseline/materials/coulomb_ridge.h"
#include "superstep/baseline/materials/metal_fit.h"
#include "superstep/baseline/polynomial.h"
#include "superstep/baseline/ptychography/autophase_run.h"
#include "superstep/baseline/ptychography/epie_run.h"
#include "superstep/baseline/series/autoregression.h"
#include "superstep/baseline/series/oscillation_fit.h"
#include "superstep/baseline/xray/bragg.h"
#include "superstep/baseline/xray/cookiebox.h"
#include "superstep/baseline/xray/pca_run.h"
#include "superstep/baseline/xray/sobel_run.h"

namespace superstep::baseline {

std::span<const Entry> baselines() {
  // clang-format off
  static const std::vector<Entry> table{
      bragg_baseline_entry(),
      cifar10_classifier(),
      resnet50_classifier(),
      efficientnet_b0_classifier(),
      efficientnet_b4_classifier(),
      mobilenet_v3_small_classifier(),
      mobilenet_v3_large_classifier(),
      vit_base_classifier(),
      resnext101_classifier(),
      conductivity_solver(),
      ald_optimizer(),
      cookiebox_smoother(),
      uno_baseline(),
      polymer_gcn_baseline(),
      polymer_mpnn_baseline(),
      gin_baseline(),
      yieldgnn_baseline(),
      schnet_baseline(),
      deepmd_baseline(),
      bert_small_baseline(),
      distilbert_baseline(),
      bert_large_baseline(),
      bert_base_squad_baseline(),
      gpt2_baseline(),
      llama_baseline(),
      oscillation_baseline(),
      polynomial_baseline(),
      mcmc_baseline(),
      {"ptychonn-64", "rPIE or ePIE: iterative ptychographic reconstruction", epie_options(), run_epie},
      {"ptychonn-128", "rPIE or ePIE: iterative ptychographic reconstruction", epie_options(), run_epie},
      unet_256_thresholds(),
      unet_64_thresholds(),
      wall_models(),
      gravity_wave_schemes(),
      image_pca(),
      {"autophasenn", "HIO and ER with shrink-wrap: iterative phase retrieval in three dimensions",
       phase_retrieval_options(), run_phase_retrieval},
      {"pca-compress-128", "principal components by randomized subspace iteration, in f32 and scaled f16",
       pca_options(), run_pca},
      {"sobel-800", "Sobel gradients and magnitude in exact integers", sobel_options(), run_sobel},
  };
  // clang-format on
  return table;
}

const Entry& find_baseline(std::string_view name) {
  std::vector<std::string> names;
  for (const Entry& entry : baselines()) {
    if (entry.name == name) return entry;
    names.push_back(entry.name);
  }
  throw Error(ErrorCode::invalid_argument, "no conventional method for a workload of this name",
              std::string(name), unknown_name_hint(name, names));
}

}  // namespace superstep::baseline
