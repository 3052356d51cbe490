#include "superstep/lab/advise/by_quality.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <mutex>
#include <nlohmann/json.hpp>

#include "superstep/base/error.h"
#include "superstep/base/file.h"
#include "superstep/base/json.h"
#include "superstep/base/progress.h"
#include "superstep/base/text.h"
#include "superstep/base/thread_pool.h"
#include "superstep/lab/advise/shared_batch.h"
#include "superstep/record/member.h"
#include "superstep/run/model.h"

namespace superstep::lab {
namespace {

namespace fs = std::filesystem;

constexpr const char* schema = "superstep-quality-study/1";

// The trainings of one batch and precision.
struct Seeds {
  std::vector<double> steps;
  double low = 0, high = 0;
  int all = 0;
};

using ByBatch = std::map<std::pair<std::string, std::int64_t>, Seeds>;

ByBatch seeds_of(const nlohmann::json& trainings) {
  ByBatch by;
  for (const nlohmann::json& each : trainings) {
    Seeds& seeds = by[{record::text_member(each, "precision", ""), record::integer_member(each, "batch", 0)}];
    ++seeds.all;
    if (record::text_member(each, "ending", "") != "reached") continue;
    const double low = record::number_member(each, "steps_low", 0);
    seeds.low = seeds.steps.empty() ? low : std::min(seeds.low, low);
    seeds.high = std::max(seeds.high, record::number_member(each, "steps_high", 0));
    seeds.steps.push_back(record::number_member(each, "steps", 0));
  }
  return by;
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

nlohmann::json read(const fs::path& file, const std::string& workload) {
  const nlohmann::json json = parse_json(read_text_file(file));
  if (!json.is_object() || record::text_member(json, "schema", "") != schema || !json.contains("trainings"))
    throw Error(ErrorCode::bad_file, "is no result of superstep study quality", file.string());
  if (const std::string other = record::text_member(json, "workload", "?"); other != workload)
    throw Error(ErrorCode::invalid_argument, fmt::format("is of {}, not of {}", other, workload),
                file.string());
  return json;
}

// Whether the steps that were measured in one precision are those of a machine's: of as many bits.
bool stands_for(const std::string& measured, const std::string& precision) {
  const bool single = precision == "f32" || precision == "tf32";
  return single == (measured == "f32");
}

// Those that the machine computes in and something was measured for, in the machine's order.
std::vector<std::string> precisions_for(const machine::Machine& machine, const AdviseSettings& settings,
                                        const std::string& measured) {
  std::vector<std::string> names =
      settings.precisions.empty() ? usual_precisions(machine) : settings.precisions;
  std::erase_if(names, [&](const std::string& name) {
    return !machine.computes_in(name) || !stands_for(measured, name);
  });
  return names;
}

class Ranking {
 public:
  Ranking(const AdviseSettings& settings, const QualityCurve& curve)
      : settings_(settings), curve_(curve), model_(settings.model), graphs_(model_, true) {}

  QualityAdvice on(const machine::Machine& machine) {
    QualityAdvice advice{.machine = machine};
    if (settings_.goal == Goal::cost && price_of(machine) == 0) {
      advice.words = fmt::format("no price given (--price {}=...)", machine.id());
      return advice;
    }
    if (machine.processor()) {
      advice.words = "a processor: superstep study quality measures its time itself";
      return advice;
    }
    for (const QualityPoint& point : curve_.points)
      for (const std::string& precision : precisions_for(machine, settings_, point.precision))
        for (int units = 1; units <= settings_.units; units *= 2) add(advice, point, precision, units);
    find_best(advice);
    return advice;
  }

 private:
  double price_of(const machine::Machine& machine) const {
    const auto found = settings_.prices.find(machine.id());
    return found == settings_.prices.end() ? 0 : found->second;
  }

  double power_of(const machine::Machine& machine) const {
    const auto found = settings_.powers.find(machine.id());
    return found == settings_.powers.end() ? machine.value("power") : found->second;
  }

  void add(QualityAdvice& advice, const QualityPoint& point, const std::string& precision, int units) {
    if (point.batch % units != 0) return;
    try {
      const machine::Prediction prediction = predict_shared(advice.machine, model_, graphs_,
                                                            {.precision = precision,
                                                             .batch = point.batch,
                                                             .units = units,
                                                             .input_bytes = settings_.input_bytes});
      require_possible(prediction);
      advice.options.push_back(option(advice.machine, point, precision, units, prediction));
    } catch (const Error& error) {
      if (error.code() == ErrorCode::interrupted) throw;
      advice.words = error.message();  // of the last; told where no option is left
    }
  }

  QualityOption option(const machine::Machine& machine, const QualityPoint& point,
                       const std::string& precision, int units, const machine::Prediction& prediction) const {
    const Figure step = fed_seconds(prediction);
    const auto scaled = [](const Figure& figure, double factor) {
      return Figure{figure.value * factor, figure.low * factor, figure.high * factor};
    };
    constexpr double seconds_an_hour = 3600;
    const Figure seconds{point.steps * step.value, point.low * step.low, point.high * step.high};
    return {.precision = precision,
            .measured_in = point.precision,
            .units = units,
            .batch = point.batch,
            .seconds = seconds,
            .joules = scaled(seconds, power_of(machine) * units),
            .money = scaled(seconds, price_of(machine) * units / seconds_an_hour),
            .bound = prediction.bound_by()};
  }

  void find_best(QualityAdvice& advice) const {
    for (std::size_t i = 0; i < advice.options.size(); ++i) {
      const double value = figure_of(settings_.goal, advice.options[i]).value;
      if (advice.best < 0 ||
          value < figure_of(settings_.goal, advice.options[static_cast<std::size_t>(advice.best)]).value)
        advice.best = static_cast<int>(i);
    }
    if (advice.best < 0 && advice.words.empty())
      advice.words = "nothing was measured in a precision of its own";
  }

  const AdviseSettings& settings_;
  const QualityCurve& curve_;
  run::Model model_;
  GraphsByBatch graphs_;
};

const QualityOption& best_of(const QualityAdvice& advice) {
  return advice.options[static_cast<std::size_t>(advice.best)];
}

// Less is better in all three.
void rank(std::vector<QualityAdvice>& machines, Goal goal) {
  const auto figure = [&](const QualityAdvice& advice) { return figure_of(goal, best_of(advice)); };
  std::ranges::stable_sort(machines, [&](const QualityAdvice& a, const QualityAdvice& b) {
    if ((a.best < 0) != (b.best < 0)) return b.best < 0;
    return a.best >= 0 && figure(a).value < figure(b).value;
  });
  for (QualityAdvice& one : machines) {
    if (one.best < 0) continue;
    one.first_place = 1;
    for (const QualityAdvice& other : machines) {
      if (other.best < 0) continue;
      one.first_place += figure(other).high < figure(one).low ? 1 : 0;
      one.last_place += figure(one).high < figure(other).low ? 0 : 1;
    }
  }
}

void require_counted(const AdviseSettings& settings, const QualityCurve& curve) {
  if (settings.goal == Goal::cost && settings.prices.empty())
    throw Error(ErrorCode::invalid_argument, "costs are counted from prices, and none is given", "--for cost",
                "give --price MACHINE=PRICE of a unit-hour, for each machine that you can have");
  if (curve.points.empty())
    throw Error(ErrorCode::invalid_argument, "no batch reached its target with every seed", curve.source,
                "measure again with more --epochs, or an easier --until");
}

}  // namespace

QualityCurve read_quality_curve(const fs::path& path, const std::string& workload) {
  const fs::path file = fs::is_directory(path) ? path / "results.json" : path;
  const nlohmann::json json = read(file, workload);
  QualityCurve curve{.workload = workload,
                     .until = record::text_member(json, "until", "?"),
                     .source = file.string(),
                     .points = {},
                     .left_out = {}};
  for (const auto& [key, seeds] : seeds_of(json["trainings"])) {
    const auto& [precision, batch] = key;
    if (static_cast<int>(seeds.steps.size()) < seeds.all || batch < 1 || !(seeds.low > 0 || seeds.high > 0))
      curve.left_out.push_back(fmt::format("{}, batch {}: {} of {} seeds reached it", precision, batch,
                                           seeds.steps.size(), seeds.all));
    else
      curve.points.push_back({.precision = precision,
                              .batch = batch,
                              .steps = median(seeds.steps),
                              .low = seeds.low,
                              .high = seeds.high,
                              .seeds = seeds.all});
  }
  if (curve.points.empty())
    throw Error(ErrorCode::invalid_argument, "no batch reached its target with every seed", curve.source,
                "measure again with more --epochs, or an easier --until");
  return curve;
}

const Figure& figure_of(Goal goal, const QualityOption& option) {
  return goal == Goal::energy ? option.joules : goal == Goal::cost ? option.money : option.seconds;
}

std::vector<QualityAdvice> advise_by_quality(const AdviseSettings& settings, const QualityCurve& curve) {
  require_counted(settings, curve);
  std::vector<machine::Machine> asked;
  for (const std::string& name : settings.machines) asked.push_back(machine::find_machine(name));
  if (asked.empty()) asked = machine::machines();
  asked = driven_by(settings.stack, std::move(asked), !settings.machines.empty());
  Ranking ranking(settings, curve);
  std::vector<QualityAdvice> machines(asked.size(), QualityAdvice{.machine = asked.front()});
  Progress progress = Progress::passing("advise", static_cast<double>(asked.size()), "machines");
  ThreadPool pool(settings.threads);
  std::mutex mutex;
  double done = 0;
  pool.parallel_for(static_cast<std::int64_t>(asked.size()), [&](std::int64_t item, int) {
    const auto i = static_cast<std::size_t>(item);
    machines[i] = ranking.on(asked[i]);
    const std::lock_guard lock(mutex);
    progress.update(++done, asked[i].id());
  });
  progress.finish();
  rank(machines, settings.goal);
  return machines;
}

}  // namespace superstep::lab
