#include "superstep/run/serve/export.h"

#include "superstep/onnx/writer.h"
#include "superstep/run/model.h"
#include "superstep/run/serve/infer.h"

namespace superstep::run {
namespace {

void set_states(graph::Graph& graph, const std::map<std::string, Tensor>& states) {
  for (graph::ValueId id : graph.states())
    if (const auto found = states.find(graph.value(id).name); found != states.end())
      graph.set_data(id, found->second);
}

}  // namespace

void export_onnx(const ExportSettings& settings) {
  TrainSettings chosen = settings.model;
  std::map<std::string, Tensor> states;
  if (!settings.weights.empty()) {
    Weights weights = load_weights_for(chosen, settings.weights, settings.training_step);
    chosen = weights.settings;
    states = std::move(weights.states);
  }
  chosen.precision = "f32";  // masters are f32, and other programs take them as they are
  const Model model(chosen);
  const target::GraphAtBatch build = settings.training_step ? model.training_step() : model.inference();
  const bool open_batch = settings.batch == 0 && !settings.training_step && model.fixed_batch() == 0;
  const std::int64_t batch = settings.batch > 0 ? settings.batch : model.settings().batch;
  const auto with_weights = [&](std::int64_t size) {
    graph::Graph graph = build(size);
    set_states(graph, states);
    return graph;
  };
  onnx::write_onnx(settings.out, with_weights,
                   {.opset = settings.opset, .fixed_batch = open_batch ? 0 : batch});
}

}  // namespace superstep::run
