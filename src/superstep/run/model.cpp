#include "superstep/run/model.h"

#include <fmt/format.h>

#include <algorithm>

#include "superstep/base/text.h"
#include "superstep/onnx/writer.h"
#include "superstep/op/definition.h"
#include "superstep/transform/precision.h"
#include "superstep/transform/training_step.h"

namespace superstep::run {
namespace {

ElementType precision_of(const std::string& name) {
  const std::vector<std::string> known{"f32", "bf16"};
  if (name == "f32") return ElementType::f32;
  if (name == "bf16") return ElementType::bf16;
  throw Error(ErrorCode::invalid_argument, fmt::format("'{}' is not a precision to train in", name),
              "--precision", unknown_name_hint(name, known));
}

graph::Graph build(const TrainSettings& settings, std::int64_t batch, bool reduced) {
  graph::Graph model = workload::build_model(workload::find_workload(settings.workload), batch,
                                             settings.model_options, settings.seed);
  const ElementType precision = precision_of(settings.precision);
  return reduced && precision != ElementType::f32 ? transform::autocast(model, precision) : model;
}

// The oldest operator set that has every operator of the model.
int opset_of(const graph::Graph& graph) {
  int opset = onnx::WriteOptions().opset;
  for (const graph::Node& node : graph.nodes()) opset = std::max(opset, op::get(node.op).since_opset);
  return opset;
}

}  // namespace

Model::Model(TrainSettings settings)
    : workload_(&workload::find_workload(settings.workload)), settings_(std::move(settings)) {
  const workload::TrainingDefaults& defaults = workload_->training;
  precision_of(settings_.precision);
  if (settings_.batch == 0) settings_.batch = defaults.batch;
  if (settings_.epochs == 0) settings_.epochs = defaults.epochs;
  if (settings_.learning_rate == 0) settings_.learning_rate = defaults.learning_rate;
  if (settings_.optimizer.empty()) settings_.optimizer = transform::name_of(defaults.optimizer.kind);
  transform::optimizer_kind_from_name(settings_.optimizer);
  schedule_.kind =
      defaults.schedule == workload::Schedule::cosine ? Schedule::Kind::cosine : Schedule::Kind::constant;
  schedule_.peak = settings_.learning_rate;
  schedule_.warm_up_share = defaults.warm_up_share;
}

target::GraphAtBatch Model::training_step() const {
  return [settings = settings_, defaults = workload_->training](std::int64_t batch) {
    transform::OptimizerSpec optimizer = defaults.optimizer;
    optimizer.kind = transform::optimizer_kind_from_name(settings.optimizer);
    return transform::make_training_step(build(settings, batch, true), defaults.loss, optimizer,
                                         {.seed = settings.seed});
  };
}

target::GraphAtBatch Model::inference() const {
  return [settings = settings_](std::int64_t batch) { return build(settings, batch, true); };
}

void Model::write_onnx(const std::filesystem::path& path, const std::map<std::string, Tensor>& states) const {
  const auto served = [&](std::int64_t batch) {
    graph::Graph graph = build(settings_, batch, false);
    for (graph::ValueId id : graph.states())
      if (const auto found = states.find(graph.value(id).name); found != states.end())
        graph.set_data(id, found->second);
    return graph;
  };
  onnx::write_onnx(path, served, {.opset = opset_of(build(settings_, 1, false))});
}

}  // namespace superstep::run
