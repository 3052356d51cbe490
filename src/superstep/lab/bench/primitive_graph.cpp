#include "superstep/lab/bench/primitive_graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "superstep/base/error.h"
#include "superstep/base/random.h"
#include "superstep/base/text.h"
#include "superstep/op/core/builder.h"
#include "superstep/op/elementwise/activation.h"
#include "superstep/op/elementwise/cast.h"
#include "superstep/op/move/view.h"
#include "superstep/op/product/convolution.h"
#include "superstep/op/product/matmul.h"
#include "superstep/op/sequence/recurrent.h"
#include "superstep/transform/passes.h"
#include "superstep/transform/training/differentiate.h"

namespace superstep::lab {
namespace {

using op::Builder;
using op::Var;

// Bytes over their whole range; others so that results are about as large as inputs.
Tensor weights(Shape shape, std::uint64_t seed, std::int64_t fan_in, ElementType type = ElementType::f32) {
  Tensor tensor(type, std::move(shape));
  fill_random(tensor, seed, is_integer(type) ? 127 : 1 / std::sqrt(static_cast<double>(fan_in)));
  return tensor;
}

// Builds the forward pass and knows what the gradients are taken by.
class PrimitiveGraph {
 public:
  PrimitiveGraph(const Primitive& p, const PrimitiveOptions& options)
      : p_(p), options_(options), type_(element_of(options.precision)), graph_(p.name), b_(graph_) {}

  graph::Graph build() {
    b_.set_name(p_.name);
    const Var y = forward();
    if (options_.passes != Passes::forward) backward(y);
    if (options_.passes != Passes::gradients)
      b_.output("y", y);
    else
      transform::eliminate_dead(graph_);  // the forward pass, which no gradient of these needs
    return std::move(graph_);
  }

 private:
  Var parameter(const std::string& name, Shape shape, std::int64_t fan_in) {
    const bool integer = is_integer(type_);
    const Var state = b_.state(name, weights(std::move(shape), options_.seed + wrt_.size(), fan_in,
                                             integer ? type_ : ElementType::f32));
    wrt_.push_back(state);
    return state.element() == type_ ? state : op::cast(state, type_);
  }

  Var input(Shape shape) {
    // Bytes as quantised models have them: values without a sign, weights with one.
    x_ = b_.input("x", is_integer(type_) ? ElementType::u8 : type_, std::move(shape));
    return x_;
  }

  Var image() { return input({p_.batch, p_.channels, p_.height, p_.width}); }

  Var forward() {
    switch (p_.kind) {
      case PrimitiveKind::gemm: return product();
      case PrimitiveKind::conv: return convolution();
      case PrimitiveKind::relu: return op::relu(image());
      case PrimitiveKind::lstm:
      case PrimitiveKind::gru:
      case PrimitiveKind::rnn: return recurrent();
    }
    return {};
  }

  Var product() {
    const Var x = input({p_.m, p_.k}), w = parameter("weights", {p_.k, p_.n}, p_.k);
    return is_integer(type_) ? b_.node1("MatMulInteger", {x, w}) : op::matmul(x, w);
  }

  Var convolution() {
    const Var x = image(),
              w = parameter("weights", {p_.filters, p_.channels, p_.filter_height, p_.filter_width},
                            p_.channels * p_.filter_height * p_.filter_width);
    const std::vector<std::int64_t> pads{p_.pad_height, p_.pad_width, p_.pad_height, p_.pad_width};
    if (!is_integer(type_)) return op::conv(x, w, {}, {.pads = pads});
    graph::Attributes attributes;
    attributes.set("pads", pads);
    return b_.node1("ConvInteger", {x, w}, attributes);
  }

