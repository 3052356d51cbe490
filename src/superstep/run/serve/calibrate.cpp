#include "superstep/run/serve/calibrate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "superstep/base/error.h"
#include "superstep/base/system/interrupt.h"
#include "superstep/op/core/definition.h"
#include "superstep/run/serve/byte_errors.h"
#include "superstep/transform/model_passes.h"
#include "superstep/transform/passes.h"
#include "superstep/transform/pipeline.h"

namespace superstep::run {
namespace {

// The model with one output more for every value to look at.
graph::Graph observed(const target::GraphAtBatch& model, std::int64_t batch,
                      const transform::QuantizeOptions& products) {
  graph::Graph graph = model(batch);
  for (graph::ValueId id : transform::values_to_calibrate(graph, products))
    graph.add_output("range of " + graph.value(id).name, id);
  return graph;
}

// The mean of every channel of a value.
class ChannelMeans {
 public:
  void add(const Shape& shape, int axis, std::span<const float> values) {
    const auto channels = static_cast<std::size_t>(shape[axis]);
    std::size_t inner = 1;  // elements of a channel side by side
    for (int i = axis + 1; i < shape.rank(); ++i) inner *= static_cast<std::size_t>(shape[i]);
    sums_.resize(channels, 0.0);
    for (std::size_t first = 0; first < values.size(); first += channels * inner)
      for (std::size_t channel = 0; channel < channels; ++channel)
        for (std::size_t i = 0; i < inner; ++i) sums_[channel] += double{values[first + channel * inner + i]};
    count_ += static_cast<double>(values.size() / channels);
  }

  std::vector<double> means() const {
    std::vector<double> result;
    for (const double sum : sums_) result.push_back(sum / count_);
    return result;
  }

 private:
  std::vector<double> sums_;
  double count_ = 0;
};

class Calibration {
 public:
  Calibration(const target::Target& target, const target::GraphAtBatch& model,
              const CalibrateSettings& settings, FillSamples fill)
      : settings_(settings), fill_(fill), batch_(std::min(settings.samples, settings.batch)) {
    if (settings.samples < 1)
      throw Error(ErrorCode::invalid_argument, "calibration needs at least one sample", "--calibrate");
    const graph::Graph graph = model(batch_);
    own_outputs_ = graph.outputs().size();
    for (graph::ValueId id : transform::values_to_calibrate(graph, settings.products)) {
      names_.push_back(graph.value(id).name);
      axes_.push_back(transform::channel_axis(graph, id));
    }
    // The whole batch at once: observed values need not have a row a sample.
    executable_ = target.compile([&](std::int64_t rows) { return observed(model, rows, settings.products); },
                                 {.batch = batch_, .micro_batch = batch_, .threads = settings.threads});
    for (const auto& port : executable_->inputs()) inputs_.emplace_back(port.type.element, port.type.shape);
    for (const auto& port : executable_->outputs()) outputs_.emplace_back(port.type.element, port.type.shape);
  }

  transform::RangeTable run() {
    std::vector<transform::ValueRange> spans(
        names_.size(), {std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity()});
    std::vector<ChannelMeans> means(names_.size());
    for_each_batch([&](std::size_t i, std::span<const float> values) {
      widen(spans[i], names_[i], values);
      means[i].add(outputs_[own_outputs_ + i].shape(), axes_[i], values);
    });
    std::vector<RangeHistogram> histograms;
    for (const transform::ValueRange& span : spans) histograms.emplace_back(span.low, span.high);
    for_each_batch([&](std::size_t i, std::span<const float> values) { histograms[i].add(values); });
    transform::RangeTable table;
    for (std::size_t i = 0; i < names_.size(); ++i) {
      transform::ValueRange& range = table[names_[i]];
      range = histograms[i].range(settings_.method, settings_.share);
      range.means = means[i].means();
    }
    return table;
  }

 private:
  void for_each_batch(FunctionRef<void(std::size_t value, std::span<const float> elements)> each) {
    for (std::int64_t first = 0; first + batch_ <= settings_.samples; first += batch_) {
      if (interrupted()) throw Error(ErrorCode::interrupted, "stopped while calibrating");
      fill_(first, inputs_);
      executable_->run(inputs_, outputs_);
      for (std::size_t i = 0; i < names_.size(); ++i) each(i, outputs_[own_outputs_ + i].as<float>());
    }
  }

