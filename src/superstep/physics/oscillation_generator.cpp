#include "superstep/physics/oscillation_generator.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <numbers>

#include "superstep/base/random.h"
#include "superstep/physics/sample_memory.h"

namespace superstep::data {
namespace {

class OscillationGenerator final : public Generator {
 public:
  OscillationGenerator(std::int64_t steps, std::int64_t sensors, double noise)
      : steps_(steps), sensors_(sensors), noise_(noise) {
    fields_ = {{"x", ElementType::f32, {steps, sensors}, "", "what each sensor sees at each step"},
               {"target", ElementType::f32, {}, "", "periods in the whole sequence, divided by 5"},
               {"phase", ElementType::f32, {}, "rad", "of the first sensor at the first step"}};
  }
  std::string_view name() const override { return "lstm"; }
  int version() const override { return 1; }
  std::span<const Field> fields() const override { return fields_; }

  // sin(2 pi (periods step / steps + sensor / sensors) + phase) and noise.
  void sample(std::uint64_t seed, std::uint64_t index, std::span<std::byte* const> out) const override {
    RandomStream random(seed, index);
    const double periods = random.uniform(slowest_oscillation, fastest_oscillation);
    const double phase = random.uniform(0, 2 * std::numbers::pi);
    const std::span<float> x = elements<float>(out[0], static_cast<std::size_t>(steps_ * sensors_));
    const auto sensors = static_cast<std::size_t>(sensors_);
    for (std::size_t i = 0; i < x.size(); ++i) {
      const auto step = static_cast<double>(i / sensors) / static_cast<double>(steps_);
      const double delay = static_cast<double>(i % sensors) / static_cast<double>(sensors);
      const double angle = 2 * std::numbers::pi * (periods * step + delay) + phase;
      x[i] = static_cast<float>(std::sin(angle) + noise_ * random.normal());
    }
    put(out[1], static_cast<float>(periods / fastest_oscillation));
    put(out[2], static_cast<float>(phase));
  }

  nlohmann::json parameters() const override {
    return {{"steps", steps_}, {"inputs", sensors_}, {"noise", noise_}};
  }

 private:
  std::int64_t steps_, sensors_;
  double noise_;  // standard deviation, of an amplitude of 1
  std::vector<Field> fields_;
};

}  // namespace

GeneratorEntry oscillation_generator() {
  return {"lstm",
          "noisy oscillations of 1 to 5 periods, seen by sensors with a delay each",
          {{"steps", "50", "steps of a sequence"},
           {"inputs", "32", "sensors"},
           {"noise", "0.2", "standard deviation of the noise, of an amplitude of 1"}},
          [](const Options& options) -> std::unique_ptr<Generator> {
            return std::make_unique<OscillationGenerator>(options.integer("steps", 1, 65536),
                                                          options.integer("inputs", 1, 65536),
                                                          options.number("noise", 0, 100));
          }};
}

}  // namespace superstep::data
