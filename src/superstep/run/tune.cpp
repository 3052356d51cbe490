#include "superstep/run/tune.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <limits>
#include <nlohmann/json.hpp>

#include "superstep/base/error.h"
#include "superstep/base/stopwatch.h"
#include "superstep/base/system/interrupt.h"
#include "superstep/base/system/standard_streams.h"
#include "superstep/base/text.h"
#include "superstep/graph/text.h"
#include "superstep/record/environment.h"
#include "superstep/target/ports.h"

namespace superstep::run {
namespace {

using nlohmann::json;
constexpr double hopeless = 1.5;  // times the best

std::string processor_name() {
  const json host = record::environment_record(1).value("host", json::object());
  return host.contains("processor") && host["processor"].is_string() ? host["processor"].get<std::string>()
                                                                     : std::string("unknown processor");
}

std::optional<TuneCandidate> candidate_from(const json& entry) {
  if (!entry.is_object()) return std::nullopt;
  const auto whole = [&](const char* name) -> std::int64_t {
    return entry.contains(name) && entry[name].is_number_integer() ? entry[name].get<std::int64_t>() : 0;
  };
  const std::int64_t micro_batch = whole("micro_batch"), threads = whole("threads");
  if (micro_batch < 1 || threads < 1 || threads > 4096) return std::nullopt;
  const bool timed = entry.contains("seconds") && entry["seconds"].is_number();
  return TuneCandidate{micro_batch, static_cast<int>(threads), timed ? entry["seconds"].get<double>() : 0.0};
}

std::string describe(const TuneCandidate& candidate) {
  return fmt::format("{}, {}: {}", candidate.micro_batch, candidate.threads,
                     format_seconds(candidate.seconds));
}

// One candidate, compiled, with inputs and outputs of its own.
class Contender {
 public:
  Contender(const target::Target& target, const target::GraphAtBatch& model, target::CompileOptions options,
            const TuneCandidate& candidate, FunctionRef<void(std::span<Tensor> inputs)> fill)
      : result(candidate) {
    options.micro_batch = candidate.micro_batch;
    options.threads = candidate.threads;
    executable_ = target.compile(model, options);
    for (const auto& port : executable_->inputs()) inputs_.emplace_back(port.type.element, port.type.shape);
    for (const auto& port : executable_->outputs()) outputs_.emplace_back(port.type.element, port.type.shape);
    fill(inputs_);
    result.seconds = std::numeric_limits<double>::infinity();
    run();
  }

  double run() {
    const Stopwatch watch;
    executable_->run(inputs_, outputs_);
    return watch.seconds();
  }
  double timed_run() {
    const double seconds = run();
    result.seconds = std::min(result.seconds, seconds);
    return seconds;
  }

  TuneCandidate result;

