// The table of conventional methods, in the order `superstep list` shows them: one line each.
#include <vector>

#include "superstep/base/error.h"
#include "superstep/base/text.h"
#include "superstep/baseline/ald.h"
#include "superstep/baseline/baseline.h"
#include "superstep/baseline/bragg.h"
#include "superstep/baseline/conductivity.h"
#include "superstep/baseline/cookiebox.h"
#include "superstep/baseline/mri.h"
#include "superstep/baseline/pca.h"
#include "superstep/baseline/wall.h"

namespace superstep::baseline {

std::span<const Entry> baselines() {
  // clang-format off
  static const std::vector<Entry> table{
      bragg_baseline_entry(),
      conductivity_solver(),
      ald_optimizer(),
      cookiebox_smoother(),
      unet_thresholds(),
      wall_models(),
      pca_compression(),
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
