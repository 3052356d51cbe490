#include "superstep/run/model.h"

#include <fmt/format.h>

#include <algorithm>

#include "superstep/api/ports.h"
#include "superstep/api/session.h"
#include "superstep/api/trainer.h"
#include "superstep/onnx/writer.h"
#include "superstep/run/serve/calibrate.h"
#include "superstep/run/serve/infer.h"

namespace superstep {
namespace {

run::TrainSettings train_settings(const std::string& what, const ModelSettings& settings) {
  run::TrainSettings result{
      .workload = what, .model_options = settings.options, .shapes = settings.shapes, .loss = settings.loss};
  result.bounds = settings.bounds;
  result.train = settings.train;
  result.freeze = settings.freeze;
  result.seed = settings.seed;
  return result;
}

Port port_of(const graph::Graph& graph, graph::ValueId id) {
  const graph::Value& value = graph.value(id);
  return {value.name, value.type.element, value.type.shape};
}

std::vector<Port> inputs_of(const graph::Graph& graph) {
  std::vector<Port> ports;
  for (const graph::ValueId id : graph.inputs()) ports.push_back(port_of(graph, id));
  return ports;
}

void set_states(graph::Graph& graph, const std::map<std::string, Tensor>& states) {
  for (const graph::ValueId id : graph.states())
    if (const auto found = states.find(graph.value(id).name); found != states.end())
      graph.set_data(id, found->second);
}

target::GraphAtBatch with_states(target::GraphAtBatch build, std::map<std::string, Tensor> states) {
  return [build = std::move(build), states = std::move(states)](std::int64_t batch) {
    graph::Graph graph = build(batch);
    set_states(graph, states);
    return graph;
  };
}

// Rows [first, first + count) of a sample array; the end of the array starts again at its front.
Tensor rows_of(const Tensor& samples, std::int64_t first, const Tensor& like) {
  Tensor rows(like.type(), like.shape());
  const std::int64_t count = like.shape()[0], all = samples.shape()[0];
  const std::size_t row_bytes = count > 0 ? rows.byte_count() / static_cast<std::size_t>(count) : 0;
  for (std::int64_t row = 0; row < count; ++row)
    std::copy_n(samples.bytes() + static_cast<std::size_t>((first + row) % all) * row_bytes, row_bytes,
                rows.bytes() + static_cast<std::size_t>(row) * row_bytes);
  return rows;
}

}  // namespace

class Model::Implementation {
 public:
  explicit Implementation(run::TrainSettings settings, std::map<std::string, Tensor> states = {})
      : settings_(std::move(settings)), model_(settings_), states_(std::move(states)) {
    const graph::Graph graph = model_.inference()(batch_or_default(0));
    for (const graph::ValueId id : graph.states()) {
      parameters_.push_back(port_of(graph, id));
      initial_.emplace(parameters_.back().name, graph.value(id).data);
    }
    std::erase_if(states_, [&](const auto& state) {  // moments and counters of a run
      return std::ranges::find(parameters_, state.first, &Port::name) == parameters_.end();
    });
  }

  const std::string& name() const { return settings_.workload; }
  std::int64_t fixed_batch() const { return model_.fixed_batch(); }
  const std::vector<Port>& parameters() const { return parameters_; }

  graph::Graph inference(std::int64_t batch) const { return model_.inference()(batch_or_default(batch)); }
  graph::Graph training(std::int64_t batch) const { return model_.training_step()(batch_or_default(batch)); }

  Tensor parameter(std::string_view name) const {
    const Port& port = api::find_port(parameters_, name, "parameter");
    const auto found = states_.find(port.name);
    return (found == states_.end() ? initial_.at(port.name) : found->second).clone();
  }

  void set_parameter(std::string_view name, const Tensor& value) {
    const Port& port = api::find_port(parameters_, name, "parameter");
    api::require_fits(port, value);
    states_.insert_or_assign(port.name, value.clone());
  }

  std::unique_ptr<target::Executable> compile(const CompileSettings& settings) const {
    const target::Target& target = target::find_target(settings.target);
    target::CompileOptions options = api::compile_options(settings);
    if (fixed_batch() > 0) options.micro_batch = fixed_batch();
    if (settings.precision == "int8")
      return target.compile(quantized(target, settings, options.threads), options);
    return target.compile(with_states(at_precision(settings.precision).inference(&target), states_), options);
  }

  std::unique_ptr<target::Executable> compile_step(const CompileSettings& settings,
                                                   const TrainerSettings& training, double& rate) const {
    const target::Target& target = target::find_target(settings.target);
    run::TrainSettings chosen = settings_;
    chosen.precision = settings.precision;
    chosen.optimizer = training.optimizer;
    chosen.learning_rate = training.learning_rate;
    chosen.batch = settings.batch;
    const run::Model model(chosen);
    rate = model.settings().learning_rate;
    target::CompileOptions options = api::compile_options(settings);
    if (fixed_batch() > 0) options.micro_batch = fixed_batch();
    return target.compile(with_states(model.training_step(&target), states_), options);
  }

  std::unique_ptr<target::Executable> compile_gradient(const CompileSettings& settings) const {
    const target::Target& target = target::find_target(settings.target);
    run::TrainSettings chosen = settings_;
    chosen.precision = settings.precision;
    chosen.batch = settings.batch;
    target::CompileOptions options = api::compile_options(settings);
    if (fixed_batch() > 0) options.micro_batch = fixed_batch();
    return target.compile(with_states(run::Model(chosen).gradient_step(&target), states_), options);
  }

