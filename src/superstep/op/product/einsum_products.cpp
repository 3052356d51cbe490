// Einstein's summation as transposes, reshapes, sums and products of two matrices.
#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "superstep/op/core/rules.h"
#include "superstep/op/elementwise/arithmetic.h"
#include "superstep/op/elementwise/logic.h"
#include "superstep/op/move/movement.h"
#include "superstep/op/move/view.h"
#include "superstep/op/product/einsum.h"
#include "superstep/op/product/matmul.h"
#include "superstep/op/rows/reduction.h"

namespace superstep::op {
namespace {

using Extents = std::vector<std::int64_t>;

// A value with a label for each of its axes, no label twice.
struct Labelled {
  Var value;
  std::string labels;

  std::int64_t extent(char label) const { return value.shape()[static_cast<int>(labels.find(label))]; }
};

bool has(const std::string& labels, char label) { return labels.find(label) != std::string::npos; }

std::string those(const std::string& labels, auto&& test) {
  std::string result;
  std::ranges::copy_if(labels, std::back_inserter(result), test);
  return result;
}

std::int64_t elements(const Labelled& x, const std::string& labels) {
  std::int64_t count = 1;
  for (char label : labels) count *= x.extent(label);
  return count;
}

Extents extents(const Labelled& x, const std::string& labels) {
  Extents result;
  for (char label : labels) result.push_back(x.extent(label));
  return result;
}

Var in_order(const Labelled& x, const std::string& labels) {
  if (labels == x.labels) return x.value;
  Extents permutation;
  for (char label : labels) permutation.push_back(static_cast<std::int64_t>(x.labels.find(label)));
  return transpose(x.value, permutation);
}

// Where places i and j agree.
Var diagonal_mask(Builder& builder, int rank, std::size_t i, std::size_t j, std::int64_t n) {
  Tensor mask(ElementType::boolean, {n, n});
  for (std::int64_t k = 0; k < n; ++k) mask.set(k * n + k, 1);
  Extents shape(static_cast<std::size_t>(rank), 1);
  shape[i] = shape[j] = n;
  return reshape(builder.constant(mask), Shape(shape));
}

// One axis a label: others of the same label give the diagonal, the sum over an axis of which one element is
// kept. Axes of "..." that this operand repeats (extent 1) are left out.
Labelled labelled(Var x, const std::string& labels) {
  Labelled result{x, labels};
  for (std::size_t j = labels.size(); j-- > 0;) {
    const std::size_t i = labels.find(labels[j]);
    const int rank = result.value.shape().rank();
    Extents rest = result.value.shape().extents();
    const std::int64_t n = rest[j];
    rest.erase(rest.begin() + static_cast<std::ptrdiff_t>(j));
    const bool repeated = n == 1 && std::isdigit(static_cast<unsigned char>(labels[j]));
    if (i == j && !repeated) continue;
    if (i != j) {
      const Var mask = diagonal_mask(x.builder(), rank, i, j, n);
      const Var kept = where(mask, result.value, constant_like(x, 0));
      result.value = reduce_sum(kept, {static_cast<std::int64_t>(j)}, false);
    } else {
      result.value = reshape(result.value, Shape(rest));
    }
    result.labels.erase(j, 1);
  }
  return result;
}

// Summed over the labels that are not `wanted`.
Labelled summed(const Labelled& x, const std::string& wanted) {
  Axes axes;
  for (std::size_t i = 0; i < x.labels.size(); ++i)
    if (!has(wanted, x.labels[i])) axes.push_back(static_cast<std::int64_t>(i));
  if (axes.empty()) return x;
  return {reduce_sum(x.value, axes, false), those(x.labels, [&](char c) { return has(wanted, c); })};
}

// a * b over all labels of both, without a sum.
Labelled broadcast_product(const Labelled& a, const Labelled& b) {
  const std::string labels = a.labels + those(b.labels, [&](char c) { return !has(a.labels, c); });
  const auto spread = [&](const Labelled& x) {
    const std::string own = those(labels, [&](char c) { return has(x.labels, c); });
    Extents shape;
    for (char label : labels) shape.push_back(has(x.labels, label) ? x.extent(label) : 1);
    return reshape(in_order(x, own), Shape(shape));
  };
  return {spread(a) * spread(b), labels};
}

// The labels of a product of two, by what becomes of them.
struct Parts {
  std::string batch, left, right, inner;  // in both and kept; of one; in both and summed
};

// Up to two axes of a batch stay apart, since strides can walk those; rows, columns and sums are one axis.
Labelled matrix_product(const Labelled& a, const Labelled& b, const Parts& parts) {
  Extents batch = extents(a, parts.batch);
  if (batch.size() > 2) batch = {elements(a, parts.batch)};
  const auto matrix = [&](const Labelled& x, const std::string& rows, const std::string& columns) {
    Extents shape = batch;
    shape.push_back(elements(x, rows));
    shape.push_back(elements(x, columns));
    return reshape(in_order(x, parts.batch + rows + columns), Shape(shape));
  };
  const Var product = matmul(matrix(a, parts.left, parts.inner), matrix(b, parts.inner, parts.right));
  Extents shape = extents(a, parts.batch);
  for (std::int64_t extent : extents(a, parts.left)) shape.push_back(extent);
  for (std::int64_t extent : extents(b, parts.right)) shape.push_back(extent);
  return {reshape(product, Shape(shape)), parts.batch + parts.left + parts.right};
}

// A batch of products of fewer columns leaves most of a vector empty: the operand with more elements of its
// own gives the columns, unless the result is wanted with the narrow ones last. Sixteen values are the
// longest vector there is.
constexpr std::int64_t narrow_columns = 16;

bool is_better_turned(const Labelled& a, const Labelled& b, const std::string& wanted) {
  const auto own = [](const Labelled& x, const Labelled& other) {
    return those(x.labels, [&](char c) { return !has(other.labels, c); });
  };
  const std::string right = own(b, a);
  if (wanted.empty() || has(right, wanted.back())) return false;
  const std::int64_t columns = elements(b, right);
  return columns < narrow_columns && columns < elements(a, own(a, b));
}

Labelled contracted(Labelled a, Labelled b, const std::string& wanted) {
  a = summed(a, wanted + b.labels);
  b = summed(b, wanted + a.labels);
  const bool batches =
      std::ranges::any_of(a.labels, [&](char c) { return has(b.labels, c) && has(wanted, c); });
  if (batches && is_better_turned(a, b, wanted)) std::swap(a, b);
  const auto in = [](const std::string& labels) { return [&labels](char c) { return has(labels, c); }; };
  const auto not_in = [](const std::string& labels) { return [&labels](char c) { return !has(labels, c); }; };
  const std::string both = those(a.labels, in(b.labels));
  const Parts parts{.batch = those(both, in(wanted)),
                    .left = those(a.labels, not_in(b.labels)),
                    .right = those(b.labels, not_in(a.labels)),
                    .inner = those(both, not_in(wanted))};
  return parts.inner.empty() ? broadcast_product(a, b) : matrix_product(a, b, parts);
}

// What a product of two must keep: labels of the result and of the others.
std::string wanted_beside(const std::vector<Labelled>& terms, std::size_t i, std::size_t j,
                          const std::string& result) {
  std::string wanted = result;
  for (std::size_t k = 0; k < terms.size(); ++k)
    if (k != i && k != j) wanted += terms[k].labels;
  return wanted;
}

double size_of_product(const Labelled& a, const Labelled& b, const std::string& wanted) {
  double size = 1;
  for (char label : a.labels)
    if (has(wanted, label)) size *= static_cast<double>(a.extent(label));
  for (char label : b.labels)
    if (has(wanted, label) && !has(a.labels, label)) size *= static_cast<double>(b.extent(label));
  return size;
}

// The two terms whose product is smallest become one.
void contract_smallest(std::vector<Labelled>& terms, const std::string& result) {
  std::size_t first = 0, second = 1;
  double least = std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < terms.size(); ++i)
    for (std::size_t j = i + 1; j < terms.size(); ++j) {
      const double size = size_of_product(terms[i], terms[j], wanted_beside(terms, i, j, result));
      if (size < least) least = size, first = i, second = j;
    }
  const std::string wanted = wanted_beside(terms, first, second, result);
  terms[first] = contracted(terms[first], terms[second], wanted);
  terms.erase(terms.begin() + static_cast<std::ptrdiff_t>(second));
}

}  // namespace

std::vector<Var> decompose_einsum(const DerivativeContext& context) {
  std::vector<Shape> shapes;
  for (Var input : context.inputs) shapes.push_back(input.shape());
  const Equation equation = parse_equation(context.attributes, shapes);
  std::vector<Labelled> terms;
  for (std::size_t i = 0; i < shapes.size(); ++i)
    terms.push_back(labelled(context.inputs[i], equation.operands[i]));
  while (terms.size() > 1) contract_smallest(terms, equation.result);
  const Labelled sum = summed(terms[0], equation.result);
  // Axes of "..." of extent 1 everywhere were left out.
  const std::string order = those(equation.result, [&](char c) { return has(sum.labels, c); });
  return {reshape(in_order(sum, order), context.outputs[0].shape())};
}

}  // namespace superstep::op
