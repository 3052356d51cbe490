#include "superstep/physics/function_generator.h"

#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

#include "superstep/base/random.h"
#include "superstep/physics/sample_memory.h"

namespace superstep::data {
namespace {

using Variables = std::array<double, function_variables>;

// y = sin(x0 + x1) + x2 x3 + (x4 - x5)^2 / 2 + 0.1 sum of the rest.
double value_at(const Variables& x) {
  double rest = 0;
  for (std::size_t i = 6; i < x.size(); ++i) rest += x[i];
  return std::sin(x[0] + x[1]) + x[2] * x[3] + 0.5 * (x[4] - x[5]) * (x[4] - x[5]) + 0.1 * rest;
}

class FunctionGenerator final : public Generator {
 public:
  std::string_view name() const override { return "mlp"; }
  int version() const override { return 1; }
  std::span<const Field> fields() const override {
    static const std::vector<Field> table = {
        {"x", ElementType::f32, {function_variables}, "", "variables, uniform from -1 to 1"},
        {"target", ElementType::f32, {}, "", "the function there, without noise"}};
    return table;
  }
  void sample(std::uint64_t seed, std::uint64_t index, std::span<std::byte* const> out) const override {
    RandomStream random(seed, index);
    Variables x;
    for (double& each : x) each = random.uniform(-1, 1);
    put_all<float>(out[0], x);
    put(out[1], static_cast<float>(value_at(x)));
  }
  nlohmann::json parameters() const override { return nlohmann::json::object(); }
};

}  // namespace

GeneratorEntry function_generator() {
  return {
      "mlp", "a smooth function of sixteen variables", {}, [](const Options&) -> std::unique_ptr<Generator> {
        return std::make_unique<FunctionGenerator>();
      }};
}

}  // namespace superstep::data
