#include "superstep/transform/batch_axis.h"

#include <fmt/format.h>

#include <algorithm>

#include "superstep/op/core/definition.h"
#include "superstep/transform/rewrite.h"

namespace superstep::transform {
namespace {

using op::BatchSite;

// The axes along which the elements of a constant differ.
std::uint64_t variation_of(const Tensor& tensor) {
  const Shape& shape = tensor.shape();
  const auto strides = shape.row_major_strides();
  std::uint64_t varies = 0;
  const std::size_t size = size_in_bytes(tensor.type());
  const auto bytes = [&](std::int64_t at) {
    return std::string_view(
        reinterpret_cast<const char*>(tensor.bytes()) + static_cast<std::size_t>(at) * size, size);
  };
  for (int axis = 0; axis < shape.rank() && axis < 64; ++axis) {
    const std::int64_t stride = strides[static_cast<std::size_t>(axis)];
    for (std::int64_t i = 0; i < tensor.element_count(); ++i)
      if (i / stride % shape[axis] > 0 && bytes(i) != bytes(i - stride)) {
        varies |= std::uint64_t{1} << axis;
        break;
      }
  }
  return varies;
}

class Analysis {
 public:
  Analysis(const Graph& graph, const BatchAxisOptions& options)
      : graph_(graph), averages_sums_(options.averages_sums) {
    for (std::size_t i = 0; i < graph.value_count(); ++i)
      found_.push_back(source(graph.values()[i], options));
    for (const Node& node : graph.nodes()) visit(node);
  }

  std::vector<BatchAxis> take() { return std::move(found_); }

 private:
  static BatchAxis source(const graph::Value& value, const BatchAxisOptions& options) {
    if (value.kind == graph::ValueKind::constant)
      return {.kind = BatchKind::constant, .varies = variation_of(value.data)};
    const bool shared = value.kind != graph::ValueKind::input || value.type.shape.rank() == 0 ||
                        std::ranges::find(options.shared_inputs, value.name) != options.shared_inputs.end();
    return shared ? op::any_constant() : op::along(0);
  }

  void visit(const Node& node) {
    BatchSite site{graph_, node, {}, averages_sums_};
    for (ValueId id : node.inputs)
      site.inputs.push_back(id.valid() ? found_[id.index()] : op::same_everywhere());
    for (; site.output < node.outputs.size(); ++site.output)
      if (const ValueId id = node.outputs[site.output]; id.valid()) found_[id.index()] = judge(site);
  }

  static BatchAxis judge(const BatchSite& site) {
    for (const BatchAxis& input : site.inputs)
      if (input.kind == BatchKind::mixed) return op::mixes("reads what mixes samples");
    const op::Traits& traits = op::traits_of(site.node.op);
    if (traits.by_counter) return op::along(0);  // each part of a batch has its own numbers
    if (site.others_constant({})) return op::constant_batch_axis(site);
    return traits.batch ? traits.batch(site) : op::mixes("is not known to keep samples apart");
  }

  const Graph& graph_;
  bool averages_sums_;
  std::vector<BatchAxis> found_;
};

Error refusal(const Node& node, const char* why) {
  return Error(ErrorCode::unsupported, fmt::format("the batch cannot be split: it {}", why), describe(node),
               "run the whole batch at once");
}

}  // namespace

std::vector<BatchAxis> find_batch_axes(const Graph& graph, const BatchAxisOptions& options) {
  return Analysis(graph, options).take();
}

Status splittable(const Graph& graph, const BatchAxisOptions& options) {
  const std::vector<BatchAxis> found = find_batch_axes(graph, options);
  for (const Node& node : graph.nodes()) {
    if (node.phase == Phase::update) {
      for (ValueId id : node.inputs)
        if (id.valid() && found[id.index()].kind == BatchKind::per_sample)
          return std::unexpected(refusal(node, "updates state from single samples"));
      continue;
    }
    for (ValueId id : node.outputs)
      if (id.valid() && found[id.index()].kind == BatchKind::mixed)
        return std::unexpected(refusal(node, found[id.index()].why));
  }
  for (const graph::Output& output : graph.outputs())
    if (found[output.value.index()].kind == BatchKind::per_sample && found[output.value.index()].rows != 1)
      return std::unexpected(Error(ErrorCode::unsupported,
                                   "the batch cannot be split: its samples are several rows of an output",
                                   "output " + output.name, "run the whole batch at once"));
  return {};
}

}  // namespace superstep::transform
