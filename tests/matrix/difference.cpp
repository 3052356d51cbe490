#include "tests/matrix/difference.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace superstep::matrix {
namespace {

bool agree(double a, double b, double allowed) {
  if (!std::isfinite(b)) return std::isnan(b) ? std::isnan(a) : a == b;
  return std::abs(a - b) <= allowed;
}

}  // namespace

double largest(const Tensor& tensor) {
  double value = 1e-2;
  for (std::int64_t i = 0; i < tensor.element_count(); ++i)
    if (std::isfinite(tensor.at(i))) value = std::max(value, std::abs(tensor.at(i)));
  return value;
}

std::string difference(const Tensor& actual, const Tensor& expected, double tolerance) {
  const double allowed = is_floating(expected.type()) ? tolerance * largest(expected) : 0;
  for (std::int64_t i = 0; i < actual.element_count(); ++i)
    if (!agree(actual.at(i), expected.at(i), allowed))
      return "element " + std::to_string(i) + " is " + std::to_string(actual.at(i)) + ", expected " +
             std::to_string(expected.at(i));
  return {};
}

bool has_floats(const op::test::Case& item) {
  return item.inputs.empty() ||
         std::ranges::any_of(item.inputs, [](const Tensor& t) { return is_floating(t.type()); });
}

int cases_each(int usual) {
  const char* wanted = std::getenv("SUPERSTEP_CASES");
  return wanted ? std::atoi(wanted) : usual;
}

std::uint64_t own_seed(std::string_view op) {
  std::uint64_t seed = 0;
  for (const char c : op) seed = (31 * seed + static_cast<unsigned char>(c)) % 1'000'003;
  return seed;
}

}  // namespace superstep::matrix
