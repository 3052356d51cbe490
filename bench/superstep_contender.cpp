// Superstep behind the line protocol of contenders: one workload, or one model file, at one batch, timed
// beside the peers.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstring>
#include <limits>

#include "protocol.h"
#include "superstep/base/error.h"
#include "superstep/base/random.h"
#include "superstep/file/npz.h"
#include "superstep/run/model.h"
#include "superstep/run/serve/calibrate.h"
#include "superstep/run/serve/export.h"

namespace {

using namespace superstep;

struct Arguments {
  std::string model = "braggnn", mode = "train", precision = "f32", target = "cpu", export_to, export_step_to;
  std::string calibrate;
  std::string optimizer = "adam", loss;
  std::int64_t batch = 64, micro_batch = 0;
  std::vector<std::string> options, train;
  std::uint64_t memory_limit = 0;
  int threads = 1;
};

Arguments parse(int argc, char** argv) {
  Arguments arguments;
  CLI::App program("Times Superstep on command: see peers/README.md.");
  program.add_option("--model", arguments.model);
  program.add_option("--set", arguments.options, "name=value of an option of the model; may be repeated");
  program.add_option("--mode", arguments.mode)->check(CLI::IsMember({"train", "infer"}));
  program.add_option("--optimizer", arguments.optimizer, "as superstep train takes it");
  program.add_option("--loss", arguments.loss, "of a model file");
  program.add_option("--train", arguments.train,
                     "initialisers of a model file to train besides; may be repeated");
  program.add_option("--precision", arguments.precision);
  program.add_option("--calibrate", arguments.calibrate,
                     "npz of samples for int8, by the names of the inputs (default: random data)");
  program.add_option("--on", arguments.target);
  program.add_option("--batch", arguments.batch, "0: of a model file, the one that it fixes, else 1")
      ->check(CLI::NonNegativeNumber);
  program.add_option("--micro-batch", arguments.micro_batch)->check(CLI::NonNegativeNumber);
  program.add_option("--threads", arguments.threads)->check(CLI::PositiveNumber);
  program.add_option("--memory-limit", arguments.memory_limit, "bytes the plan may take: 200M, 2G")
      ->transform(CLI::AsSizeValue(true));
  program.add_option("--export", arguments.export_to, "write the model as ONNX and end");
  program.add_option("--export-step", arguments.export_step_to,
                     "write the training step at --batch as ONNX and end");
  try {
    program.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    std::exit(program.exit(error));
  }
  return arguments;
}

// Random data of every type an input can have; labels are small whole numbers.
void fill_random(Tensor& tensor, std::uint64_t seed) {
  RandomStream random(seed);
  const bool whole = is_integer(tensor.type());
  for (std::int64_t i = 0; i < tensor.element_count(); ++i)
    tensor.set(i, whole ? static_cast<double>(random.below(10)) : random.uniform());
}

Tensor random_input(const target::Executable::Port& port, std::uint64_t seed) {
  if (port.name == "learning_rate") return Tensor::scalar(1e-3f);
  Tensor tensor(port.type.element, port.type.shape);
  fill_random(tensor, seed);
  return tensor;
}

run::Model make_model(const Arguments& arguments) {
  run::TrainSettings settings;
  settings.workload = arguments.model;
  settings.model_options = arguments.options;
  settings.precision = arguments.precision == "int8" ? "f32" : arguments.precision;
  settings.optimizer = arguments.optimizer;
  settings.loss = arguments.loss;
  settings.train = arguments.train;
  return run::Model(settings);
}

// What int8 is calibrated on: samples of a file, or the random data that steps are timed with where there is
// none.
class Samples {
 public:
  Samples(const std::string& path, const graph::Graph& model) {
    if (path.empty()) return;
    const data::NamedTensors arrays = data::read_npz(path);
    for (const graph::ValueId input : model.inputs()) {
      const std::string& name = model.value(input).name;
      const auto found = arrays.find(name);
      if (found == arrays.end() || found->second.type() != model.type(input).element)
        throw Error(ErrorCode::invalid_argument,
                    fmt::format("has no array '{}' of {}", name, name_of(model.type(input).element)), path);
      arrays_.push_back(found->second);
      batches_ = std::min(batches_, found->second.element_count() / model.type(input).shape.element_count());
    }
  }

  std::int64_t batches() const { return arrays_.empty() ? 1 : batches_; }

  void fill(std::int64_t batch, std::span<Tensor> inputs) const {
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const std::size_t bytes = inputs[i].byte_count();
      if (arrays_.empty())
        fill_random(inputs[i], static_cast<std::uint64_t>(batch) * inputs.size() + i + 1);
      else
        std::memcpy(inputs[i].bytes(), arrays_[i].bytes() + static_cast<std::size_t>(batch) * bytes, bytes);
    }
  }

 private:
  std::vector<Tensor> arrays_;  // in the order of the model's inputs
  std::int64_t batches_ = std::numeric_limits<std::int64_t>::max();
};

