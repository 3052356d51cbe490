// Random cases of operators: shapes, axes, strides and values drawn from a seed, for targets that cut
// operators into parts. The fixed table of cases (tests/op/cases) has the corners; these have the bulk.
#pragma once

#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "superstep/op/core/definition.h"
#include "tests/op/cases/case.h"

namespace superstep::matrix {

using op::test::Case;
using op::test::Smooth;
using Extents = std::vector<std::int64_t>;

class Draw {
 public:
  explicit Draw(std::uint64_t seed) : random_(seed, 31), seed_(seed * 64) {}

  std::int64_t number(std::int64_t low, std::int64_t high) {  // both included
    return low + static_cast<std::int64_t>(random_.below(static_cast<std::uint64_t>(high - low + 1)));
  }
  bool coin() { return number(0, 1) == 1; }
  template <class T>
  T one_of(std::initializer_list<T> list) {
    return *(list.begin() + number(0, static_cast<std::int64_t>(list.size()) - 1));
  }
  Extents extents(std::int64_t rank, std::int64_t low = 1, std::int64_t high = 7) {
    Extents result;
    for (std::int64_t i = 0; i < rank; ++i) result.push_back(number(low, high));
    return result;
  }
  // So many axes, of a few hundred elements in all.
  Shape shape(std::int64_t least_rank = 1, std::int64_t most_rank = 4) {
    const std::int64_t rank = number(least_rank, most_rank);
    constexpr std::int64_t high[] = {1, 300, 24, 10, 6, 4};
    return Shape(extents(rank, 1, high[rank]));
  }
  int axis(const Shape& shape) { return static_cast<int>(number(0, shape.rank() - 1)); }
  // The same axis, counted from the front or the back.
  std::int64_t either(int axis, const Shape& shape) { return coin() ? axis : axis - shape.rank(); }

  Tensor normal(const Shape& shape, double scale = 1, double shift = 0) {
    return op::test::random_tensor(shape, ++seed_, scale, shift);
  }
  Tensor uniform(const Shape& shape, double low, double high) {
    return op::test::uniform_tensor(shape, ++seed_, low, high);
  }
  Tensor whole(const Shape& shape, std::int64_t low, std::int64_t high,
               ElementType element = ElementType::i64) {
    Tensor result(element, shape);
    for (std::int64_t i = 0; i < result.element_count(); ++i)
      result.set(i, static_cast<double>(number(low, high)));
    return result;
  }

 private:
  RandomStream random_;
  std::uint64_t seed_;
};

// One node over its inputs, in order; an empty tensor (f64 of shape [0]) is an input left out.
Case node_case(const char* op, std::vector<Tensor> inputs, op::Attributes attributes = {}, int outputs = 1,
               Smooth smooth = Smooth::once);
inline Tensor left_out() { return Tensor(ElementType::f64, Shape{0}); }

struct Generator {
  std::vector<const char*> operators;
  Case (*draw)(Draw&, const char* op);
};
std::vector<Generator> elementwise_generators();
std::vector<Generator> product_generators();
std::vector<Generator> window_generators();
std::vector<Generator> line_generators();
std::vector<Generator> index_generators();
std::vector<Generator> sequence_generators();
std::vector<Generator> other_generators();

// Null when the operator has none.
const Generator* generator_of(std::string_view op);

}  // namespace superstep::matrix
