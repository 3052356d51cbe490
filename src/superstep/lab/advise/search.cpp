#include "superstep/lab/advise/search.h"

#include <algorithm>
#include <cmath>

#include "superstep/base/error.h"
#include "superstep/base/system/interrupt.h"
#include "superstep/machine/configuration/resolve.h"

namespace superstep::lab {
namespace {

using machine::Machine;
using machine::Prediction;
using machine::PredictSettings;
using machine::Style;

// A call of an IPU's program runs so many steps, as its users set it (Le 2024: 20); for an answer as soon as
// there is one, one.
constexpr int ipu_device_iterations = 20;
// Larger micro-batches are no longer tried when a doubling has gained less (chosen): it is paid for in
// latency, and IPUs' plans of large batches take long to find.
constexpr double least_gain = 1.03;
// Of the options of one replica, those that are also tried with several (chosen).
constexpr std::size_t replicated_options = 3;

class Search {
 public:
  Search(const Machine& machine, const GraphSource& graph_at, const SearchSettings& settings,
         machine::PredictionsByLaw& known)
      : machine_(machine), graph_at_(graph_at), settings_(settings), known_(known) {
    precisions_ = settings.precisions.empty() ? usual_precisions(machine) : settings.precisions;
  }

  std::vector<Option> run() {
    const bool fits = set_ups();
    for (const std::string& precision : precisions_) one_unit(precision, false);
    if (!any_fits() && settings_.trains)
      for (const std::string& precision : precisions_) one_unit(precision, true);
    if (!any_fits() && !fits)
      for (const std::string& precision : precisions_) pipelines(precision);
    replicate();
    return std::move(options_);
  }

 private:
  bool any_fits() const {
    return std::ranges::any_of(
        options_, [](const Option& option) { return option.prediction.fits && option.set_up.empty(); });
  }

  // Whether one of them fits.
  bool set_ups() {
    bool fits = false;
    machine::Question question = settings_.question;
    question.stated.input_bytes = settings_.input_bytes;
    for (machine::Configuration& one : machine::set_up_configurations(machine_, question)) {
      PredictSettings& chosen = one.settings;
      const bool asked_for = std::ranges::find(precisions_, chosen.precision.name) != precisions_.end();
      if (settings_.fixed_batch > 0 || !asked_for || settings_.goal == Goal::latency) continue;
      const int stages = std::max(1, static_cast<int>(chosen.pipeline.size()));
      const std::int64_t together = chosen.micro_batch * chosen.replicas;
      if (stages * chosen.replicas > settings_.units || together > settings_.most_samples) continue;
      machine::balance_stages(machine_, one, graph_at_);
      chosen.accumulate =
          settings_of(chosen.precision.name, chosen.micro_batch, stages, chosen.replicas).accumulate;
      chosen.device_iterations = ipu_device_iterations;
      chosen.input_bytes = settings_.input_bytes;
      const Option& tried_one = tried(chosen);
      options_.back().set_up = one.facts.empty() ? "" : one.facts.front().source;
      fits = fits || tried_one.prediction.fits;
    }
    return fits;
  }

  PredictSettings settings_of(const std::string& precision, std::int64_t micro_batch, int stages,
                              int replicas) const {
    PredictSettings chosen;
    chosen.precision = machine::precision_from_name(precision);
    chosen.micro_batch = micro_batch;
    chosen.replicas = replicas;
    chosen.input_bytes = settings_.input_bytes;
    const std::int64_t together = micro_batch * replicas;
    // An update sees as many samples as its recipe says, or somewhat fewer; a server fills its pipeline.
    chosen.accumulate =
        settings_.trains ? static_cast<int>(std::max<std::int64_t>(1, settings_.most_samples / together))
                         : (settings_.goal == Goal::latency ? 1 : 4 * stages * (stages > 1) + (stages == 1));
    if (machine_.style() == Style::bulk_synchronous && settings_.goal != Goal::latency)
      chosen.device_iterations = ipu_device_iterations;
    return chosen;
  }

  // Predicts, and keeps what came of it.
  const Option& tried(const PredictSettings& chosen) {
    if (interrupted()) throw Error(ErrorCode::interrupted, "stopped", "advise");
    Option option{.settings = chosen,
                  .prediction = known_.predict(machine_, graph_at_(chosen.micro_batch), chosen)};
    option.prediction.operators.clear();
    option.figure = figure_of(settings_.goal, option.prediction, settings_.context);
    option.within_limits = within_limits(option.prediction);
    return options_.emplace_back(std::move(option));
  }

  bool within_limits(const Prediction& prediction) const {
    if (!prediction.fits) return false;
    const double step = fed_seconds(prediction).value;
    return (settings_.latency_limit <= 0 || step <= settings_.latency_limit) &&
           (settings_.rate_wanted <= 0 || prediction.samples / step >= settings_.rate_wanted);
  }

  std::vector<std::int64_t> micro_batches(int replicas) const {
    if (settings_.fixed_batch > 0) return {settings_.fixed_batch};
    std::vector<std::int64_t> batches;
    for (std::int64_t batch = 1; batch * replicas <= settings_.most_samples; batch *= 2)
      batches.push_back(batch);
    return batches;
  }

