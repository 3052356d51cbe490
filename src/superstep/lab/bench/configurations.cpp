#include "superstep/lab/bench/configurations.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <nlohmann/json.hpp>

#include "superstep/base/error.h"
#include "superstep/base/text.h"

namespace superstep::lab {
namespace {

using enum PrimitiveKind;

Primitive product(std::string name, std::int64_t m, std::int64_t n, std::int64_t k) {
  return {.kind = gemm, .name = std::move(name), .m = m, .n = n, .k = k};
}

struct Filter {
  std::int64_t count, width, height, pad;
};

Primitive convolution(std::string name, std::int64_t width, std::int64_t channels, std::int64_t batch,
                      Filter filter) {
  return {.kind = conv,
          .name = std::move(name),
          .width = width,
          .height = width,
          .channels = channels,
          .batch = batch,
          .filters = filter.count,
          .filter_width = filter.width,
          .filter_height = filter.height,
          .pad_width = filter.pad,
          .pad_height = filter.pad};
}

Primitive rectifier(std::string name, std::int64_t width, std::int64_t channels, std::int64_t batch) {
  return {.kind = relu,
          .name = std::move(name),
          .width = width,
          .height = width,
          .channels = channels,
          .batch = batch};
}

Primitive recurrent(PrimitiveKind kind, std::string name, std::int64_t steps, std::int64_t batch,
                    std::int64_t size) {
  return {
      .kind = kind, .name = std::move(name), .batch = batch, .steps = steps, .inputs = size, .hidden = size};
}

// Table VI.
const std::array products = {product("gemm_k1", 64, 1760, 1760), product("gemm_k2", 2560, 64, 2560),
                             product("gemm_k3", 1760, 128, 1760), product("gemm_k4", 2560, 2560, 2560)};
// Table VII; stride 1.
const std::array convolutions = {convolution("conv_k1", 7, 32, 131072, {32, 3, 3, 0}),
                                 convolution("conv_k2", 14, 128, 4096, {256, 3, 3, 1}),
                                 convolution("conv_k3", 54, 16, 256, {1024, 3, 3, 1}),
                                 convolution("conv_k4", 128, 32, 1024, {128, 5, 5, 0})};
// Table VIII.
const std::array rectifiers = {rectifier("relu_k1", 7, 32, 262144), rectifier("relu_k2", 14, 128, 16384),
                               rectifier("relu_k3", 54, 1024, 128), rectifier("relu_k4", 128, 128, 128)};
// Table IX.
const std::array recurrents = {recurrent(lstm, "rnn_k1", 50, 64, 256), recurrent(lstm, "rnn_k2", 25, 32, 512),
                               recurrent(lstm, "rnn_k3", 25, 16, 512),
                               recurrent(lstm, "rnn_k4", 50, 32, 512)};
// The same shapes with the other cells: a GRU, and one with tanh alone.
std::array<Primitive, 4> with_cell(PrimitiveKind kind, const std::string& prefix) {
  std::array<Primitive, 4> all = recurrents;
  for (Primitive& each : all) {
    each.kind = kind;
    each.name = prefix + each.name.substr(each.name.find("_k"));
  }
  return all;
}
const std::array gated = with_cell(gru, "gru"), plain = with_cell(rnn, "rnn_tanh");

double real(std::int64_t value) { return static_cast<double>(value); }

double out_area(const Primitive& p, std::int64_t added) {
  return real(conv_out(p.width, p.filter_width, p.pad_width) - added) *
         real(conv_out(p.height, p.filter_height, p.pad_height) - added);
}

// Elements that a sample has, in and out, and elements of the weights.
struct Elements {
  double in, out, weights;
};

Elements elements_of(const Primitive& p) {
  switch (p.kind) {
    case gemm: return {real(p.k), real(p.n), real(p.k) * real(p.n)};
    case conv:
      return {real(p.width) * real(p.height) * real(p.channels), out_area(p, 0) * real(p.filters),
              real(p.filters) * real(p.channels) * real(p.filter_width) * real(p.filter_height)};
    case relu: {
      const double image = real(p.width) * real(p.height) * real(p.channels);
      return {image, image, 0};
    }
    case lstm:
    case gru:
    case rnn:
      return {real(p.steps) * real(p.inputs), real(p.steps) * real(p.hidden),
              real(gates_of(p.kind)) * real(p.hidden) * (real(p.inputs) + real(p.hidden))};
  }
  return {};
}

Primitive sweep_start(PrimitiveKind kind) {
  // Where each sweep begins: extents, channels, samples, filters as above. Chosen: small enough for any
  // machine.
  switch (kind) {
    case gemm: return product("gemm_64", 64, 64, 64);
    case conv: return convolution("conv_b1", 54, 64, 1, {64, 3, 3, 1});
    case relu: return rectifier("relu_b1", 54, 64, 1);
    case lstm: return recurrent(lstm, "rnn_b1", 25, 1, 512);
    case gru: return recurrent(gru, "gru_b1", 25, 1, 512);
    case rnn: return recurrent(rnn, "rnn_tanh_b1", 25, 1, 512);
  }
  return {};
}

Primitive doubled(const Primitive& p) {
  if (p.kind == gemm) return product("gemm_" + std::to_string(2 * p.m), 2 * p.m, 2 * p.n, 2 * p.k);
  Primitive next = with_batch(p, 2 * p.batch);
  next.name = p.name.substr(0, p.name.find("_b") + 2) + std::to_string(next.batch);
  return next;
}

}  // namespace

const char* name_of(PrimitiveKind kind) {
  switch (kind) {
    case gemm: return "gemm";
    case conv: return "conv";
    case relu: return "relu";
    case lstm: return "lstm";
    case gru: return "gru";
    case rnn: return "rnn";
  }
  return "";
}

std::span<const PrimitiveKind> primitive_kinds() {
  static constexpr PrimitiveKind all[] = {gemm, conv, relu, lstm, gru, rnn};
  return all;
}

bool is_recurrent(PrimitiveKind kind) { return kind == lstm || kind == gru || kind == rnn; }

std::int64_t gates_of(PrimitiveKind kind) { return kind == lstm ? 4 : kind == gru ? 3 : kind == rnn ? 1 : 0; }

bool has_gradients_alone(PrimitiveKind kind) { return kind == gemm || kind == conv; }

const char* name_of(Passes passes) {
  return passes == Passes::forward ? "infer" : passes == Passes::both ? "train" : "backward";
}

Passes passes_named(std::string_view mode) {
  std::vector<std::string> names;
  for (const Passes passes : {Passes::both, Passes::forward, Passes::gradients}) {
    if (mode == name_of(passes)) return passes;
    names.emplace_back(name_of(passes));
  }
  throw Error(ErrorCode::invalid_argument, "there is no such mode", std::string(mode),
              unknown_name_hint(mode, names));
}

std::span<const Primitive> published_primitives(PrimitiveKind kind) {
  switch (kind) {
    case gemm: return products;
    case conv: return convolutions;
    case relu: return rectifiers;
    case lstm: return recurrents;
    case gru: return gated;
    case rnn: return plain;
  }
  return {};
}

const Primitive* published_primitive(std::string_view name) {
  for (const PrimitiveKind kind : primitive_kinds())
    for (const Primitive& primitive : published_primitives(kind))
      if (primitive.name == name) return &primitive;
  return nullptr;
}

std::optional<Primitive> product_named(std::string_view name) {
  constexpr std::string_view prefix = "gemm_";
  constexpr std::int64_t largest_extent = 1 << 24;  // chosen: beyond any machine's memory
  if (!name.starts_with(prefix)) return std::nullopt;
  std::vector<std::int64_t> extents;
  for (const std::string& text : split(name.substr(prefix.size()), 'x')) {
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size() || value < 1 || value > largest_extent)
      return std::nullopt;
    extents.push_back(value);
  }
  if (extents.size() == 1) extents.resize(3, extents[0]);
  if (extents.size() != 3) return std::nullopt;
  return product(std::string(name), extents[0], extents[1], extents[2]);
}