target::GraphAtBatch on_bytes(const run::Model& model, const Arguments& arguments) {
  constexpr std::int64_t most_at_once = 16;  // samples: of large models activations are large, too
  const std::int64_t batch =
      model.fixed_batch() > 0 ? model.fixed_batch() : std::min(arguments.batch, most_at_once);
  const Samples samples(arguments.calibrate, model.inference()(batch));
  const auto fill = [&](std::int64_t first, std::span<Tensor> inputs) {
    samples.fill(first / batch, inputs);
  };
  return run::quantize_model(
             target::find_target("cpu"), model.inference(), {},
             {.samples = batch * samples.batches(), .batch = batch, .products = {.beside_bf16 = true}}, fill)
      .graph;
}

target::GraphAtBatch graph_of(const run::Model& model, const Arguments& arguments) {
  const bool training = arguments.mode == "train";
  const target::Target& target = target::find_target(arguments.target);
  if (arguments.precision != "int8")
    return training ? model.training_step(&target) : model.inference(&target);
  if (training) throw Error(ErrorCode::invalid_argument, "int8 is for serving", "--precision");
  return on_bytes(model, arguments);
}

bench::Port port_of(const target::Executable::Port& port, Tensor& tensor) {
  const std::vector<std::int64_t>& extents = port.type.shape.extents();
  const std::string shape = extents.empty() ? "scalar" : fmt::format("{}", fmt::join(extents, ","));
  return {port.name, fmt::format("{}:{}", name_of(port.type.element), shape), tensor.bytes(),
          tensor.byte_count()};
}

// A model file may fix the batch: then it is that of the plan and of its one micro-batch.
void settle_batch(const run::Model& model, Arguments& arguments) {
  const std::int64_t fixed = model.fixed_batch();
  if (arguments.batch == 0) arguments.batch = std::max<std::int64_t>(1, fixed);
  if (fixed > 0) arguments.micro_batch = fixed;
}

// States as they are after the last step, behind the outputs; `states` holds them.
void publish_states(const target::Executable& executable, bench::Contender& contender,
                    std::vector<Tensor>& states) {
  const std::vector<std::string> names = executable.state_names();
  for (const std::string& name : names) states.push_back(executable.state(name));
  for (std::size_t i = 0; i < names.size(); ++i)
    contender.outputs.push_back(port_of({names[i], {states[i].type(), states[i].shape()}}, states[i]));
  contender.publish = [&executable, &states, names] {
    for (std::size_t i = 0; i < names.size(); ++i) {
      const Tensor now = executable.state(names[i]);
      std::copy_n(now.bytes(), now.byte_count(), states[i].bytes());
    }
  };
}

void serve(Arguments arguments) {
  bench::note_memory();
  const run::Model model = make_model(arguments);
  settle_batch(model, arguments);
  const auto executable = target::find_target(arguments.target)
                              .compile(graph_of(model, arguments),
                                       {.batch = arguments.batch,
                                        .micro_batch = arguments.micro_batch,
                                        .threads = arguments.threads,
                                        .memory_limit = static_cast<std::size_t>(arguments.memory_limit)});
  std::vector<Tensor> inputs, outputs;
  for (const auto& port : executable->inputs()) inputs.push_back(random_input(port, inputs.size() + 1));
  for (const auto& port : executable->outputs()) outputs.emplace_back(port.type.element, port.type.shape);
  const target::PlanSummary plan = executable->summary();
  bench::Contender contender;
  contender.description = {
      {"contender", arguments.precision == "f32" ? "Superstep" : "Superstep " + arguments.precision},
      {"model", arguments.model},
      {"mode", arguments.mode},
      {"batch", arguments.batch},
      {"threads", arguments.threads},
      {"flops", plan.flops},
      {"plan_bytes", plan.plan_bytes},
      {"state_bytes", plan.state_bytes},
      {"plan", plan.choice},
      {"settings", {{"micro_batch", plan.micro_batch}}}};
  contender.step = [&] { executable->run(inputs, outputs); };
  for (std::size_t i = 0; i < inputs.size(); ++i)
    contender.inputs.push_back(port_of(executable->inputs()[i], inputs[i]));
  for (std::size_t i = 0; i < outputs.size(); ++i)
    contender.outputs.push_back(port_of(executable->outputs()[i], outputs[i]));
  std::vector<Tensor> states;
  if (arguments.mode == "train") publish_states(*executable, contender, states);
  bench::serve(contender);
}

void write_model(const Arguments& arguments) { make_model(arguments).write_onnx(arguments.export_to, {}); }

void write_step(const Arguments& arguments) {
  run::ExportSettings settings;
  settings.model.workload = arguments.model;
  settings.model.model_options = arguments.options;
  settings.model.optimizer = arguments.optimizer;
  settings.out = arguments.export_step_to;
  settings.training_step = true;
  settings.batch = arguments.batch;
  run::export_onnx(settings);
}

}  // namespace

int main(int argc, char** argv) {
  const Arguments arguments = parse(argc, argv);
  try {
    if (!arguments.export_to.empty())
      write_model(arguments);
    else if (!arguments.export_step_to.empty())
      write_step(arguments);
    else
      serve(arguments);
  } catch (const std::exception& error) {
    bench::fail(error.what());
  }
  return 0;
}
