#include "superstep/target/ports.h"

#include <fmt/format.h>

#include "superstep/base/error.h"
#include "superstep/transform/batch_axis.h"
#include "superstep/transform/pipeline.h"

namespace superstep::target {
namespace {

bool follows_batch(const Shape& at_batch, const Shape& at_other, std::int64_t batch, std::int64_t other) {
  return at_batch.rank() > 0 && at_other.rank() == at_batch.rank() && at_batch[0] == batch &&
         at_other[0] == other;
}

}  // namespace

void check_ports(std::string_view kind, std::span<const Executable::Port> ports,
                 std::span<const Tensor> tensors) {
  if (ports.size() != tensors.size())
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{} {}s given, {} wanted", tensors.size(), kind, ports.size()));
  for (std::size_t i = 0; i < ports.size(); ++i) {
    const graph::ValueType given{tensors[i].type(), tensors[i].shape()};
    if (given != ports[i].type)
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("is {}, the model wants {}", to_string(given), to_string(ports[i].type)),
                  fmt::format("{} {}", kind, ports[i].name));
  }
}

BatchedPorts batched_ports(const GraphAtBatch& model, std::int64_t batch, std::int64_t micro_batch) {
  const bool whole = micro_batch == batch;
  const std::int64_t other = whole ? batch : batch == 1 ? 2 : batch % 2 == 0 ? batch / 2 : 1;
  const graph::Graph full = model(batch), part = whole ? full : model(other);
  BatchedPorts ports;
  for (std::size_t i = 0; i < full.inputs().size(); ++i) {
    const graph::Value& value = full.value(full.inputs()[i]);
    ports.inputs.push_back({value.name, value.type});
    ports.input_is_batched.push_back(
        !whole && follows_batch(value.type.shape, part.type(part.inputs()[i]).shape, batch, other));
  }
  for (std::size_t i = 0; i < full.outputs().size(); ++i) {
    const graph::Output& output = full.outputs()[i];
    ports.outputs.push_back({output.name, full.type(output.value)});
    ports.output_is_batched.push_back(
        !whole &&
        follows_batch(full.type(output.value).shape, part.type(part.outputs()[i].value).shape, batch, other));
  }
  ports.splits = !whole && transform::splittable(full).has_value();
  return ports;
}

graph::Graph prepare_graph(graph::Graph graph) {
  return transform::run_passes(std::move(graph), transform::standard_passes());
}

void refuse_parts(const CompileOptions& options, std::string_view target) {
  if (options.parts.count > 1)
    throw Error(ErrorCode::unsupported, "this target does not train on several ranks", std::string(target),
                "use --on cpu");
}

void refuse_chips(const CompileOptions& options, std::string_view target) {
  if (options.chips.several())
    throw Error(ErrorCode::unsupported,
                "stages, replicas and accumulation belong to machines of several chips", std::string(target),
                "use --on gc200, bow or gc2");
}

}  // namespace superstep::target