  void one_unit(const std::string& precision, bool recompute) {
    double best = 0;
    for (const std::int64_t batch : micro_batches(1)) {
      PredictSettings chosen = settings_of(precision, batch, 1, 1);
      chosen.recompute = recompute;
      const Prediction& found = tried(chosen).prediction;
      if (!found.fits) return;
      const double rate = found.samples / fed_seconds(found).value;
      if (rate < best * least_gain) return;
      best = rate;
    }
  }

  // Of one sample a stage at a time and then more, over as few units as hold it.
  void pipelines(const std::string& precision) {
    for (int stages = 2; stages <= settings_.units; stages *= 2)
      for (const bool recompute : {false, true}) {
        if (recompute && !settings_.trains) continue;
        bool fitted = false;
        for (const std::int64_t batch : micro_batches(1)) {
          if (settings_.trains && batch * stages > settings_.most_samples && batch > 1) break;
          if (!pipeline(precision, batch, stages, recompute)) break;
          fitted = true;
        }
        if (fitted) return;
      }
  }

  bool pipeline(const std::string& precision, std::int64_t batch, int stages, bool recompute) {
    PredictSettings chosen = settings_of(precision, batch, stages, 1);
    chosen.recompute = recompute;
    try {
      chosen.pipeline = machine::balanced_pipeline(machine_, graph_at_(batch), chosen, stages);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::invalid_argument) throw;
      return false;  // fewer layers than stages
    }
    return tried(chosen).prediction.fits;
  }

  // Replicas of the best few, as many as there are units for.
  void replicate() {
    std::vector<Option> chosen = best_few();
    for (const Option& option : chosen) {
      const int stages = option.prediction.units;
      for (int replicas = 2; replicas * stages <= settings_.units; replicas *= 2) {
        if (settings_.trains && option.settings.micro_batch * replicas > settings_.most_samples) break;
        PredictSettings more =
            settings_of(option.settings.precision.name, option.settings.micro_batch, stages, replicas);
        more.pipeline = option.settings.pipeline;
        more.recompute = option.settings.recompute;
        if (!tried(more).prediction.fits) break;
      }
    }
  }

  std::vector<Option> best_few() const {
    std::vector<Option> chosen;
    for (const Option& option : options_)
      if (option.prediction.fits && option.figure.known()) chosen.push_back(option);
    std::ranges::sort(
        chosen, [&](const Option& a, const Option& b) { return better(a.figure, b.figure, settings_.goal); });
    if (chosen.size() > replicated_options) chosen.resize(replicated_options);
    return chosen;
  }

  const Machine& machine_;
  const GraphSource& graph_at_;
  const SearchSettings& settings_;
  machine::PredictionsByLaw& known_;
  std::vector<std::string> precisions_;
  std::vector<Option> options_;
};

}  // namespace

std::vector<std::string> usual_precisions(const Machine& machine) {
  switch (machine.style()) {
    case Style::bulk_synchronous: return {"16.16", "f16", "f32"};
    case Style::kernel_by_kernel:
      if (machine.value("peak_tf32") > 0) return {"mixed", "tf32"};
      return {"mixed", "f32"};
    case Style::spatial_pipeline: return {"bf16", "f32"};
    case Style::static_stream: return {"f16"};
  }
  return {"f32"};
}

bool better(const Figure& a, const Figure& b, Goal goal) {
  return larger_is_better(goal) ? a.value > b.value : a.value < b.value;
}

namespace {

// Wider numbers and smaller batches are easier to live with: of options that differ by no more than this
// share the one of the larger precision is taken, then that of the smaller batch (chosen).
constexpr double no_difference = 0.01;

std::size_t bytes_of(const Option& option) {
  const machine::Precision& precision = option.settings.precision;
  return size_in_bytes(precision.data) + size_in_bytes(precision.partials) + size_in_bytes(precision.weights);
}

bool preferred(const Option& a, const Option& b, Goal goal) {
  const bool alike = std::abs(a.figure.value / b.figure.value - 1) <= no_difference;
  if (!alike) return better(a.figure, b.figure, goal);
  if (bytes_of(a) != bytes_of(b)) return bytes_of(a) > bytes_of(b);
  return a.prediction.samples < b.prediction.samples;
}

}  // namespace

const Option* best_of(const std::vector<Option>& options, Goal goal) {
  const Option* best = nullptr;
  for (const Option& option : options) {
    if (!option.prediction.fits || !option.figure.known()) continue;
    if (best && best->within_limits && !option.within_limits) continue;
    const bool first_within = best && !best->within_limits && option.within_limits;
    if (!best || first_within || better(option.figure, best->figure, goal)) best = &option;
  }
  if (!best) return nullptr;
  const Option* chosen = best;
  for (const Option& option : options)
    if (option.prediction.fits && option.figure.known() && option.within_limits == best->within_limits &&
        std::abs(option.figure.value / best->figure.value - 1) <= no_difference &&
        preferred(option, *chosen, goal))
      chosen = &option;
  return chosen;
}

std::vector<Option> options_on(const Machine& machine, const GraphSource& graph_at,
                               const SearchSettings& settings, machine::PredictionsByLaw& known) {
  return Search(machine, graph_at, settings, known).run();
}

}  // namespace superstep::lab
