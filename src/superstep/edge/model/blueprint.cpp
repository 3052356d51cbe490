#include "superstep/edge/model/blueprint.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>

#include "superstep/base/encoding/sha256.h"
#include "superstep/base/file.h"
#include "superstep/base/system/mapped_file.h"
#include "superstep/edge/model/signature.h"
#include "superstep/run/model.h"
#include "superstep/run/serve/infer.h"
#include "superstep/run/user/user_model.h"

namespace superstep::edge {
namespace {

class ContentHash {
 public:
  void add(std::span<const std::byte> bytes) { hash_.add(bytes); }
  void add(std::string_view text) {
    add(std::as_bytes(std::span(text)));
    add(std::as_bytes(std::span("", 1)));  // "ab", "c" is not "a", "bc"
  }
  std::string digest() { return hash_.hexadecimal(); }

 private:
  Sha256 hash_;
};

bool is_run_folder(const std::string& what) {
  return std::filesystem::is_regular_file(std::filesystem::path(what) / "config.json");
}

run::TrainSettings settings_of(const ModelSource& source, std::map<std::string, Tensor>& states,
                               bool& has_digest) {
  run::TrainSettings settings{.workload = source.what, .shapes = source.shapes};
  if (is_run_folder(source.what)) {
    run::Weights weights = run::load_weights(source.what);
    settings = std::move(weights.settings);
    states = std::move(weights.states);
    has_digest = weights.has_digest;
  }
  if (source.precision == "int8")
    throw Error(
        ErrorCode::invalid_argument, "int8 is calibrated first", "--precision",
        "'superstep infer MODEL --precision int8 --onnx FILE' writes the calibrated model: serve FILE");
  settings.precision = source.precision;
  settings.data.clear();
  settings.validation.clear();
  settings.augmentation.clear();
  return settings;
}

target::GraphAtBatch with_states(target::GraphAtBatch build, std::map<std::string, Tensor> states) {
  return [build = std::move(build), states = std::move(states)](std::int64_t batch) {
    graph::Graph graph = build(batch);
    for (const graph::ValueId id : graph.states())
      if (const auto found = states.find(graph.value(id).name); found != states.end())
        graph.set_data(id, found->second);
    return graph;
  };
}

struct Extents {
  std::vector<ServedPort> inputs, outputs;
};

Extents extents_of(const graph::Graph& graph) {
  Extents extents;
  for (const graph::ValueId id : graph.inputs())
    extents.inputs.push_back({graph.value(id).name, graph.type(id).element, graph.type(id).shape});
  for (const graph::Output& output : graph.outputs())
    extents.outputs.push_back(
        {output.name, graph.type(output.value).element, graph.type(output.value).shape});
  return extents;
}

// One row of a port whose first axis, and no other, is the batch; none of any other port.
std::optional<ServedPort> row_of(const ServedPort& one, const ServedPort& two) {
  const std::vector<std::int64_t>&a = one.shape.extents(), &b = two.shape.extents();
  if (a.empty() || a.size() != b.size() || a[0] != 1 || b[0] != 2 ||
      !std::equal(a.begin() + 1, a.end(), b.begin() + 1))
    return std::nullopt;
  return ServedPort{one.name, one.element, Shape(std::vector<std::int64_t>(a.begin() + 1, a.end()))};
}

bool take_rows(const std::vector<ServedPort>& one, const std::vector<ServedPort>& two,
               std::vector<ServedPort>& rows) {
  if (one.size() != two.size()) return false;
  for (std::size_t i = 0; i < one.size(); ++i) {
    const auto row = row_of(one[i], two[i]);
    if (!row) return false;
    rows.push_back(*row);
  }
  return true;
}

ServedPorts ports_of(const run::Model& model, const target::GraphAtBatch& graph) {
  const bool may_be_batched =
      model.fixed_batch() == 0 && !model.one_a_call() && model.whole_outputs().empty();
  const Extents one = extents_of(graph(std::max<std::int64_t>(1, model.fixed_batch())));
  if (may_be_batched) {
    ServedPorts ports;
    const Extents two = extents_of(graph(2));
    if (take_rows(one.inputs, two.inputs, ports.inputs) && take_rows(one.outputs, two.outputs, ports.outputs))
      return ports;
  }
  return {.batched = false, .inputs = one.inputs, .outputs = one.outputs};
}

std::size_t bytes_of(const std::vector<ServedPort>& ports) {
  return std::accumulate(ports.begin(), ports.end(), std::size_t{0},
                         [](std::size_t sum, const ServedPort& port) { return sum + port.row_bytes(); });
}

// A model file may have its digest beside it, as sha256sum writes it: FILE.sha256, "DIGEST  FILE".
void require_digest_beside(const std::string& what) {
  const std::filesystem::path file = what + ".sha256";
  if (!run::is_model_file(what) || !std::filesystem::exists(file)) return;
  std::string said = read_text_file(file);
  said.resize(std::min(said.find_first_of(" \t\r\n"), said.size()));
  std::ranges::transform(said, said.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  Sha256 hash;
  hash.add(MappedFile(what).bytes());
  if (said != hash.hexadecimal())
    throw Error(ErrorCode::bad_file, fmt::format("has another SHA-256 than {} says", file.string()), what,
                "take the file that was meant, or write its digest anew: sha256sum FILE > FILE.sha256");
}

// The form of the model, as its settings or its file say it, and its parameters.
std::string digest_of(const run::Model& model, const graph::Graph& graph, std::size_t& parameter_bytes) {
  ContentHash hash;
  nlohmann::json settings = run::to_json(model.settings());
  for (const char* of_training : {"data", "weights", "workload", "augmentation"}) settings.erase(of_training);
  for (const char* of_requests : {"scale", "offset"})
    if (settings[of_requests].empty()) settings.erase(of_requests);
  hash.add(settings.dump());
  const std::string& what = model.settings().workload;
  if (run::is_model_file(what))
    hash.add(MappedFile(what).bytes());
  else
    hash.add(what);
  for (const graph::ValueId id : graph.states()) {
    const graph::Value& value = graph.value(id);
    const Tensor data = value.data.clone();  // those of a recipe are made for this alone
    hash.add(value.name);
    hash.add({data.bytes(), data.byte_count()});
    parameter_bytes += data.byte_count();
  }
  return hash.digest();
}

// Requests are scaled as the samples of the training were, and so are the ranges that these had.
void take_scalings(const run::Model& model, Blueprint& blueprint) {
  const std::vector<data::Scaling> scalings = run::scalings_of(model.settings());
  blueprint.scalings.resize(blueprint.ports.inputs.size());
  for (const data::Scaling& scaling : scalings) {
    if (!run::is_model_file(model.settings().workload)) {
      if (!blueprint.scaled_before.empty()) blueprint.scaled_before += "; ";
      blueprint.scaled_before += fmt::format("{}: {}", scaling.array, data::to_string(scaling));
      continue;
    }
    const auto port = std::ranges::find(blueprint.ports.inputs, scaling.array, &ServedPort::name);
    if (port == blueprint.ports.inputs.end()) continue;  // of a target
    if (port->element != ElementType::f32 || !blueprint.ports.batched)
      throw Error(
          ErrorCode::unsupported,
          fmt::format("was trained with --scale or --offset of '{}', and requests are scaled where they "
                      "are rows of f32",
                      scaling.array),
          model.settings().workload, "scale the data before the training instead");
    blueprint.scalings[static_cast<std::size_t>(port - blueprint.ports.inputs.begin())] = scaling;
    std::erase_if(blueprint.ranges, [&](run::InputRange& range) {
      if (range.name != scaling.array) return false;
      const auto low = data::unscaled(scaling, range.low), high = data::unscaled(scaling, range.high);
      if (low && high) range.low = std::min(*low, *high), range.high = std::max(*low, *high);
      return !low || !high;
    });
  }
}

}  // namespace

std::size_t ServedPorts::input_bytes() const { return bytes_of(inputs); }
std::size_t ServedPorts::output_bytes() const { return bytes_of(outputs); }

Blueprint read_blueprint(const ModelSource& source, const target::Target& target) {
  std::map<std::string, Tensor> states;
  bool has_digest = true;
  if (!source.verify_key.empty()) require_signed(source.what, source.verify_key);
  require_digest_beside(source.what);
  const run::Model model(settings_of(source, states, has_digest));
  const bool trained = !states.empty() || run::is_model_file(source.what);
  Blueprint blueprint{.trained = trained, .has_digest = has_digest};
  blueprint.precision = source.precision;
  if (is_run_folder(source.what)) {
    blueprint.ranges = run::read_input_ranges(source.what);
    blueprint.self_test = run::read_self_test(source.what, states);
  }
  blueprint.graph = with_states(model.inference(&target), std::move(states));
  blueprint.reads_file = run::is_model_file(model.settings().workload);
  blueprint.call_rows = std::max<std::int64_t>(1, model.fixed_batch());
  blueprint.ports = ports_of(model, blueprint.graph);
  if (blueprint.ports.inputs.empty())
    throw Error(ErrorCode::unsupported, "has no input: there is nothing to ask it", source.what);
  take_scalings(model, blueprint);
  blueprint.digest = digest_of(model, blueprint.graph(blueprint.call_rows), blueprint.parameter_bytes);
  constexpr std::size_t figures_of_a_name = 16;  // those of a number of 64 bits, as files of answers have it
  blueprint.version = blueprint.digest.substr(0, figures_of_a_name);
  return blueprint;
}

}  // namespace superstep::edge