Primitive find_primitive(PrimitiveKind kind, std::string_view name) {
  std::vector<std::string> names;
  for (const Primitive& primitive : published_primitives(kind)) {
    if (primitive.name == name) return primitive;
    names.push_back(primitive.name);
  }
  if (kind == gemm)
    if (std::optional<Primitive> shaped = product_named(name)) return *std::move(shaped);
  throw Error(ErrorCode::invalid_argument, "there is no such configuration", std::string(name),
              unknown_name_hint(name, names));
}

std::vector<Primitive> sweep(PrimitiveKind kind, double most_bytes, std::size_t element_bytes,
                             Passes passes) {
  std::vector<Primitive> primitives{sweep_start(kind)};
  while (tensor_bytes(primitives.back(), element_bytes, passes) <= most_bytes)
    primitives.push_back(doubled(primitives.back()));
  return primitives;
}

std::int64_t batch_of(const Primitive& primitive) {
  return primitive.kind == gemm ? primitive.m : primitive.batch;
}

Primitive with_batch(Primitive primitive, std::int64_t batch) {
  (primitive.kind == gemm ? primitive.m : primitive.batch) = batch;
  return primitive;
}

std::int64_t batch_at(const Primitive& primitive, std::size_t element_bytes) {
  const bool half = element_bytes < sizeof(float) && primitive.kind != gemm;
  return batch_of(primitive) * (half ? 2 : 1);
}