  Var recurrent() {
    const std::int64_t gates = gates_of(p_.kind) * p_.hidden;
    const Var x = input({p_.batch, p_.steps, p_.inputs});
    const Var w = parameter("w", {1, gates, p_.inputs}, p_.inputs);
    const Var r = parameter("r", {1, gates, p_.hidden}, p_.hidden);
    const Var y = p_.kind == PrimitiveKind::lstm ? op::lstm(x, w, r, {}, {}, {}, {.batch_first = true}).y
                  : p_.kind == PrimitiveKind::gru
                      ? op::gru(x, w, r, {}, {}, {.linear_before_reset = true, .batch_first = true}).y
                      : op::rnn(x, w, r, {}, {}, {.batch_first = true}).y;
    return op::reshape(y, {p_.batch, p_.steps, p_.hidden});
  }

  void backward(Var y) {
    const Var dy = b_.input("dy", type_, y.shape());
    b_.set_phase(graph::Phase::backward);
    std::vector<Var> wrt{x_};
    wrt.insert(wrt.end(), wrt_.begin(), wrt_.end());
    const std::vector<Var> gradients = transform::vjp(b_, std::span(&y, 1), std::span(&dy, 1), wrt);
    b_.output("dx", gradients[0]);
    for (std::size_t i = 0; i < wrt_.size(); ++i) {
      const graph::Value& value = graph_.value(wrt_[i].id());
      b_.update(b_.state(value.name + ".gradient", Tensor(value.type.element, value.type.shape)),
                gradients[i + 1]);
    }
  }

  const Primitive& p_;
  const PrimitiveOptions& options_;
  ElementType type_;
  graph::Graph graph_;
  Builder b_;
  Var x_;
  std::vector<Var> wrt_;
};

void check(const Primitive& primitive, const PrimitiveOptions& options) {
  if (options.passes == Passes::gradients && !has_gradients_alone(primitive.kind))
    throw Error(ErrorCode::unsupported, "its gradients need what its forward pass computes", primitive.name,
                "use --mode train, which makes both");
  if (!is_integer(element_of(options.precision))) return;
  const bool has = primitive.kind == PrimitiveKind::gemm || primitive.kind == PrimitiveKind::conv;
  if (has && options.passes == Passes::forward) return;
  throw Error(ErrorCode::unsupported,
              has ? "training in int8 is not a thing"
                  : fmt::format("there is no {} in int8", name_of(primitive.kind)),
              primitive.name, "use --mode infer with gemm or conv, or another --precision");
}

}  // namespace

ElementType element_of(const std::string& precision) {
  if (precision == "f32") return ElementType::f32;
  if (precision == "bf16") return ElementType::bf16;
  if (precision == "f16") return ElementType::f16;
  if (precision == "int8") return ElementType::i8;
  const std::vector<std::string> known{"f32", "bf16", "f16", "int8"};
  throw Error(ErrorCode::invalid_argument, "there is no such precision", precision,
              unknown_name_hint(precision, known));
}

target::GraphAtBatch primitive_graph(const Primitive& primitive, const PrimitiveOptions& options) {
  check(primitive, options);
  return [primitive, options](std::int64_t batch) {
    const Primitive sized = with_batch(primitive, batch);
    return PrimitiveGraph(sized, options).build();
  };
}

void fill_random(Tensor& tensor, std::uint64_t seed, double scale) {
  // A block of a prime number of elements, repeated: gigabytes would take longer to draw than to compute
  // with.
  constexpr std::int64_t block = 1000003;
  const std::int64_t count = tensor.element_count(), drawn = std::min(count, block);
  RandomStream random(seed);
  const bool integer = is_integer(tensor.type());
  const double least = tensor.type() == ElementType::u8 ? 0 : -scale;
  for (std::int64_t i = 0; i < drawn; ++i) {
    const double value = random.uniform(least, scale);
    tensor.set(i, integer ? std::round(value) : value);
  }
  const std::size_t bytes = static_cast<std::size_t>(drawn) * size_in_bytes(tensor.type());
  for (std::size_t at = bytes; at < tensor.byte_count(); at += bytes)
    std::memcpy(tensor.bytes() + at, tensor.bytes(), std::min(bytes, tensor.byte_count() - at));
}

}  // namespace superstep::lab
