#include "superstep/physics/returns.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "superstep/base/random.h"
#include "superstep/physics/row_writer.h"
#include "superstep/physics/sample_memory.h"

namespace superstep::data {
namespace {

struct Row {
  std::vector<double> lags;
  ReturnStep next;
  std::uint64_t series;
  int time;
};

const std::vector<Field>& return_fields() {
  static const std::vector<Field> fields = {
      {"x", ElementType::f32, {lag_count}, "", "the returns before, the last one first"},
      {"y", ElementType::f32, {}, "", "the next return: the label"},
      {"expected", ElementType::f32, {}, "", "mean of y given all before, by the true model"},
      {"deviation", ElementType::f32, {}, "", "standard deviation of y given all before, by the true model"},
      {"series", ElementType::i64, {}, "", "number of the series: split by it, or by time"},
      {"time", ElementType::i32, {}, "", "place of the row in its series"},
  };
  return fields;
}

class ReturnGenerator final : public Generator {
 public:
  ReturnGenerator(const ReturnModel& model, int rows) : model_(model), rows_(rows) {}

  std::string_view name() const override { return "mcmc"; }
  int version() const override { return 1; }
  std::span<const Field> fields() const override { return return_fields(); }

  void sample(std::uint64_t seed, std::uint64_t index, std::span<std::byte* const> out) const override {
    const Row made = row(seed, index);
    put_all<float>(out[0], made.lags);
    put(out[1], static_cast<float>(made.next.value));
    put(out[2], static_cast<float>(made.next.expected));
    put(out[3], static_cast<float>(made.next.deviation));
    put(out[4], static_cast<std::int64_t>(made.series));
    put(out[5], static_cast<std::int32_t>(made.time));
  }

  nlohmann::json parameters() const override {
    return {{"mean", model_.mean},   {"ar", model_.ar},     {"omega", model_.omega},
            {"alpha", model_.alpha}, {"beta", model_.beta}, {"rows_a_series", rows_}};
  }

  void write(const WriteRequest& request) const override {
    if (!is_table_path(request.path)) return Generator::write(request);
    std::vector<std::string> header = {"series", "time", "y", "expected", "deviation"};
    for (int lag = 1; lag <= lag_count; ++lag) header.push_back(fmt::format("lag_{}", lag));
    write_rows(request, header, [&](std::uint64_t index) {
      const Row made = row(request.seed, index);
      std::vector<std::string> cells = {std::to_string(made.series), std::to_string(made.time)};
      for (const double value : {made.next.value, made.next.expected, made.next.deviation})
        cells.push_back(number_text(static_cast<float>(value)));
      for (const double lag : made.lags) cells.push_back(number_text(static_cast<float>(lag)));
      return cells;
    });
  }

 private:
  // A series is made anew up to the row, which costs some microseconds.
  Row row(std::uint64_t seed, std::uint64_t index) const {
    Row made;
    made.series = index / static_cast<std::uint64_t>(rows_);
    made.time = static_cast<int>(index % static_cast<std::uint64_t>(rows_));
    const std::vector<ReturnStep> steps = return_series(model_, seed, made.series, made.time + lag_count + 1);
    made.next = steps.back();
    for (std::size_t lag = 1; lag <= lag_count; ++lag)
      made.lags.push_back(steps[steps.size() - 1 - lag].value);
    return made;
  }

  ReturnModel model_;
  int rows_;
};

std::vector<OptionSpec> return_options() {
  return {
      {"mean", "5e-4", "mean return"},
      {"ar", "0.2", "how much of a return carries over to the next, -1 to 1"},
      {"omega", "2e-6", "constant of the variance"},
      {"alpha", "0.08", "weight of the last squared noise in the variance"},
      {"beta", "0.9", "weight of the last variance; alpha + beta below 1"},
      {"rows", "700", "rows of each series"},
  };
}

std::unique_ptr<Generator> make_return_generator(const Options& options) {
  ReturnModel model{options.number("mean", -1, 1), options.number("ar", -0.999, 0.999),
                    options.number("omega", 1e-12, 1), options.number("alpha", 0, 1),
                    options.number("beta", 0, 1)};
  if (!(model.alpha + model.beta < 1))
    throw Error(ErrorCode::invalid_argument, "alpha + beta is not below 1: the variance has no bound",
                "options alpha, beta");
  return std::make_unique<ReturnGenerator>(model, static_cast<int>(options.integer("rows", 1, 10'000'000)));
}

}  // namespace

double ReturnModel::noise_kurtosis() const {
  const double both = (alpha + beta) * (alpha + beta);
  return 3 * (1 - both) / (1 - both - 2 * alpha * alpha);
}

std::vector<ReturnStep> return_series(const ReturnModel& model, std::uint64_t seed, std::uint64_t series,
                                      int count) {
  constexpr int start = 500;
  RandomStream random(seed, series);
  std::vector<ReturnStep> steps;
  double value = model.mean, noise_square = model.noise_variance(), variance = model.noise_variance();
  for (int t = 0; t < start + count; ++t) {
    variance = model.omega + model.alpha * noise_square + model.beta * variance;
    const double expected = model.mean + model.ar * (value - model.mean), deviation = std::sqrt(variance);
    const double noise = deviation * random.normal();
    noise_square = noise * noise;
    value = expected + noise;
    if (t >= start) steps.push_back({value, expected, deviation});
  }
  return steps;
}

GeneratorEntry mcmc_generator() {
  return {"mcmc", "returns with autocorrelation and changing volatility: AR(1) and GARCH(1,1)",
          return_options(), make_return_generator};
}

}  // namespace superstep::data
