#include "superstep/target/passes.h"

#include <string>

#include "superstep/base/error.h"
#include "superstep/base/text.h"
#include "superstep/target/target.h"
#include "superstep/transform/model_passes.h"
#include "superstep/transform/pipeline.h"

namespace superstep::target {
namespace {

constexpr std::string_view exported = "onnx";

std::vector<transform::Pass> of_export(const PassUse& /*use*/) {
  const auto passes = transform::export_passes();
  return {passes.begin(), passes.end()};
}

}  // namespace

std::vector<transform::Pass> standard_passes(const PassUse& /*use*/) {
  const auto passes = transform::standard_passes();
  return {passes.begin(), passes.end()};
}

PassTable pass_table(std::string_view name) {
  if (name == exported) return {.of_models = nullptr, .of_graphs = of_export};
  if (const Target* target = look_for_target(name)) return target->passes();
  std::vector<std::string> names = target_names();
  names.emplace_back(exported);
  throw Error(ErrorCode::invalid_argument, "there is no table of passes of this target", std::string(name),
              unknown_name_hint(name, names));
}

}  // namespace superstep::target