 private:
  std::unique_ptr<target::Executable> executable_;
  std::vector<Tensor> inputs_, outputs_;
};

// Rounds of one run each until the time is over; who is far behind drops out.
void race(std::vector<std::unique_ptr<Contender>>& contenders, const TuneOptions& options) {
  std::vector<Contender*> running;
  for (const auto& contender : contenders) running.push_back(contender.get());
  double spent = 0;
  for (int round = 0; round < options.fewest_rounds || spent < options.seconds; ++round) {
    if (interrupted()) throw Error(ErrorCode::interrupted, "stopped while tuning");
    for (Contender* contender : running) spent += contender->timed_run();
    const double best = (*std::ranges::min_element(running, {}, [](const Contender* contender) {
                          return contender->result.seconds;
                        }))->result.seconds;
    if (round + 1 < options.fewest_rounds) continue;
    std::erase_if(running,
                  [&](const Contender* contender) { return contender->result.seconds > hopeless * best; });
    if (running.size() == 1) return;
  }
}

// A cache that cannot be written costs the next run a search, and this one nothing.
void remember(TuningCache& cache, const std::string& key, const TuneCandidate& chosen) {
  try {
    cache.add(key, chosen);
  } catch (const Error& error) {
    tell(fmt::format("superstep: note: what was tuned is not remembered: {}\n", error.what()));
  }
}

}  // namespace

std::string to_string(const Tuning& tuning) {
  std::string text =
      fmt::format("tuned{}: micro-batch {}, {} threads, {}", tuning.cached ? " before" : "",
                  tuning.chosen.micro_batch, tuning.chosen.threads, format_seconds(tuning.chosen.seconds));
  std::string others;
  for (const TuneCandidate& candidate : tuning.tried)
    if (!(candidate == tuning.chosen)) others += (others.empty() ? "" : "; ") + describe(candidate);
  return others.empty() ? text : fmt::format("{} ({})", text, others);
}

std::string tuning_key(const graph::Graph& graph, std::string_view target, const target::PlanSummary& plan) {
  std::string what = fmt::format("{}\n{}\n{}\n{} {} {}\n", graph::to_text(graph, {.data = false}), target,
                                 processor_name(), plan.batch, plan.micro_batch, plan.threads);
  for (const target::PlanStep& step : plan.steps) what += fmt::format("{} {}\n", step.op, step.kernel);
  return short_key(what);
}

std::optional<TuneCandidate> TuningCache::find(const std::string& key) const {
  const std::optional<json> found = entries_.find(key);
  return found ? candidate_from(*found) : std::nullopt;
}

void TuningCache::add(const std::string& key, const TuneCandidate& chosen) {
  entries_.add(
      key, {{"micro_batch", chosen.micro_batch}, {"threads", chosen.threads}, {"seconds", chosen.seconds}});
}

std::vector<TuneCandidate> tune_candidates(std::int64_t batch, std::int64_t chosen, int threads,
                                           bool splits) {
  std::vector<TuneCandidate> candidates{{chosen, threads}};
  const auto add = [&](std::int64_t micro_batch, int count) {
    const TuneCandidate candidate{micro_batch, count};
    if (std::ranges::find(candidates, candidate) == candidates.end()) candidates.push_back(candidate);
  };
  for (const std::int64_t factor : {2, 4}) {
    if (!splits) break;
    std::int64_t smaller = std::max<std::int64_t>(1, chosen / factor), larger = chosen * factor;
    while (batch % smaller != 0) --smaller;
    while (larger < batch && batch % larger != 0) ++larger;
    add(smaller, threads);
    if (larger <= std::min(batch, 2 * factor * chosen)) add(larger, threads);
  }
  for (int fewer = threads / 2; fewer >= 1; fewer /= 2) add(chosen, fewer);
  return candidates;
}

Tuning tune(const target::Target& target, const target::GraphAtBatch& model,
            const target::CompileOptions& options, FunctionRef<void(std::span<Tensor> inputs)> fill,
            TuningCache& cache, const TuneOptions& tune_options) {
  const target::PlanSummary plan = target.compile(model, options)->summary();
  const std::string key = tuning_key(model(options.batch), target.name(), plan);
  if (const auto found = cache.find(key);
      found && options.batch % found->micro_batch == 0 && found->threads <= options.threads)
    return {.chosen = *found, .tried = {}, .cached = true};
  const bool splits = target::batched_ports(model, options.batch).splits;
  std::vector<std::unique_ptr<Contender>> contenders;
  for (const TuneCandidate& candidate :
       tune_candidates(options.batch, plan.micro_batch, options.threads, splits))
    contenders.push_back(std::make_unique<Contender>(target, model, options, candidate, fill));
  race(contenders, tune_options);
  Tuning tuning;
  for (const auto& contender : contenders) tuning.tried.push_back(contender->result);
  tuning.chosen = *std::ranges::min_element(tuning.tried, {}, &TuneCandidate::seconds);
  remember(cache, key, tuning.chosen);
  return tuning;
}

}  // namespace superstep::run
