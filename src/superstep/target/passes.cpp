#include "superstep/target/passes.h"

#include <array>
#include <string>

#include "superstep/base/error.h"
#include "superstep/base/text.h"
#include "superstep/target/cpu/passes.h"
#include "superstep/target/ipu/lower/prepare.h"
#include "superstep/transform/model_passes.h"
#include "superstep/transform/pipeline.h"

namespace superstep::target {
namespace {

using Passes = std::vector<transform::Pass>;

Passes copied(std::span<const transform::Pass> passes) { return {passes.begin(), passes.end()}; }

Passes of_cpu(const PassUse& use) {
  return cpu::graph_passes(
      {.parts_in_step = use.parts_in_step, .recomputation = {.share = use.recompute_share}});
}
Passes of_tiles(const PassUse& /*use*/) { return ipu::graph_passes(); }
Passes standard(const PassUse& /*use*/) { return copied(transform::standard_passes()); }
Passes of_export(const PassUse& /*use*/) { return copied(transform::export_passes()); }
Passes none(const PassUse& /*use*/) { return {}; }

constexpr std::array<PassTable, 7> tables{{
    {"cpu", cpu::model_passes, of_cpu},
    {"reference", nullptr, standard},
    {"null", nullptr, none},
    {"gc200", nullptr, of_tiles},
    {"bow", nullptr, of_tiles},
    {"gc2", nullptr, of_tiles},
    {"onnx", nullptr, of_export},
}};

}  // namespace

const PassTable& pass_table(std::string_view target) {
  std::vector<std::string> names;
  for (const PassTable& table : tables) {
    if (table.target == target) return table;
    names.emplace_back(table.target);
  }
  throw Error(ErrorCode::invalid_argument, "there is no table of passes of this target", std::string(target),
              unknown_name_hint(target, names));
}

}  // namespace superstep::target