  void write_onnx(const std::filesystem::path& file, const OnnxSettings& settings) const {
    const std::int64_t batch = settings.batch > 0 ? settings.batch : fixed_batch();
    onnx::write_onnx(file, with_states(at_precision("f32").inference(), states_),
                     {.opset = settings.opset, .fixed_batch = batch});
  }

 private:
  std::int64_t batch_or_default(std::int64_t batch) const {
    return batch > 0 ? batch : std::max<std::int64_t>(1, fixed_batch());
  }

  run::Model at_precision(const std::string& precision) const {
    run::TrainSettings chosen = settings_;
    chosen.precision = precision;
    return run::Model(chosen);
  }

  target::GraphAtBatch quantized(const target::Target& target, const CompileSettings& settings,
                                 int threads) const {
    const std::vector<Port> ports = inputs_of(inference(0));
    const std::vector<Tensor> samples = api::in_order(ports, settings.calibration);
    std::int64_t count = 0;
    for (std::size_t i = 0; i < ports.size(); ++i) {
      const Shape& shape = samples[i].shape();
      const bool rows = shape.rank() > 0 && shape.rank() == ports[i].shape.rank() && shape[0] > 0 &&
                        std::equal(shape.begin() + 1, shape.end(), ports[i].shape.begin() + 1);
      if (!rows || samples[i].type() != ports[i].element || (i > 0 && shape[0] != count))
        throw Error(ErrorCode::invalid_argument,
                    "calibration samples must have the input's type, and a row a sample",
                    fmt::format("input '{}'", ports[i].name),
                    fmt::format("one sample is {}{}", name_of(ports[i].element), to_string(ports[i].shape)));
      count = shape[0];
    }
    run::CalibrateSettings calibration{
        .samples = count, .threads = threads, .products = {.beside_bf16 = true}};
    if (fixed_batch() > 0) calibration.batch = fixed_batch();
    const auto fill = [&](std::int64_t first, std::span<Tensor> inputs) {
      for (std::size_t i = 0; i < inputs.size(); ++i) inputs[i] = rows_of(samples[i], first, inputs[i]);
    };
    return run::quantize_model(target, at_precision("f32").inference(), states_, calibration, fill).graph;
  }

  run::TrainSettings settings_;
  run::Model model_;
  std::map<std::string, Tensor> states_;  // parameters that are not the initial ones
  std::vector<Port> parameters_;
  std::map<std::string, Tensor> initial_;
};

Model::Model(const std::string& what, const ModelSettings& settings)
    : implementation_(std::make_unique<Implementation>(train_settings(what, settings))) {}
Model::Model(std::unique_ptr<Implementation> implementation) : implementation_(std::move(implementation)) {}
Model::Model(Model&&) noexcept = default;
Model& Model::operator=(Model&&) noexcept = default;
Model::~Model() = default;

Model Model::from_run(const std::filesystem::path& folder) {
  run::Weights weights = run::load_weights(folder);
  weights.settings.precision = "f32";
  weights.settings.data.clear();
  weights.settings.validation.clear();
  return Model(std::make_unique<Implementation>(std::move(weights.settings), std::move(weights.states)));
}

const std::string& Model::name() const { return implementation_->name(); }
std::int64_t Model::fixed_batch() const { return implementation_->fixed_batch(); }
std::vector<Port> Model::inputs(std::int64_t batch) const {
  return inputs_of(implementation_->inference(batch));
}

std::vector<Port> Model::outputs(std::int64_t batch) const {
  const graph::Graph graph = implementation_->inference(batch);
  std::vector<Port> ports;
  for (const graph::Output& output : graph.outputs())
    ports.push_back({output.name, graph.type(output.value).element, graph.type(output.value).shape});
  return ports;
}

// Inputs of a training step are the model's, the targets and the learning rate, in this order.
std::vector<Port> Model::targets(std::int64_t batch) const {
  const std::size_t inputs = implementation_->inference(batch).inputs().size();
  std::vector<Port> ports = inputs_of(implementation_->training(batch));
  return {ports.begin() + static_cast<std::ptrdiff_t>(inputs), ports.end() - 1};
}

const std::vector<Port>& Model::parameters() const { return implementation_->parameters(); }
Tensor Model::parameter(std::string_view name) const { return implementation_->parameter(name); }
void Model::set_parameter(std::string_view name, const Tensor& value) {
  implementation_->set_parameter(name, value);
}

void Model::take_parameters(const Trainer& trainer) {
  for (const Port& port : implementation_->parameters())
    set_parameter(port.name, trainer.parameter(port.name));
}

Session Model::compile(const CompileSettings& settings) const {
  return Session(std::make_unique<Session::Implementation>(implementation_->compile(settings)));
}

Trainer Model::trainer(const CompileSettings& settings, const TrainerSettings& training) const {
  double rate = 0;
  auto executable = implementation_->compile_step(settings, training, rate);
  return Trainer(std::make_unique<Trainer::Implementation>(std::move(executable), name(), rate));
}

Session Model::gradient(const CompileSettings& settings) const {
  return Session(std::make_unique<Session::Implementation>(implementation_->compile_gradient(settings)));
}

void Model::write_onnx(const std::filesystem::path& file, const OnnxSettings& settings) const {
  implementation_->write_onnx(file, settings);
}

}  // namespace superstep
