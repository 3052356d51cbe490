#include "superstep/baseline/series/oscillation_fit.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <numbers>

#include "superstep/base/error.h"
#include "superstep/base/stopwatch.h"
#include "superstep/base/text.h"
#include "superstep/baseline/regression.h"
#include "superstep/file/source/array_file.h"
#include "superstep/physics/oscillation_generator.h"
#include "superstep/physics/stream_blocks.h"

namespace superstep::baseline {
namespace {

using Complex = std::complex<double>;
using data::fastest_oscillation;
using data::slowest_oscillation;

constexpr double tau = 2 * std::numbers::pi;

// What all sensors say together of each step, their delays taken back.
std::vector<Complex> in_phase(std::span<const float> x, std::int64_t steps, std::int64_t sensors) {
  std::vector<Complex> turn, sums(static_cast<std::size_t>(steps));
  for (std::int64_t s = 0; s < sensors; ++s)
    turn.push_back(std::polar(1.0, -tau * static_cast<double>(s) / static_cast<double>(sensors)));
  for (std::size_t i = 0; i < x.size(); ++i)
    sums[i / turn.size()] += static_cast<double>(x[i]) * turn[i % turn.size()];
  return sums;
}

// |sum of steps turned back by `periods`|^2: highest where the sinusoid lies nearest.
double strength(std::span<const Complex> steps, double periods) {
  const Complex turn = std::polar(1.0, -tau * periods / static_cast<double>(steps.size()));
  Complex sum = 0, factor = 1;
  for (const Complex& step : steps) sum += step * factor, factor *= turn;
  return std::norm(sum);
}

double highest(std::span<const Complex> steps, double low, double high) {
  const double golden = (std::sqrt(5.0) - 1) / 2;
  while (high - low > 1e-7) {
    const double a = high - golden * (high - low), b = low + golden * (high - low);
    (strength(steps, a) > strength(steps, b) ? high : low) = strength(steps, a) > strength(steps, b) ? b : a;
  }
  return (low + high) / 2;
}

struct Sequences {
  Tensor x, target;
  std::int64_t count() const { return x.shape()[0]; }
  std::int64_t steps() const { return x.shape()[1]; }
  std::int64_t sensors() const { return x.shape()[2]; }
  std::span<const float> row(std::int64_t k) const {
    const auto size = static_cast<std::size_t>(steps() * sensors());
    return x.as<float>().subspan(static_cast<std::size_t>(k) * size, size);
  }
};

Sequences read_sequences(const std::filesystem::path& path) {
  const data::ArrayFile file(path);
  const std::int64_t any[] = {-1, -1, -1};
  Sequences read{file.read("x", ElementType::f32, any), {}};
  if (read.x.element_count() == 0)
    throw Error(ErrorCode::bad_file, "has no sequences", path.string() + ": data set 'x'");
  const std::int64_t rows[] = {read.count()};
  if (file.contains("target")) read.target = file.read("target", ElementType::f32, rows);
  return read;
}

using Method = double (*)(std::span<const float> x, std::int64_t steps, std::int64_t sensors);

struct Outcome {
  std::vector<double> found;  // periods divided by the most there are, as the labels have it
  double seconds = 0;
};

Outcome apply(Method method, const Sequences& sequences, ThreadPool& pool) {
  Outcome outcome{std::vector<double>(static_cast<std::size_t>(sequences.count())), 0};
  const Stopwatch watch;
  pool.parallel_for(sequences.count(), [&](std::int64_t k, int) {
    data::throw_if_interrupted();
    outcome.found[static_cast<std::size_t>(k)] =
        method(sequences.row(k), sequences.steps(), sequences.sensors()) / fastest_oscillation;
  });
  outcome.seconds = watch.seconds();
  return outcome;
}

Report run(const Request& request, const Options&) {
  const Sequences sequences = read_sequences(request.input);
  const bool labelled = sequences.target.element_count() > 0;
  Report report;
  TextTable table({"method", "sequences", "RMSE", "sequences/s"});
  const auto add = [&](const char* name, const std::string& prefix, Method method) {
    const Outcome outcome = apply(method, sequences, *request.pool);
    std::string rmse = "-";
    if (labelled) {
      const auto truth = sequences.target.as<float>();
      const RegressionScore found = score(std::vector<double>(truth.begin(), truth.end()), outcome.found);
      report.metrics.push_back({prefix + "rmse", found.rmse, ""});
      rmse = fmt::format("{:.5f}", found.rmse);
    }
    const double rate = static_cast<double>(sequences.count()) / outcome.seconds;
    report.metrics.push_back({prefix + "throughput", rate, "samples/s"});
    table.add_row(
        {name, format_count(static_cast<double>(sequences.count())), rmse, format_count(std::round(rate))});
    return outcome.found;
  };
  add("peak of the Fourier transform", "floor_", peak_periods);
  const std::vector<double> found = add("least-squares sinusoid", "", fit_periods);
  if (!request.output.empty()) {
    data::Hdf5Writer file(request.output);
    file.write("y", Tensor::from<double>({sequences.count()}, found).converted(ElementType::f32));
    file.close();
  }
  report.text = table.to_string();
  return report;
}

}  // namespace

double fit_periods(std::span<const float> x, std::int64_t steps, std::int64_t sensors) {
  const std::vector<Complex> sums = in_phase(x, steps, sensors);
  // The main lobe is two periods wide: an eighth of a period finds its middle.
  constexpr double spacing = 0.125;
  double best = slowest_oscillation;
  for (double periods = slowest_oscillation; periods <= fastest_oscillation; periods += spacing)
    if (strength(sums, periods) > strength(sums, best)) best = periods;
  return highest(sums, std::max(slowest_oscillation, best - spacing),
                 std::min(fastest_oscillation, best + spacing));
}

double peak_periods(std::span<const float> x, std::int64_t steps, std::int64_t sensors) {
  std::vector<Complex> first;
  for (std::int64_t step = 0; step < steps; ++step)
    first.emplace_back(x[static_cast<std::size_t>(step * sensors)]);
  double best = slowest_oscillation;
  for (double periods = slowest_oscillation; periods <= fastest_oscillation; periods += 1)
    if (strength(first, periods) > strength(first, best)) best = periods;
  return best;
}

Entry oscillation_baseline() {
  return {"lstm", "least-squares sinusoid over all sensors; peak of the Fourier transform of one", {}, run};
}

}  // namespace superstep::baseline