std::int64_t conv_out(std::int64_t in, std::int64_t filter, std::int64_t pad) {
  return in + 2 * pad - filter + 1;
}

double corrected_flops(const Primitive& p) {
  switch (p.kind) {
    case gemm: return 2 * real(p.m) * real(p.n) * real(p.k);
    case conv: return 2 * real(p.batch) * out_area(p, 0) * elements_of(p).weights;
    case relu: return real(p.batch) * elements_of(p).in;
    case lstm:
    case gru:
    case rnn:
      return 2 * real(gates_of(p.kind)) * real(p.steps) * real(p.batch) * real(p.hidden) *
             (real(p.inputs) + real(p.hidden));
  }
  return 0;
}

double printed_flops(const Primitive& p) {
  switch (p.kind) {
    case conv: return 2 * real(p.batch) * out_area(p, 1) * elements_of(p).weights;
    case lstm:
    case gru:
    case rnn:
      return 2 * real(gates_of(p.kind)) * real(p.steps) * real(p.hidden) * real(p.batch) *
             (real(p.inputs) + 1);
    default: return corrected_flops(p);
  }
}

double operations_factor(PrimitiveKind kind, Passes passes) {
  const double gradients = kind == relu ? 1 : 2;
  return passes == Passes::forward ? 1 : passes == Passes::both ? 1 + gradients : gradients;
}

double tensor_bytes(const Primitive& primitive, std::size_t element_bytes, Passes passes) {
  const Elements elements = elements_of(primitive);
  const double samples = real(batch_of(primitive)), results = samples * elements.out;
  const double once = samples * elements.in + results + elements.weights;
  const double all = passes == Passes::forward ? once
                     : passes == Passes::both  ? 2 * once
                                               : 2 * once - results;
  return all * static_cast<double>(element_bytes);
}

nlohmann::json parameters_of(const Primitive& p) {
  switch (p.kind) {
    case gemm: return {{"m", p.m}, {"n", p.n}, {"k", p.k}};
    case conv:
      return {{"width", p.width},           {"height", p.height},
              {"channels", p.channels},     {"batch", p.batch},
              {"filters", p.filters},       {"filter_width", p.filter_width},
              {"pad_width", p.pad_width},   {"filter_height", p.filter_height},
              {"pad_height", p.pad_height}, {"stride", 1}};
    case relu:
      return {{"width", p.width}, {"height", p.height}, {"channels", p.channels}, {"batch", p.batch}};
    case lstm:
    case gru:
    case rnn: return {{"steps", p.steps}, {"batch", p.batch}, {"inputs", p.inputs}, {"hidden", p.hidden}};
  }
  return {};
}

}  // namespace superstep::lab
