// The generator and the conventional method of docs/add-a-generator.md.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <numbers>

#include "superstep/base/random.h"
#include "superstep/baseline/baseline.h"
#include "superstep/file/hdf5/hdf5.h"
#include "superstep/physics/generator.h"
#include "superstep/physics/sample_memory.h"
#include "tests/contains.h"
#include "tests/scratch.h"

namespace superstep {
namespace {

using namespace data;
using baseline::Report;
using baseline::Request;

// [add-a-generator]
constexpr std::int64_t signal_length = 128;
constexpr double sample_interval_s = 1e-3;

// A decaying oscillation, as a struck resonator gives it, with white noise from the detector.
class RingdownGenerator final : public Generator {
 public:
  explicit RingdownGenerator(double noise) : noise_(noise) {}

  std::string_view name() const override { return "ringdown"; }
  int version() const override { return 1; }
  std::span<const Field> fields() const override {
    static const std::vector<Field> table = {
        {"signal", ElementType::f32, {signal_length}, "", "amplitude 1 at time 0, sampled every ms"},
        {"frequency", ElementType::f32, {}, "Hz", "of the oscillation"},
        {"decay", ElementType::f32, {}, "1/s", "rate at which the amplitude falls"}};
    return table;
  }

  void sample(std::uint64_t seed, std::uint64_t index, std::span<std::byte* const> out) const override {
    RandomStream random(seed, index);
    const double frequency = random.uniform(20, 120), decay = random.uniform(2, 10);
    const std::span<float> signal = elements<float>(out[0], signal_length);
    for (std::size_t i = 0; i < signal.size(); ++i) {
      const double t = sample_interval_s * static_cast<double>(i);
      const double exact = std::exp(-decay * t) * std::cos(2 * std::numbers::pi * frequency * t);
      signal[i] = static_cast<float>(exact + noise_ * random.normal());
    }
    put(out[1], static_cast<float>(frequency));
    put(out[2], static_cast<float>(decay));
  }

  nlohmann::json parameters() const override { return {{"noise", noise_}}; }

 private:
  double noise_;
};

std::unique_ptr<Generator> make_ringdown(const Options& options) {
  return std::make_unique<RingdownGenerator>(options.number("noise", 0, 10));
}

GeneratorEntry ringdown_generator() {
  return {"ringdown",
          "decaying oscillations with their frequency and decay",
          {{"noise", "0.01", "standard deviation, in units of the first amplitude"}},
          make_ringdown};
}
// [end]

// [add-a-generator]
bool same_bytes(const Tensor& a, const Tensor& b) {
  return a.byte_count() == b.byte_count() && std::memcmp(a.bytes(), b.bytes(), a.byte_count()) == 0;
}

TEST(Ringdown, IsTheSameBitsOnAnyThreads) {
  ThreadPool one(1), three(3);
  const RingdownGenerator generator(0.01);
  const auto alone = generate_in_memory(generator, 7, 0, 50, one);
  const auto shared = generate_in_memory(generator, 7, 0, 50, three);
  for (std::size_t field = 0; field < alone.size(); ++field)
    EXPECT_TRUE(same_bytes(alone[field], shared[field])) << generator.fields()[field].name;
  const auto other_seed = generate_in_memory(generator, 8, 0, 50, one);
  EXPECT_FALSE(same_bytes(alone[0], other_seed[0]));
}

TEST(Ringdown, FollowsItsFormula) {
  ThreadPool pool(1);
  const auto made = generate_in_memory(RingdownGenerator(0), 7, 3, 1, pool);
  const double frequency = made[1].at(0), decay = made[2].at(0), t = 0.05;
  EXPECT_NEAR(made[0].at(50), std::exp(-decay * t) * std::cos(2 * std::numbers::pi * frequency * t), 1e-5);
}
// [end]

// [add-a-generator]
// The frequency from the first and the last time the signal crosses zero while it is still strong.
double crossing_frequency(std::span<const float> signal) {
  double first = 0, last = 0;
  int crossings = 0;
  for (std::size_t i = 1; i < signal.size(); ++i) {
    if ((signal[i - 1] < 0) == (signal[i] < 0)) continue;
    const double place = static_cast<double>(i) - signal[i] / (signal[i] - signal[i - 1]);
    if (crossings++ == 0) first = place;
    last = place;
  }
  return crossings < 2 ? 0 : (crossings - 1) / (2 * sample_interval_s * (last - first));
}

Report run_zero_crossings(const Request& request, const Options&) {
  const Hdf5File file(request.input);
  const std::int64_t signal_shape[] = {-1, signal_length};
  const Tensor signals = file.read("signal", ElementType::f32, signal_shape);
  const std::int64_t count = signals.shape()[0], label_shape[] = {count};
  const Tensor labels = file.read("frequency", ElementType::f64, label_shape);
  std::vector<double> errors(static_cast<std::size_t>(count));
  request.pool->parallel_for(count, [&](std::int64_t i, int) {
    const auto signal =
        signals.as<float>().subspan(static_cast<std::size_t>(i * signal_length), signal_length);
    errors[static_cast<std::size_t>(i)] = std::abs(crossing_frequency(signal) - labels.at(i));
  });
  double sum = 0;  // in the order of the samples: the same bits on any number of threads
  for (const double error : errors) sum += error;
  return {.metrics = {{.name = "error_hz_mean", .value = sum / static_cast<double>(count), .unit = "Hz"}}};
}

baseline::Entry zero_crossings() {
  return {"ringdown", "the frequency from the zero crossings", {}, run_zero_crossings};
}
// [end]

std::filesystem::path written(const ScratchFolder& scratch, const std::string& noise) {
  ThreadPool pool(2);
  const GeneratorEntry entry = ringdown_generator();
  const std::vector<std::string> settings{"noise=" + noise};
  const auto path = scratch / ("noise-" + noise + ".h5");
  entry.make(Options(entry.options, settings))->write({path, 1, 100, &pool});
  return path;
}

double mean_error(const std::filesystem::path& input, int threads = 2) {
  ThreadPool pool(threads);
  const baseline::Entry entry = zero_crossings();
  return entry.run({input, {}, {}, &pool}, Options(entry.options, {})).metrics.at(0).value;
}

TEST(AddAGenerator, WritesAFileThatTheMethodReads) {
  const ScratchFolder scratch;
  const auto clean = written(scratch, "0"), noisy = written(scratch, "3");
  EXPECT_EQ(std::get<std::int64_t>(Hdf5File(clean).attributes().at("synthetic")), 1);
  EXPECT_LT(mean_error(clean), 0.5);  // Hz, of 20 to 120
  EXPECT_GT(mean_error(noisy), 50);   // the control: noise has far more crossings
  EXPECT_EQ(mean_error(noisy, 1), mean_error(noisy, 3));
}

TEST(AddAGenerator, NamesTheDataSetThatIsMissing) {
  const ScratchFolder scratch;
  const auto path = scratch / "other.h5";
  Hdf5Writer file(path);
  file.write("signals", Tensor(ElementType::f32, {2, signal_length}));
  file.close();
  try {
    mean_error(path);
    FAIL();
  } catch (const Error& error) {
    EXPECT_TRUE(contains(error.what(), "other.h5: data set 'signal'"));
    EXPECT_TRUE(contains(error.what(), "did you mean 'signals'?"));
  }
}

}  // namespace
}  // namespace superstep
