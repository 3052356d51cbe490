#include "superstep/lab/ranks/overlap_bench.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>

#include "superstep/base/error.h"
#include "superstep/base/system/interrupt.h"
#include "superstep/base/text.h"
#include "superstep/lab/measure/clock.h"
#include "superstep/lab/measure/quantities.h"

namespace superstep::lab {
namespace {

enum Contender : std::size_t { alone, library_after, library_beside, ours_after, ours_beside, contenders };

constexpr std::array<const char*, contenders> names{"without_exchange", "library_after", "library_overlapped",
                                                    "ours_after", "ours_overlapped"};

constexpr int turn = 5;  // timed steps of a contender before the next one has its turn

// Makes a range of gradients: rank + 1 after arithmetic that no compiler can leave out.
void make_gradients(std::span<float> gradients, int rank, int multiplications) {
  const auto value = static_cast<float>(rank + 1);
  volatile float opaque = 0.5f;
  const float factor = opaque, term = value * (1 - factor);
  // x / 2 + value / 2 has `value` as its fixed point: exact in every round.
  for (float& gradient : gradients) gradient = value;
  constexpr std::size_t block_values = 1024;  // 4 kB: within the first-level cache
  for (int i = 0; i < multiplications; ++i)
    for (std::size_t at = 0; at < gradients.size(); at += block_values) {
      const auto block = gradients.subspan(at, std::min(block_values, gradients.size() - at));
      for (float& gradient : block) gradient = gradient * factor + term;
    }
}

class Step {
 public:
  Step(run::Communicator& world, const OverlapSettings& settings, std::int64_t bytes)
      : world_(world), settings_(settings) {
    const std::size_t values = static_cast<std::size_t>(bytes) / sizeof(float);
    for (std::size_t end = values; end > 0;) {
      const std::size_t count = std::min(end, settings.range_values);
      end -= count;
      ranges_.push_back({end, count});
    }
    ours_ = world.range_means(values, ranges_);
    library_ = world.range_means(values, ranges_, run::SumOrder::library);
  }

  // s of the slowest rank.
  double time(Contender contender) {
    world_.barrier();
    const double begun = steady_clock().seconds();
    run(contender);
    return world_.maximum(steady_clock().seconds() - begun);
  }

  double count_wrong(Contender contender) {
    if (contender == alone) return 0;
    const float mean = static_cast<float>(world_.size() + 1) / 2;
    const auto values = means(contender).values();
    // A sum over ranks in another order: some ten roundings of f32.
    return world_.maximum(static_cast<double>(
        std::ranges::count_if(values, [&](float value) { return std::abs(value - mean) > 1e-6f * mean; })));
  }

 private:
  run::RangeMeans& means(Contender contender) {
    return contender == library_after || contender == library_beside ? *library_ : *ours_;
  }

  void run(Contender contender) {
    run::RangeMeans& exchange = means(contender);
    const bool beside = contender == ours_beside || contender == library_beside;
    exchange.begin();
    for (std::size_t r = 0; r < ranges_.size(); ++r) {
      make_gradients(exchange.values().subspan(ranges_[r].begin, ranges_[r].count), world_.rank(),
                     settings_.multiplications);
      if (!beside) continue;
      exchange.ready(r);
      exchange.progress();
    }
    if (contender == library_after) return average_by_library(exchange.values());
    if (contender == ours_after)
      for (std::size_t r = 0; r < ranges_.size(); ++r) exchange.ready(r);
    if (contender != alone) exchange.finish();
  }

  void average_by_library(std::span<float> values) {
    world_.sum(values, run::SumOrder::library);
    const float share = 1.0f / static_cast<float>(world_.size());
    for (float& value : values) value *= share;
  }

  run::Communicator& world_;
  const OverlapSettings& settings_;
  std::vector<target::ValueRange> ranges_;
  std::unique_ptr<run::RangeMeans> ours_, library_;
};

record::Result measure(run::Communicator& world, const OverlapSettings& settings, std::int64_t bytes) {
  Step step(world, settings, bytes);
  std::array<Measurement, contenders> measurements;
  double wrong = 0;
  for (int done = 0; done < settings.iterations; done += turn)
    for (std::size_t k = 0; k < contenders; ++k) {
      if (world.any(interrupted())) throw Error(ErrorCode::interrupted, "while measuring the exchange");
      const auto contender = static_cast<Contender>(k);
      step.time(contender);  // the others have left its memory in other caches
      for (int i = done; i < std::min(done + turn, settings.iterations); ++i)
        measurements[k].samples.push_back(step.time(contender));
      wrong += step.count_wrong(contender);
    }
  record::Result result{.command = "bench", .workload = "gradients", .mode = "overlap"};
  result.id = fmt::format("gradients-{}-{}", bytes, world.size());
  result.units = world.size();
  result.parameters = {{"bytes", bytes}, {"multiplications", settings.multiplications}};
  result.config = {{"ranks", world.size()},
                   {"range_bytes", settings.range_values * sizeof(float)},
                   {"road", world.road()}};
  for (std::size_t k = 0; k < contenders; ++k) {
    measurements[k].summary = record::summarize(measurements[k].samples);
    measurements[k].flags = flags_of(measurements[k].summary, settings.iterations);
    result.quantities.push_back(time_quantity(std::string(names[k]) + "_time", measurements[k]));
  }
  result.add("wrong", wrong, "");
  return result;
}

double fastest(const record::Quantity& quantity) { return std::ranges::min(quantity.samples); }

}  // namespace

std::vector<record::Result> bench_overlap(run::Communicator& world, const OverlapSettings& settings) {
  std::vector<record::Result> results;
  for (const std::int64_t bytes : settings.sizes) results.push_back(measure(world, settings, bytes));
  return results;
}

std::string overlap_table(const std::vector<record::Result>& results) {
  TextTable table({"gradients", "step alone", "library after", "library beside", "ours after", "ours beside",
                   "library after / ours beside", "wrong"});
  for (const record::Result& result : results) {
    const record::Quantity& base = *result.find("without_exchange_time");
    std::vector<std::string> row{format_bytes(result.parameters["bytes"].get<double>()),
                                 format_seconds(base.value)};
    for (std::size_t k = library_after; k < contenders; ++k) {
      const record::Quantity& time = *result.find(std::string(names[k]) + "_time");
      row.push_back(fmt::format("+{} (+{})", format_seconds(std::max(0.0, time.value - base.value)),
                                format_seconds(std::max(0.0, fastest(time) - fastest(base)))));
    }
    const record::Quantity &theirs = *result.find("library_after_time"),
                           &ours = *result.find("ours_overlapped_time");
    row.push_back(fmt::format("{:.3f} ({:.3f})", theirs.value / ours.value, fastest(theirs) / fastest(ours)));
    row.push_back(fmt::format("{:g}", result.find("wrong")->value));
    table.add_row(row);
  }
  return table.to_string();
}

}  // namespace superstep::lab
