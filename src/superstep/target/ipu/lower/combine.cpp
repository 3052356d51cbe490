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
  std::vector<bsp::Piece> partials[2];  // each partial result where it lies or has arrived
  bsp::Piece results[2];
};

void bind_partials(void* field, std::span<const bsp::Piece> pieces) {
  static_cast<std::vector<bsp::Piece>*>(field)->assign(pieces.begin(), pieces.end());
}
void bind_result(void* field, std::span<const bsp::Piece> pieces) {
  *static_cast<bsp::Piece*>(field) = pieces[0];
}

// Partial result s of output k, and the result.
template <class T>
const T* partial(const CombineVertex& vertex, std::size_t k, std::size_t s) {
  return static_cast<const T*>(vertex.partials[k][s].data);
}
template <class T>
T* result(const CombineVertex& vertex, std::size_t k) {
  return static_cast<T*>(vertex.results[k].data);
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
  const auto means = [&](std::size_t s) { return partial<T>(vertex, 0, s); };
  const auto variances = [&](std::size_t s) { return partial<T>(vertex, 1, s); };
  for (std::size_t i = 0; i < n; ++i) {
    const double mean = combined(part, [&](std::size_t s) { return widened(means(s)[i]); });
    double variance = 0;
    for (std::size_t s = 0; s < part.weights.size(); ++s) {
      const double distance = widened(means(s)[i]) - mean;
      variance += part.weights[s] * (widened(variances(s)[i]) + distance * distance);
    }
    result<T>(vertex, 0)[i] = rounded<T>(mean);
    result<T>(vertex, 1)[i] = rounded<T>(variance / part.total);
  }
}

// Numbers as they are compared.
template <class T>
auto comparable(T value) {
  if constexpr (std::is_integral_v<T>)
    return value;
  else
    return static_cast<float>(value);
}

// Parts follow one another along a line: a place in one is as much further along as those before it have.
template <class T>
void combine_places(const CombineVertex& vertex) {
  const CombinePart& part = *vertex.part;
  const auto n = static_cast<std::size_t>(part.count);
  const auto value = [&](std::size_t s, std::size_t i) { return comparable(partial<T>(vertex, 0, s)[i]); };
  for (std::size_t i = 0; i < n; ++i) {
    std::size_t best = 0;
    std::int64_t begin = 0, place = partial<std::int64_t>(vertex, 1, 0)[i];
    for (std::size_t s = 1; s < part.weights.size(); ++s) {
      begin += static_cast<std::int64_t>(part.weights[s - 1]);
      const auto candidate = value(s, i), champion = value(best, i);
      // As TopK sorts: NaN is larger than any number.
      const bool better = part.combine == Combine::place_of_largest
                              ? !(candidate <= champion) && champion == champion
                              : !(candidate >= champion) && candidate == candidate;
      if (!better) continue;
      best = s;
      place = begin + partial<std::int64_t>(vertex, 1, s)[i];
    }
    result<T>(vertex, 0)[i] = partial<T>(vertex, 0, best)[i];
    result<std::int64_t>(vertex, 1)[i] = place;
  }
}

bool wraps_around(Combine combine) { return combine == Combine::sum || combine == Combine::product; }

// Integers that are too large wrap around, as those of one tile do.
template <class T>
void combine_integers(const CombineVertex& vertex) {
  const CombinePart& part = *vertex.part;
  const bool adds = part.combine == Combine::sum;
  for (std::size_t i = 0; i < static_cast<std::size_t>(part.count); ++i) {
    std::uint64_t value = adds ? 0 : 1;
    for (std::size_t s = 0; s < part.weights.size(); ++s) {
      const auto x = static_cast<std::uint64_t>(partial<T>(vertex, 0, s)[i]);
      value = adds ? value + x : value * x;
    }
    result<T>(vertex, 0)[i] = static_cast<T>(value);
  }
}

template <class T>
void combine_values(const CombineVertex& vertex) {
  const CombinePart& part = *vertex.part;
  if constexpr (std::is_integral_v<T>)
    if (wraps_around(part.combine)) return combine_integers<T>(vertex);
  const auto n = static_cast<std::size_t>(part.count);
  for (std::size_t i = 0; i < n; ++i)
    result<T>(vertex, 0)[i] =
        rounded<T>(combined(part, [&](std::size_t s) { return widened(partial<T>(vertex, 0, s)[i]); }));
}

void compute(void* object, unsigned worker) {
  if (worker != 0) return;
  const CombineVertex& vertex = *static_cast<const CombineVertex*>(object);
  dispatch(vertex.part->element, [&]<class T>() {
    if constexpr (std::is_same_v<T, double> || std::is_same_v<T, bool>)
      return;  // a tile has neither
    else if (vertex.part->combine == Combine::moments)
      combine_moments<T>(vertex);
    else if (combines_pairs(vertex.part->combine))
      combine_places<T>(vertex);
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
  const auto add = [&](const char* field, std::size_t k, bool partials, ElementType type) {
    bsp::FieldInfo info;
    info.name = field;
    info.direction = partials ? bsp::FieldDirection::input : bsp::FieldDirection::output;
    info.shape = partials ? bsp::FieldShape::vector_list : bsp::FieldShape::vector;
    info.type = type;
    info.offset = partials ? offsetof(CombineVertex, partials) + k * sizeof(std::vector<bsp::Piece>)
                           : offsetof(CombineVertex, results) + k * sizeof(bsp::Piece);
    info.bind = partials ? bind_partials : bind_result;
    vertex.fields.push_back(std::move(info));
  };
  const bool pairs = combines_pairs(combine), moments = combine == Combine::moments;
  const ElementType second = moments ? element : ElementType::i64;
  add("in0", 0, true, element);
  if (pairs) add("in1", 1, true, second);
  add("out0", 0, false, element);
  if (pairs) add("out1", 1, false, second);
  vertex.object_bytes = sizeof(CombineVertex);
  vertex.object_alignment = alignof(CombineVertex);
  vertex.construct = [](void* memory, const void* context) {
    new (memory) CombineVertex{static_cast<const CombinePart*>(context), {}, {}};
  };
  vertex.destroy = [](void* memory) { static_cast<CombineVertex*>(memory)->~CombineVertex(); };
  vertex.compute = compute;
  const auto depth = static_cast<std::int64_t>(weights.size());
  auto part = std::make_shared<CombinePart>(CombinePart{combine, element, count, std::move(weights)});
  for (const double weight : part->weights) part->total += weight;
  vertex.context = std::move(part);
  const auto cycles = static_cast<std::uint64_t>(
      pairs && !moments ? machine::ipu::arg_cycles(hardware, count, depth)
                        : (moments ? 2 : 1) *
                              machine::ipu::reduce_strided_cycles(hardware, count, depth, ElementType::f32));
  vertex.cycles = [cycles, flops = static_cast<std::uint64_t>(count * depth)](const bsp::VertexFields&,
                                                                              const bsp::Device&) {
    return bsp::PerfEstimate(cycles, flops);
  };
  return vertex;
}

}  // namespace superstep::target::ipu
