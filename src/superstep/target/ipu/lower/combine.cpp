#include "superstep/target/ipu/lower/combine.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <memory>
#include <new>

#include "superstep/base/element_type.h"
#include "superstep/machine/ipu/vertex_cycles.h"

namespace superstep::target::ipu {
namespace {

struct CombinePart {
  Combine combine;
  ElementType element;
  std::int64_t count;
  std::vector<double> weights;
  double total = 0;  // of the weights
};

struct CombineVertex {
  const CombinePart* part;
  bsp::Piece pieces[4];  // inputs, then outputs
};

void bind_piece(void* field, std::span<const bsp::Piece> pieces) {
  *static_cast<bsp::Piece*>(field) = pieces[0];
}

double start_of(Combine combine) {
  switch (combine) {
    case Combine::product: return 1;
    case Combine::maximum: return -HUGE_VAL;
    case Combine::minimum: return HUGE_VAL;
    default: return 0;
  }
}

// One result of single partials: `at(s)` is the one of part s.
template <class F>
double combined(const CombinePart& part, F&& at) {
  double value = start_of(part.combine);
  for (std::size_t s = 0; s < part.weights.size(); ++s) {
    const double x = at(s);
    switch (part.combine) {
      case Combine::sum: value += x; break;
      case Combine::product: value *= x; break;
      case Combine::maximum: value = x > value || std::isnan(x) ? x : value; break;
      case Combine::minimum: value = x < value || std::isnan(x) ? x : value; break;
      case Combine::root_of_squares: value += x * x; break;
      default: value += x * part.weights[s];
    }
  }
  if (part.combine == Combine::root_of_squares) return std::sqrt(value);
  return part.combine == Combine::mean || part.combine == Combine::moments ? value / part.total : value;
}

template <class T>
double widened(T value) {
  if constexpr (std::is_integral_v<T>)
    return static_cast<double>(value);
  else
    return static_cast<double>(static_cast<float>(value));
}

template <class T>
T rounded(double value) {
  if constexpr (std::is_integral_v<T>)
    return static_cast<T>(value);
  else
    return T(static_cast<float>(value));
}

// Means and variances of parts: the variance of all is the mean of variances and of squared distances.
template <class T>
void combine_moments(const CombineVertex& vertex) {
  const CombinePart& part = *vertex.part;
  const auto n = static_cast<std::size_t>(part.count);
  const T *means = static_cast<const T*>(vertex.pieces[0].data),
          *variances = static_cast<const T*>(vertex.pieces[1].data);
  for (std::size_t i = 0; i < n; ++i) {
    const double mean = combined(part, [&](std::size_t s) { return widened(means[s * n + i]); });
    double variance = 0;
    for (std::size_t s = 0; s < part.weights.size(); ++s) {
      const double distance = widened(means[s * n + i]) - mean;
      variance += part.weights[s] * (widened(variances[s * n + i]) + distance * distance);
    }
    static_cast<T*>(vertex.pieces[2].data)[i] = rounded<T>(mean);
    static_cast<T*>(vertex.pieces[3].data)[i] = rounded<T>(variance / part.total);
  }
}

template <class T>
void combine_values(const CombineVertex& vertex) {
  const CombinePart& part = *vertex.part;
  const auto n = static_cast<std::size_t>(part.count);
  const T* partials = static_cast<const T*>(vertex.pieces[0].data);
  for (std::size_t i = 0; i < n; ++i)
    static_cast<T*>(vertex.pieces[1].data)[i] =
        rounded<T>(combined(part, [&](std::size_t s) { return widened(partials[s * n + i]); }));
}

void compute(void* object, unsigned worker) {
  if (worker != 0) return;
  const CombineVertex& vertex = *static_cast<const CombineVertex*>(object);
  dispatch(vertex.part->element, [&]<class T>() {
    if constexpr (std::is_same_v<T, double> || std::is_same_v<T, bool>)
      return;  // a tile has neither
    else if (vertex.part->combine == Combine::moments)
      combine_moments<T>(vertex);
    else
      combine_values<T>(vertex);
  });
}

}  // namespace

bsp::VertexClass combine_vertex(std::string name, Combine combine, ElementType element, std::int64_t count,
                                std::vector<double> weights, const machine::ipu::Hardware& hardware) {
  bsp::VertexClass vertex;
  vertex.name = std::move(name);
  vertex.kind = bsp::VertexKind::multi;
  const auto add = [&](const char* field, bsp::FieldDirection direction) {
    bsp::FieldInfo info;
    info.name = field;
    info.direction = direction;
    info.type = element;
    info.offset = offsetof(CombineVertex, pieces) + vertex.fields.size() * sizeof(bsp::Piece);
    info.bind = bind_piece;
    vertex.fields.push_back(std::move(info));
  };
  const bool moments = combine == Combine::moments;
  add("in0", bsp::FieldDirection::input);
  if (moments) add("in1", bsp::FieldDirection::input);
  add("out0", bsp::FieldDirection::output);
  if (moments) add("out1", bsp::FieldDirection::output);
  vertex.object_bytes = sizeof(CombineVertex);
  vertex.object_alignment = alignof(CombineVertex);
  vertex.construct = [](void* memory, const void* context) {
    new (memory) CombineVertex{static_cast<const CombinePart*>(context), {}};
  };
  vertex.destroy = [](void* memory) { static_cast<CombineVertex*>(memory)->~CombineVertex(); };
  vertex.compute = compute;
  const auto depth = static_cast<std::int64_t>(weights.size());
  auto part = std::make_shared<CombinePart>(CombinePart{combine, element, count, std::move(weights)});
  for (const double weight : part->weights) part->total += weight;
  vertex.context = std::move(part);
  const auto cycles = static_cast<std::uint64_t>(
      (moments ? 2 : 1) * machine::ipu::reduce_strided_cycles(hardware, count, depth, ElementType::f32));
  vertex.cycles = [cycles, flops = static_cast<std::uint64_t>(count * depth)](const bsp::VertexFields&,
                                                                              const bsp::Device&) {
    return bsp::PerfEstimate(cycles, flops);
  };
  return vertex;
}

}  // namespace superstep::target::ipu
