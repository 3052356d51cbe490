#include "superstep/lab/bench/configurations.h"

#include <algorithm>
#include <array>
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

Primitive recurrent(std::string name, std::int64_t steps, std::int64_t batch, std::int64_t size) {
  return {
      .kind = lstm, .name = std::move(name), .batch = batch, .steps = steps, .inputs = size, .hidden = size};
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
const std::array recurrents = {recurrent("rnn_k1", 50, 64, 256), recurrent("rnn_k2", 25, 32, 512),
                               recurrent("rnn_k3", 25, 16, 512), recurrent("rnn_k4", 50, 32, 512)};

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
      return {real(p.steps) * real(p.inputs), real(p.steps) * real(p.hidden),
              4 * real(p.hidden) * (real(p.inputs) + real(p.hidden))};
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
    case lstm: return recurrent("rnn_b1", 25, 1, 512);
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
  }
  return "";
}

std::span<const Primitive> published_primitives(PrimitiveKind kind) {
  switch (kind) {
    case gemm: return products;
    case conv: return convolutions;
    case relu: return rectifiers;
    case lstm: return recurrents;
  }
  return {};
}

const Primitive& find_primitive(PrimitiveKind kind, std::string_view name) {
  std::vector<std::string> names;
  for (const Primitive& primitive : published_primitives(kind)) {
    if (primitive.name == name) return primitive;
    names.push_back(primitive.name);
  }
  throw Error(ErrorCode::invalid_argument, "there is no such configuration", std::string(name),
              unknown_name_hint(name, names));
}

std::vector<Primitive> sweep(PrimitiveKind kind, double most_bytes, std::size_t element_bytes, bool trains) {
  std::vector<Primitive> primitives{sweep_start(kind)};
  while (tensor_bytes(primitives.back(), element_bytes, trains) <= most_bytes)
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
    case lstm: return 8 * real(p.steps) * real(p.batch) * real(p.hidden) * (real(p.inputs) + real(p.hidden));
  }
  return 0;
}

double printed_flops(const Primitive& p) {
  switch (p.kind) {
    case conv: return 2 * real(p.batch) * out_area(p, 1) * elements_of(p).weights;
    case lstm: return 8 * real(p.steps) * real(p.hidden) * real(p.batch) * (real(p.inputs) + 1);
    default: return corrected_flops(p);
  }
}

double training_factor(PrimitiveKind kind) { return kind == relu ? 2 : 3; }

double tensor_bytes(const Primitive& primitive, std::size_t element_bytes, bool trains) {
  const Elements elements = elements_of(primitive);
  const double once = real(batch_of(primitive)) * (elements.in + elements.out) + elements.weights;
  return once * static_cast<double>(element_bytes) * (trains ? 2 : 1);
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
    case lstm: return {{"steps", p.steps}, {"batch", p.batch}, {"inputs", p.inputs}, {"hidden", p.hidden}};
  }
  return {};
}

}  // namespace superstep::lab
