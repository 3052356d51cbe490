#include "superstep/cli/predict/prediction_config.h"

#include <nlohmann/json.hpp>

#include "superstep/machine/cost_model.h"

namespace superstep::cli {
namespace {

nlohmann::json breakdown_of(const machine::Parts& parts) {
  return {{"compute", parts.compute},
          {"memory", parts.memory},
          {"exchange", parts.exchange},
          {"sync", parts.sync},
          {"host", parts.host},
          {"launch", parts.launch},
          {"collective", parts.collective},
          {"fill", parts.fill},
          {"idle", parts.idle}};
}

nlohmann::json constants_of(const machine::Machine& machine) {
  nlohmann::json list = nlohmann::json::array();
  const auto add = [&](const std::string& of, const std::vector<machine::Constant>& constants) {
    for (const machine::Constant& constant : constants)
      list.push_back({{"of", of},
                      {"name", constant.name},
                      {"value", constant.value},
                      {"unit", constant.unit},
                      {"kind", name_of(constant.kind)},
                      {"source", constant.source},
                      {"low", constant.low},
                      {"high", constant.high},
                      {"open", constant.open},
                      {"default", constant.defaulted}});
  };
  add(machine.id(), machine.constants());
  if (machine.stack()) add(machine.stack()->name, machine.stack()->constants);
  return list;
}

nlohmann::json law_of(const machine::Prediction& prediction) {
  if (!prediction.by_law) return nullptr;
  const machine::TimedByLaw& law = *prediction.by_law;
  return {{"name", law.law},
          {"interval_of", law.spread},
          {"interval_cells", law.cells},
          {"measured_machine", law.measured_machine},
          {"model_seconds", law.model_seconds}};
}

}  // namespace

nlohmann::json config_of(const PredictArguments& arguments, const machine::Machine& machine,
                         const machine::Answer& found) {
  const machine::PredictSettings& settings = found.configuration.settings;
  const machine::Prediction& prediction = found.prediction;
  return {{"machine", machine.id()},
          {"machine_file", machine.file()},
          {"machine_digest", machine.digest()},
          {"stack", machine.stack() ? machine.stack()->name : ""},
          {"units", prediction.units},
          {"mode", arguments.mode},
          {"precision", settings.precision.name},
          {"micro_batch", settings.micro_batch},
          {"accumulate", settings.accumulate},
          {"replicas", settings.replicas},
          {"pipeline", settings.pipeline},
          {"chips", settings.chips},
          {"recompute", settings.recompute},
          {"device_iterations", settings.device_iterations},
          {"loaders", settings.loaders},
          {"facts", machine::words_of(found.configuration.facts)},
          {"law", law_of(prediction)},
          {"plausible", found.plausible},
          {"coverage", 0.8},
          {"bound_by", prediction.bound_by()},
          {"bound_by_with_data", prediction.bound_by_with_data()},
          {"host",
           {{"link", prediction.host.link},
            {"call", prediction.host.call},
            {"loader", prediction.host.loader},
            {"overlaps", prediction.host.overlaps}}},
          {"breakdown", breakdown_of(prediction.step)},
          {"ladder",
           {{"peak", prediction.peak_seconds},
            {"roofline", prediction.roofline_seconds},
            {"full", prediction.step_seconds}}},
          {"calibration", machine::cost_model(machine)->calibration()},
          {"warnings", prediction.warnings},
          {"constants", constants_of(machine)}};
}

}  // namespace superstep::cli
