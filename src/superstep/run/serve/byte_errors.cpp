#include "superstep/run/serve/byte_errors.h"

#include <algorithm>
#include <cmath>

#include "superstep/base/progress.h"
#include "superstep/base/system/interrupt.h"
#include "superstep/transform/model_passes.h"
#include "superstep/transform/pipeline.h"

namespace superstep::run {
namespace {

double spread_of(const std::vector<std::vector<Tensor>>& batches, std::size_t output) {
  double count = 0, sum = 0, squares = 0;
  for (const auto& outputs : batches)
    for (const float value : outputs[output].as<float>()) {
      ++count;
      sum += double{value};
      squares += double{value} * double{value};
    }
  return count > 0 ? std::sqrt(std::max(0.0, squares / count - (sum / count) * (sum / count))) : 0;
}

double root_mean_square(const std::vector<std::vector<Tensor>>& a, const std::vector<std::vector<Tensor>>& b,
                        std::size_t output) {
  double count = 0, squares = 0;
  for (std::size_t k = 0; k < a.size(); ++k) {
    const auto exact = a[k][output].as<float>(), found = b[k][output].as<float>();
    for (std::size_t i = 0; i < exact.size(); ++i) {
      const double difference = double{found[i]} - double{exact[i]};
      squares += difference * difference;
    }
    count += static_cast<double>(exact.size());
  }
  return count > 0 ? std::sqrt(squares / count) : 0;
}

// The model with its products on bytes but for `kept`, and for what the target expects to be slower so.
target::GraphAtBatch on_bytes(const target::Target& target, const target::GraphAtBatch& model,
                              const transform::RangeTable& ranges, transform::QuantizeOptions products) {
  return [model, pass = quantization_for(target, ranges, std::move(products))](std::int64_t batch) {
    return transform::run_passes(model(batch), std::span(&pass, 1));
  };
}

// The same without asking the target: what may be slower by itself is not when its neighbours are on bytes.
target::GraphAtBatch alone_on_bytes(const target::GraphAtBatch& model, const transform::RangeTable& ranges,
                                    const transform::QuantizeOptions& products) {
  return [model, pass = transform::quantize_pass(ranges, [products](const graph::Graph&) {
                   return products;
                 })](std::int64_t batch) { return transform::run_passes(model(batch), std::span(&pass, 1)); };
}

// The results of the products that would be on bytes.
std::vector<std::string> taken(const target::Target& target, const graph::Graph& graph,
                               const transform::QuantizeOptions& products) {
  const auto slow = target.slow_on_bytes(graph, products);
  std::vector<std::string> names;
  for (const graph::NodeId product : transform::products_to_quantize(graph, products)) {
    const std::string& name = graph.value(graph.node(product).outputs[0]).name;
    if (std::ranges::find(slow, name, &target::SlowOnBytes::result) == slow.end()) names.push_back(name);
  }
  return names;
}

}  // namespace

ByteErrors::ByteErrors(const target::Target& target, const target::GraphAtBatch& model,
                       const CalibrateSettings& settings, FillSamples fill)
    : target_(target),
      settings_(settings),
      fill_(fill),
      batch_(std::min(settings.samples, settings.batch)),
      exact_(outputs_of(model)) {
  for (std::size_t i = 0; i < exact_.front().size(); ++i)
    spreads_.push_back(exact_.front()[i].type() == ElementType::f32 ? spread_of(exact_, i) : 0);
}

std::vector<std::vector<Tensor>> ByteErrors::outputs_of(const target::GraphAtBatch& model) const {
  const auto executable =
      target_.compile(model, {.batch = batch_, .micro_batch = batch_, .threads = settings_.threads});
  std::vector<Tensor> inputs, outputs;
  for (const auto& port : executable->inputs()) inputs.emplace_back(port.type.element, port.type.shape);
  for (const auto& port : executable->outputs()) outputs.emplace_back(port.type.element, port.type.shape);
  std::vector<std::vector<Tensor>> all;
  for (std::int64_t first = 0; first + batch_ <= settings_.samples; first += batch_) {
    if (interrupted()) throw Error(ErrorCode::interrupted, "stopped while calibrating");
    fill_(first, inputs);
    executable->run(inputs, outputs);
    std::vector<Tensor>& kept = all.emplace_back();
    for (const Tensor& output : outputs) kept.push_back(output.clone());
  }
  return all;
}

double ByteErrors::of(const target::GraphAtBatch& on_bytes) const {
  const auto found = outputs_of(on_bytes);
  double worst = 0;
  for (std::size_t i = 0; i < spreads_.size(); ++i)
    if (spreads_[i] > 0) worst = std::max(worst, root_mean_square(exact_, found, i) / spreads_[i]);
  return worst;
}

namespace {

// Does bf16 take more than its half of the error, with `names` off bytes?
bool bf16_is_coarse(const target::Target& target, const target::GraphAtBatch& model,
                    const transform::RangeTable& ranges, transform::QuantizeOptions products,
                    const std::vector<std::string>& names, const ByteErrors& errors, double most) {
  if (!products.beside_bf16) return false;
  products.kept.insert(names.begin(), names.end());
  return errors.of(on_bytes(target, model, ranges, products)) > most / 2;
}

}  // namespace

ExactProducts choose_exact_products(const target::Target& target, const target::GraphAtBatch& model,
                                    const transform::RangeTable& ranges, const CalibrateSettings& settings,
                                    FillSamples fill) {
  ExactProducts exact{.coarse = {}, .products = settings.products};
  transform::QuantizeOptions& products = exact.products;
  if (settings.most_error <= 0) return exact;
  const std::int64_t batch = std::min(settings.samples, settings.batch);
  std::vector<std::string> names = taken(target, model(batch), products);
  if (names.empty() && !products.beside_bf16) return exact;
  const ByteErrors errors(target, model, settings, fill);
  const auto are_exact = [&] {
    return errors.of(on_bytes(target, model, ranges, products)) <= settings.most_error;
  };
  if (are_exact()) return exact;
  if (bf16_is_coarse(target, model, ranges, products, names, errors, settings.most_error)) {
    products.beside_bf16 = false;
    names = taken(target, model(batch), products);
    if (are_exact()) return exact;
  }
  const Progress phase = Progress::phase("choosing what is on bytes");
  std::vector<CoarseOnBytes> order;
  for (const std::string& name : names) {
    transform::QuantizeOptions alone = settings.products;
    for (const std::string& other : names)
      if (other != name) alone.kept.insert(other);
    order.push_back({name, errors.of(alone_on_bytes(model, ranges, alone))});
  }
  std::ranges::stable_sort(order, std::greater{}, &CoarseOnBytes::error);
  for (const CoarseOnBytes& product : order) {
    exact.coarse.push_back(product);
    products.kept.insert(product.result);
    if (are_exact()) break;
  }
  return exact;
}

}  // namespace superstep::run
