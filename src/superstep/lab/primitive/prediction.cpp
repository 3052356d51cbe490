#include "superstep/lab/primitive/prediction.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <optional>
#include <string_view>

#include "superstep/base/error.h"
#include "superstep/base/text.h"
#include "superstep/lab/bench/configurations.h"
#include "superstep/lab/bench/primitive_graph.h"
#include "superstep/lab/validate/primitive_graph.h"
#include "superstep/machine/configuration/resolve.h"
#include "superstep/machine/cost_model.h"

namespace superstep::lab {
namespace {

constexpr std::string_view message = "allreduce-";
constexpr std::array<std::string_view, 5> prefixes{"gemm_", "conv_", "relu_", "rnn_", "gru_"};
constexpr const char* forms =
    "gemm_MxNxK, conv_w128_h128_c32_n16_k128_fw5_fh5_p0x0_s1x1, or one of the published shapes: "
    "gemm_k1 to gemm_k4, conv_k1 to conv_k4, relu_k1 to relu_k4; layers: rnn_k1 to rnn_k4 (LSTM), gru_k1 to "
    "gru_k4, "
    "rnn_tanh_k1 to rnn_tanh_k4";

[[noreturn]] void refuse(const std::string& what, const PrimitiveQuestion& question) {
  throw Error(ErrorCode::invalid_argument, what, question.name, forms);
}

// Forward where a table's name is enough for it; with gradients products and the published shapes.
graph::Graph graph_of(const PrimitiveQuestion& question, const machine::Precision& precision) {
  const std::optional<Primitive> shaped = product_named(question.name);
  const Primitive* const known = shaped ? &*shaped : published_primitive(question.name);
  if (question.batch > 0 && (!known || known->kind == PrimitiveKind::gemm))
    refuse("has no batch of its own: its shape says it all", question);
  if (question.passes == Passes::forward)
    if (auto forward = primitive_graph(question.name, "time_forward")) return std::move(*forward);
  if (!known)
    refuse(primitive_graph(question.name, "") ? "only published shapes are trained" : "is no primitive",
           question);
  const std::int64_t batch =
      question.batch > 0 ? question.batch : batch_at(*known, size_in_bytes(precision.data));
  return primitive_graph(*known, PrimitiveOptions{.passes = question.passes})(batch);
}

// "x [64, 1760], w [1760, 1760]".
std::string shape_words(const graph::Graph& graph) {
  std::vector<std::string> words;
  for (const auto& ids : {graph.inputs(), graph.states()})
    for (const graph::ValueId id : ids) {
      const graph::Value& value = graph.value(id);
      words.push_back(fmt::format("{} {}", value.name, to_string(value.type.shape)));
    }
  return join(words, ", ");
}

// What a primitive reads and writes: of one operator all of it is there at once.
double values_of(const graph::Graph& graph) {
  double values = 0;
  const auto add = [&](graph::ValueId id) {
    values += static_cast<double>(graph.value(id).type.shape.element_count());
  };
  for (const auto& ids : {graph.inputs(), graph.states()}) std::ranges::for_each(ids, add);
  for (const graph::Output& output : graph.outputs()) add(output.value);
  return values;
}

}  // namespace

void hold_against_memory(machine::Prediction& prediction, const graph::Graph& primitive,
                         std::size_t element_bytes) {
  const double bytes = values_of(primitive) * static_cast<double>(element_bytes);
  for (machine::Stage& stage : prediction.stages) {
    if (bytes <= stage.memory.limit) continue;
    prediction.fits = false;
    stage.memory = {.limit = stage.memory.limit, .activations = bytes, .fullest = {}, .largest = {}};
  }
}

double operand_values(const std::string& name) {
  const auto graph = primitive_graph(name, "time_forward");
  return graph ? values_of(*graph) : 0;
}

bool names_primitive(const std::string& name) {
  return std::ranges::any_of(prefixes, [&](std::string_view prefix) { return name.starts_with(prefix); });
}

bool names_collective(const std::string& name) { return name.starts_with(message); }

PrimitivePrediction predict_primitive(const machine::Machine& machine, const PrimitiveQuestion& question) {
  if (question.units > 1) refuse("is of one device", question);
  const std::string name = question.precision.empty() ? "f16" : question.precision;
  const graph::Graph graph = graph_of(question, machine::precision_from_name(name));
  const machine::Question asked{.training = question.passes != Passes::forward,
                                .usual_precision = name,
                                .stated = {.precision = name, .micro_batch = 1, .units = 1}};
  machine::Answer found =
      machine::answer(machine, asked, [&](std::int64_t) -> const graph::Graph& { return graph; });
  if (!found.prediction.unsupported.empty())
    throw Error(ErrorCode::unsupported,
                fmt::format("no cost model for {}", join(found.prediction.unsupported, ", ")), question.name);
  const machine::Precision& precision = found.configuration.settings.precision;
  hold_against_memory(found.prediction, graph, size_in_bytes(precision.data));
  return {precision.name, shape_words(graph), std::move(found.prediction)};
}

double values_of_message(const std::string& name) {
  if (!name.starts_with(message)) return 0;
  char* end = nullptr;
  const double number = std::strtod(name.c_str() + message.size(), &end);
  const std::string_view unit = end;
  const double scale = unit.empty() ? 1 : unit == "K" ? 1e3 : unit == "M" ? 1e6 : unit == "G" ? 1e9 : 0;
  constexpr double most = 1e13;  // values: beyond any device's memory
  const double values = number * scale;
  return values >= 1 && values <= most ? values : 0;
}

double all_reduce_seconds(const machine::Machine& machine, double bytes, int units) {
  const auto model = machine::cost_model(machine);
  return model->all_reduce_seconds(bytes, units) + model->collective_call_seconds(units);
}

CollectivePrediction predict_collective(const machine::Machine& machine, const PrimitiveQuestion& question) {
  const double values = values_of_message(question.name);
  if (values <= 0)
    throw Error(ErrorCode::invalid_argument, "is no size of a message", question.name,
                "allreduce-VALUES, with K, M or G behind the number: allreduce-64.5M");
  if (question.units < 2)
    throw Error(ErrorCode::invalid_argument, "is between two devices at least", question.name, "--units N");
  const std::string precision = question.precision.empty() ? "f32" : question.precision;
  CollectivePrediction found{
      .precision = precision,
      .units = question.units,
      .bytes = values * static_cast<double>(size_in_bytes(machine::precision_from_name(precision).data))};
  found.seconds = all_reduce_seconds(machine, found.bytes, found.units);
  found.low = found.seconds / collective_interval.faster;
  found.high = found.seconds / collective_interval.slower;
  return found;
}

std::vector<Metric> CollectivePrediction::metrics() const {
  const double rate = bus_rate();
  return {{.name = "time",
           .value = seconds,
           .unit = "s",
           .how = How::predicted,
           .samples = {},
           .low = low,
           .high = high},
          {.name = "bus_rate",
           .value = rate,
           .unit = "B/s",
           .how = How::predicted,
           .samples = {},
           .low = rate * seconds / high,
           .high = rate * seconds / low}};
}

}  // namespace superstep::lab