  static void widen(transform::ValueRange& span, const std::string& name, std::span<const float> values) {
    for (const float value : values) {
      if (!std::isfinite(value))
        throw Error(ErrorCode::invalid_argument, fmt::format("is {} on the calibration samples", value),
                    "value %" + name, "the model or its data are broken: int8 needs finite values");
      span.low = std::min(span.low, static_cast<double>(value));
      span.high = std::max(span.high, static_cast<double>(value));
    }
  }

  CalibrateSettings settings_;
  FillSamples fill_;
  std::int64_t batch_;
  std::size_t own_outputs_ = 0;
  std::vector<std::string> names_;
  std::vector<int> axes_;  // of their channels
  std::unique_ptr<target::Executable> executable_;
  std::vector<Tensor> inputs_, outputs_;
};

// The model as `target` computes it fastest in f32: bytes have to be faster than that. Weights that it makes
// of the model's own are computed once, and what does nothing in inference (Dropout) parts no neighbours.
target::GraphAtBatch with_weights(const target::Target& target, const target::GraphAtBatch& model,
                                  const std::map<std::string, Tensor>& weights) {
  return [&target, model, weights](std::int64_t batch) {
    graph::Graph graph = target.suited(model(batch));
    for (graph::ValueId id : graph.states())
      if (const auto found = weights.find(graph.value(id).name); found != weights.end())
        graph.set_data(id, found->second);
    transform::fold_parameters(graph);
    transform::simplify(graph);
    return graph;
  };
}

transform::QuantizeOptions without_slow(const target::Target& target, const graph::Graph& graph,
                                        transform::QuantizeOptions options) {
  for (target::SlowOnBytes& product : target.slow_on_bytes(graph, options))
    options.kept.insert(std::move(product.result));
  return options;
}

void count_products(QuantizedModel& model, std::int64_t batch) {
  const graph::Graph graph = model.graph(batch);
  for (const graph::Node& node : graph.nodes()) {
    model.products += node.op == "ConvInteger" || node.op == "MatMulInteger";
    model.kept += op::traits_of(node.op).product;
  }
}

}  // namespace

transform::RangeTable calibrate(const target::Target& target, const target::GraphAtBatch& model,
                                const CalibrateSettings& settings, FillSamples fill) {
  return Calibration(target, model, settings, fill).run();
}

transform::Pass quantization_for(const target::Target& target, transform::RangeTable ranges,
                                 transform::QuantizeOptions products) {
  return transform::quantize_pass(
      std::move(ranges),
      [&target, products](const graph::Graph& graph) { return without_slow(target, graph, products); },
      [&target, products](const graph::Graph& graph) { return target.faster_in_bf16(graph, products); });
}

QuantizedModel quantize_model(const target::Target& target, const target::GraphAtBatch& model,
                              const std::map<std::string, Tensor>& weights, const CalibrateSettings& settings,
                              FillSamples fill) {
  const target::GraphAtBatch trained = with_weights(target, model, weights);
  QuantizedModel result;
  result.ranges = calibrate(target, trained, settings, fill);
  ExactProducts exact = choose_exact_products(target, trained, result.ranges, settings, fill);
  const transform::QuantizeOptions& products = exact.products;
  result.coarse = std::move(exact.coarse);
  result.graph = [trained, pass = quantization_for(target, result.ranges, products)](std::int64_t batch) {
    return transform::run_passes(trained(batch), std::span(&pass, 1));
  };
  const std::int64_t batch = std::min(settings.samples, settings.batch);
  count_products(result, batch);
  result.slow = target.slow_on_bytes(trained(batch), products);
  if (result.products == 0 && result.slow.empty() && result.coarse.empty())
    throw Error(ErrorCode::unsupported, "has no product or convolution that gains from int8",
                "--precision int8", "those of fewer than 16 channels stay in f32: serve it in f32 or bf16");
  return result;
}

}  // namespace superstep::run
