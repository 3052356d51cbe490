#include "superstep/machine/configuration/search.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "superstep/base/error.h"
#include "superstep/base/system/interrupt.h"

namespace superstep::machine {
namespace {

// A doubling of the micro-batch that gains less is not worth its memory; nor is one beyond so many samples
// (chosen, as advise has them).
constexpr double least_gain = 1.03;
constexpr std::int64_t largest_micro_batch = 1024;
// Whoever tunes by hand is within this share of the best (chosen).
constexpr double fair_share = 0.5;
constexpr std::size_t most_plausible = 12;
// Micro-batches a stage and step that keep a pipeline from draining, where nothing says more (chosen).
constexpr int micro_batches_a_stage = 4;

struct Tried {
  Configuration configuration;
  double rate = 0;  // samples/s of all units, with data
};

class Search {
 public:
  Search(const Machine& machine, const Question& question, const Configuration& start,
         const GraphAt& graph_at)
      : machine_(machine), question_(question), start_(start), graph_at_(graph_at) {}

  std::vector<Configuration> run() {
    const bool cut = question_.stated.stages > 0 || !question_.stated.pipeline.empty();
    for (const bool beside : {false, true}) {
      if (beside && !may_keep_state_beside()) break;
      for (const bool recompute : recomputations()) {
        if (cut) {
          with_stages(static_cast<int>(stated_stages()), recompute, beside);
        } else {
          with_stages(1, recompute, beside);
        }
        if (!found_.empty()) return fair();
      }
      if (cut || question_.stated.replicas > 0) continue;
      for (int stages = 2; stages <= units(); ++stages) {
        if (units() % stages != 0) continue;  // no unit is left over
        for (const bool recompute : recomputations()) {
          with_stages(stages, recompute, beside);
          if (!found_.empty()) return fair();
        }
      }
    }
    return {};
  }

 private:
  int units() const { return std::max(1, question_.stated.units); }
  std::size_t stated_stages() const {
    return std::max<std::size_t>(question_.stated.pipeline.size(),
                                 static_cast<std::size_t>(question_.stated.stages));
  }
  bool may_keep_state_beside() const {
    return question_.training && cost_model(machine_)->streaming_capacity() > 0;
  }
  std::vector<bool> recomputations() const {
    if (question_.stated.recompute) return {*question_.stated.recompute};
    return question_.training ? std::vector<bool>{false, true} : std::vector<bool>{false};
  }

  int replicas_of(int stages) const {
    return question_.stated.replicas > 0 ? question_.stated.replicas : std::max(1, units() / stages);
  }

  int accumulate_of(std::int64_t micro, int stages) const {
    const Stated& stated = question_.stated;
    if (stated.accumulate > 0) return stated.accumulate;
    if (stated.global_batch > 0)
      return static_cast<int>(std::max<std::int64_t>(1, stated.global_batch / micro / replicas_of(stages)));
    return stages > 1 ? micro_batches_a_stage * stages : 1;
  }

  std::vector<std::int64_t> micro_batches(int stages) const {
    const std::int64_t fixed =
        question_.stated.micro_batch > 0 ? question_.stated.micro_batch : question_.fixed_batch;
    if (fixed > 0) return {fixed};
    std::int64_t most = largest_micro_batch;
    if (question_.stated.global_batch > 0)
      most = std::max<std::int64_t>(
          1, question_.stated.global_batch / replicas_of(stages) / std::max(1, question_.stated.accumulate));
    std::vector<std::int64_t> batches;
    for (std::int64_t batch = 1; batch <= most; batch *= 2) batches.push_back(batch);
    if (question_.stated.global_batch > 0 && batches.back() != most && most <= largest_micro_batch)
      batches.push_back(most);
    return batches;
  }

  // Micro-batches in steps of four, as far as they fit and gain; then those beside the best.
  void with_stages(int stages, bool recompute, bool beside) {
    const std::vector<std::int64_t> batches = micro_batches(stages);
    double best = 0;
    std::size_t best_at = 0;
    const auto tried = [&](std::size_t at) {
      std::optional<Tried> found = try_one(batches[at], stages, recompute, beside);
      const double rate = found ? found->rate : 0;
      if (found) found_.push_back(std::move(*found));
      return rate;
    };
    std::size_t at = 0;
    for (; at < batches.size(); at += 2) {
      const double rate = tried(at);
      if (rate <= 0) break;
      const bool gains = rate >= best * least_gain;
      if (rate > best) best = rate, best_at = at;
      if (!gains) break;
    }
    if (best <= 0) return;
    if (best_at + 1 < batches.size()) tried(best_at + 1);
    if (best_at > 0) tried(best_at - 1);
  }

  std::optional<Tried> try_one(std::int64_t micro, int stages, bool recompute, bool beside) const {
    if (interrupted()) throw Error(ErrorCode::interrupted, "while configurations were searched");
    Configuration configuration = start_;
    PredictSettings& settings = configuration.settings;
    settings.micro_batch = micro;
    settings.replicas = replicas_of(stages);
    settings.accumulate = accumulate_of(micro, stages);
    settings.recompute = recompute;
    settings.optimizer_off_chip = settings.optimizer_off_chip || beside;
    if (!set_pipeline(settings, stages)) return std::nullopt;
    const Prediction found = predict(machine_, graph_at_(micro), settings);
    if (!found.fits || !found.unsupported.empty()) return std::nullopt;
    add_words(configuration, stages, beside);
    return Tried{std::move(configuration), found.throughput_with_data()};
  }

  bool set_pipeline(PredictSettings& settings, int stages) const {
    settings.pipeline = question_.stated.pipeline;
    settings.chips = question_.stated.chips;
    if (stages < 2 || !settings.pipeline.empty()) return true;
    try {
      settings.pipeline = balanced_pipeline(machine_, graph_at_(settings.micro_batch), settings, stages);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::invalid_argument) throw;
      return false;  // fewer layers than stages
    }
    return true;
  }

  void add_words(Configuration& configuration, int stages, bool beside) const {
    const PredictSettings& settings = configuration.settings;
    const auto add = [&](const std::string& what) { configuration.facts.push_back({what, "searched"}); };
    if (question_.stated.micro_batch == 0 && question_.fixed_batch == 0)
      add(fmt::format("micro-batch {}", settings.micro_batch));
    if (question_.stated.accumulate == 0 && settings.accumulate > 1)
      add(fmt::format("{} accumulated", settings.accumulate));
    if (stages > 1 && question_.stated.pipeline.empty()) add(fmt::format("{} balanced stages", stages));
    if (settings.recompute && !question_.stated.recompute) add("recomputed, as it fits so alone");
    if (beside) add("the optimizer's state beside the chip, as it fits so alone");
  }

  std::vector<Configuration> fair() {
    std::ranges::stable_sort(found_, [](const Tried& a, const Tried& b) { return a.rate > b.rate; });
    std::vector<Configuration> configurations;
    for (const Tried& tried : found_)
      if (tried.rate >= fair_share * found_.front().rate && configurations.size() < most_plausible)
        configurations.push_back(tried.configuration);
    return configurations;
  }

  const Machine& machine_;
  const Question& question_;
  const Configuration& start_;
  const GraphAt& graph_at_;
  std::vector<Tried> found_;
};

}  // namespace

std::vector<Configuration> searched_configurations(const Machine& machine, const Question& question,
                                                   const Configuration& start, const GraphAt& graph_at) {
  return Search(machine, question, start, graph_at).run();
}

}  // namespace superstep::machine
