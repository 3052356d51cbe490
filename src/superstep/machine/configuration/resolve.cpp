#include "superstep/machine/configuration/resolve.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "superstep/base/error.h"
#include "superstep/base/text.h"
#include "superstep/machine/configuration/search.h"
#include "superstep/machine/configuration/set_ups.h"

namespace superstep::machine {
namespace {

std::int64_t stated_micro_batch(const Question& question) {
  return question.stated.micro_batch > 0 ? question.stated.micro_batch : question.fixed_batch;
}

// Stages that the question itself says: of its pipeline, or of the units that a replica has. A machine that
// runs kernel by kernel shares a model out in other ways.
int stated_stages(const Machine& machine, const Stated& stated) {
  if (!stated.chips.empty()) return std::ranges::max(stated.chips) + 1;
  if (!stated.pipeline.empty()) return static_cast<int>(stated.pipeline.size());
  if (stated.stages > 0) return stated.stages;
  const bool in_stages = machine.style() == Style::bulk_synchronous;
  if (in_stages && stated.replicas > 0 && stated.units > stated.replicas &&
      stated.units % stated.replicas == 0)
    return stated.units / stated.replicas;
  return stated.replicas > 0 && stated.units > 0 ? 1 : 0;
}

// Whether nothing that is stated contradicts the set-up.
bool agrees(const SetUp& set_up, const Machine& machine, const Question& question) {
  const Stated& stated = question.stated;
  const int stages = set_up.chip_count(), said = stated_stages(machine, stated);
  if (said > 0 && said != stages) return false;
  if (stated.units > 0 && stated.units % stages != 0) return false;
  return !set_up.optimizer_off_chip || cost_model(machine)->streaming_capacity() > 0;
}

// Whether a stated number of samples of an update is a whole number of its micro-batches.
bool divides(const SetUp& set_up, const Stated& stated) {
  if (stated.global_batch == 0 || stated.units == 0) return true;
  const std::int64_t together = set_up.micro_batch * std::max(1, stated.units / set_up.chip_count());
  return stated.global_batch % together == 0;
}

using SetUps = std::vector<const SetUp*>;

// Those that pass, or all where none does.
template <class Test>
SetUps preferred(const SetUps& all, Test test) {
  SetUps chosen;
  std::ranges::copy_if(all, std::back_inserter(chosen), test);
  return chosen.empty() ? all : chosen;
}

SetUps set_ups_for(const Machine& machine, const Question& question) {
  if (question.workload.empty()) return {};
  SetUps found = set_ups_of(question.workload, machine.style(), question.training, question.length);
  std::erase_if(found, [&](const SetUp* one) { return !agrees(*one, machine, question); });
  found = preferred(found, [&](const SetUp* one) { return !question.packed || one->packed_samples > 1; });
  found = preferred(found, [&](const SetUp* one) {
    return std::ranges::find(one->software, question.software) != one->software.end();
  });
  found = preferred(found, [&](const SetUp* one) { return divides(*one, question.stated); });
  return preferred(found, [&](const SetUp* one) { return one->micro_batch == stated_micro_batch(question); });
}

// A configuration in the making: what is stated, then what the set-up says, then the data's facts.
class Draft {
 public:
  Draft(const Machine& machine, const Question& question, const SetUp* set_up)
      : machine_(machine), question_(question), stated_(question.stated), set_up_(set_up) {
    configuration_.facts = question.facts;
    if (set_up) source_ = fmt::format("set-up {} ({})", set_up->name, set_up->source);
    settings_.samples_per_item = question.samples_per_item;
    settings_.host_sample_seconds = question.sample_seconds;
    precision();
    units();
    host();
    state();
  }

  Configuration take(std::int64_t micro_batch, const std::string& source) {
    settings_.micro_batch = micro_batch;
    if (!source.empty()) say(fmt::format("micro-batch {}", micro_batch), source);
    accumulate();
    return std::move(configuration_);
  }
  const std::string& source() const { return source_; }

 private:
  void say(std::string what, std::string source) {
    configuration_.facts.push_back({std::move(what), std::move(source)});
  }

  void precision() {
    std::string name = stated_.precision;
    if (name.empty() && set_up_ && !set_up_->precision.empty()) {
      name = set_up_->precision;
      say(name, source_);
    }
    settings_.precision = precision_from_name(name.empty() ? question_.usual_precision : name);
  }

  void units() {
    int stages = stated_stages(machine_, stated_);
    settings_.pipeline = stated_.pipeline;
    if (stages == 0 && set_up_) {
      stages = set_up_->chip_count();
      if (stages > 1) say(fmt::format("{} chips per replica", stages), source_);
    }
    stages = std::max(1, stages);
    settings_.chips = stated_.chips;
    if (settings_.pipeline.empty() && set_up_ && !set_up_->pipeline.empty() &&
        set_up_->chip_count() == stages) {
      settings_.pipeline = set_up_->pipeline;
      settings_.chips = set_up_->chips;
    }
    if (settings_.pipeline.empty() && stages > 1) {
      settings_.pipeline.assign(static_cast<std::size_t>(stages), 1);
      configuration_.balance = true;
    }
    const int most = std::max(1, stated_.units / stages);
    // More replicas than units share one (a wafer); the model is of one unit.
    settings_.replicas = stated_.replicas == 0 ? most
                         : stated_.units == 0  ? stated_.replicas
                                               : std::clamp(stated_.replicas, 1, most);
  }

  void host() {
    const DataFacts* data = question_.data_of.empty() ? nullptr : data_facts_of(question_.data_of);
    const auto choose = [&](int said, int of_set_up, int of_data, int otherwise, const char* what) {
      if (said > 0) return said;
      if (set_up_ && of_set_up > 0) return say(fmt::format("{} {}", what, of_set_up), source_), of_set_up;
      if (data && of_data > 0) return say(fmt::format("{} {}", what, of_data), data->source), of_data;
      return otherwise;
    };
    settings_.loaders = choose(stated_.loaders, set_up_ ? set_up_->loaders : 0, data ? data->loaders : 0, 1,
                               "loader processes per replica:");
    settings_.device_iterations =
        choose(stated_.device_iterations, set_up_ ? set_up_->device_iterations : 0, 0, 1, "steps a call:");
    settings_.input_bytes = choose(stated_.input_bytes, set_up_ ? set_up_->input_bytes : 0,
                                   data ? data->input_bytes : 0, 0, "bytes of an input's element:");
    settings_.samples_in_files = data && data->in_files;
    settings_.samples_are_graphs = data && data->graphs;
  }

  void state() {
    settings_.recompute = stated_.recompute.value_or(set_up_ && set_up_->recompute);
    if (!stated_.recompute && set_up_ && set_up_->recompute) say("recomputed", source_);
    const bool poptorch = machine_.style() == Style::bulk_synchronous && question_.software == "poptorch";
    if (!stated_.recompute && !settings_.recompute && poptorch && question_.training &&
        settings_.pipeline.size() > 1) {
      settings_.recompute = true;
      say("recomputed", "PopTorch's default of pipelines in training (graphcore/poptorch, Compiler.cpp)");
    }
    if (!set_up_) return;
    settings_.optimizer_off_chip = set_up_->optimizer_off_chip;
    settings_.optimizer_sharded = set_up_->optimizer_sharded && settings_.replicas > 1;
    if (settings_.optimizer_off_chip) say("the optimizer's state beside the chip", source_);
    if (settings_.optimizer_sharded) say("the optimizer's state shared out among replicas", source_);
    configuration_.packed_samples = set_up_->packed_samples;
  }

  void accumulate() {
    const std::int64_t together = settings_.micro_batch * settings_.replicas;
    const auto micro_batches = [&](std::int64_t samples) {
      return static_cast<int>(std::max<std::int64_t>(1, samples / together));
    };
    if (stated_.accumulate > 0) {
      settings_.accumulate = stated_.accumulate;
    } else if (stated_.global_batch > 0) {
      settings_.accumulate = micro_batches(stated_.global_batch);
    } else if (set_up_) {
      const std::int64_t samples =
          set_up_->samples_of_update(static_cast<int>(settings_.replicas) * set_up_->chip_count());
      settings_.accumulate = set_up_->accumulate > 0 ? set_up_->accumulate : micro_batches(samples);
      if (settings_.accumulate > 1) say(fmt::format("{} accumulated", settings_.accumulate), source_);
    }
  }

  const Machine& machine_;
  const Question& question_;
  const Stated& stated_;
  const SetUp* set_up_;
  std::string source_;
  Configuration configuration_;
  PredictSettings& settings_ = configuration_.settings;
};

// Where a GPU's or a dataflow machine's update is said and its micro-batch is not, it is done at once.
std::int64_t undivided_batch(const Machine& machine, const Question& question) {
  const Stated& stated = question.stated;
  if (machine.style() == Style::bulk_synchronous || stated.global_batch == 0) return 0;
  const int replicas = stated.replicas > 0 ? std::clamp(stated.replicas, 1, std::max(1, stated.units))
                                           : std::max(1, stated.units / std::max(1, stated.stages));
  return std::max<std::int64_t>(1, stated.global_batch / replicas / std::max(1, stated.accumulate));
}

Configuration by_recipe(const Machine& machine, const Question& question) {
  return Draft(machine, question, nullptr)
      .take(question.recipe_batch, question.training ? "the zoo's recipe" : "an answer at once");
}

}  // namespace

std::vector<Configuration> set_up_configurations(const Machine& machine, const Question& question) {
  std::vector<Configuration> configurations;
  for (const SetUp* set_up : set_ups_for(machine, question)) {
    Draft draft(machine, question, set_up);
    const std::string source = draft.source();
    configurations.push_back(draft.take(set_up->micro_batch, source));
  }
  return configurations;
}

// Nobody cuts a pipeline evenly who can time it; fewer layers than stages are left to predict() to refuse.
void balance_stages(const Machine& machine, Configuration& configuration, const GraphAt& graph_at) {
  if (!configuration.balance) return;
  configuration.balance = false;
  PredictSettings& settings = configuration.settings;
  const int stages = static_cast<int>(settings.pipeline.size());
  try {
    settings.pipeline = balanced_pipeline(machine, graph_at(settings.micro_batch), settings, stages);
    configuration.facts.push_back({fmt::format("{} balanced stages", stages), "the cut is not said"});
  } catch (const Error& error) {
    if (error.code() != ErrorCode::invalid_argument) throw;
  }
}

std::vector<Configuration> plausible_configurations(const Machine& machine, const Question& question,
                                                    const GraphAt& graph_at) {
  if (const std::int64_t micro = stated_micro_batch(question); micro > 0) {
    const SetUps set_ups = set_ups_for(machine, question);
    Configuration one = Draft(machine, question, set_ups.empty() ? nullptr : set_ups.front()).take(micro, "");
    const Stated& stated = question.stated;
    one.may_change = stated.pipeline.empty() && stated.replicas == 0 && stated.stages == 0;
    return {std::move(one)};
  }
  std::vector<Configuration> plausible = set_up_configurations(machine, question);
  if (plausible.empty() && question.own_recipe) plausible = {by_recipe(machine, question)};
  if (plausible.empty())
    if (const std::int64_t micro = undivided_batch(machine, question); micro > 0)
      plausible = {Draft(machine, question, nullptr).take(micro, "the update's samples, undivided")};
  if (plausible.empty()) {
    const Configuration start = Draft(machine, question, nullptr).take(1, "");
    plausible = searched_configurations(machine, question, start, graph_at);
    if (question.recipe_batch > 0 && question.training) plausible.push_back(by_recipe(machine, question));
    if (plausible.empty()) plausible = {start};
  }
  for (Configuration& one : plausible) one.may_change = true;
  return plausible;
}

namespace {

struct Predicted {
  Configuration configuration;
  Prediction prediction;
};

Predicted predicted(const Machine& machine, const Question& question, Configuration configuration,
                    const GraphAt& graph_at) {
  PredictSettings& settings = configuration.settings;
  balance_stages(machine, configuration, graph_at);
  Prediction found = predict(machine, graph_at(settings.micro_batch), settings);
  if (!found.fits && found.unsupported.empty() && question.training && !settings.recompute &&
      !question.stated.recompute) {
    settings.recompute = true;
    configuration.facts.push_back({"recomputed", "it does not fit otherwise"});
    found = predict(machine, graph_at(settings.micro_batch), settings);
  }
  return {std::move(configuration), std::move(found)};
}

// What the others say of a sample's time goes into the interval of the one that is reported.
void widen(const std::vector<Predicted>& all, Prediction& prediction) {
  double low = 0, high = 0, low_alone = 0, high_alone = 0, faster = prediction.faster,
         slower = prediction.slower;
  const auto widen_by = [&](const Prediction& other) {
    const double share = prediction.samples / other.samples;
    const auto wider = [](double value, double& least, double& most) {
      least = least == 0 ? value : std::min(least, value);
      most = std::max(most, value);
    };
    for (const double end : {other.fed.low, other.fed.high}) wider(share * end, low, high);
    for (const double end : {other.fed.low_without_loader, other.fed.high_without_loader})
      wider(share * end, low_alone, high_alone);
    const double apart = std::log(share * other.step_seconds / prediction.step_seconds);
    faster = std::max(faster, other.faster - apart);
    slower = std::max(slower, other.slower + apart);
  };
  for (const Predicted& one : all) widen_by(one.prediction);
  prediction.fed = {low, high, low_alone, high_alone};
  prediction.faster = faster;
  prediction.slower = slower;
  prediction.uncertainty = std::max(faster, slower);
}

Answer median_of(std::vector<Predicted> fitting) {
  std::ranges::stable_sort(fitting, [](const Predicted& a, const Predicted& b) {
    return a.prediction.throughput_with_data() < b.prediction.throughput_with_data();
  });
  const std::size_t middle = (fitting.size() - 1) / 2;
  Answer answer{.configuration = fitting[middle].configuration,
                .prediction = fitting[middle].prediction,
                .plausible = fitting.size()};
  if (fitting.size() > 1) widen(fitting, answer.prediction);
  return answer;
}

std::vector<Predicted> those_that_fit(std::vector<Predicted>& tried) {
  std::vector<Predicted> fitting;
  for (Predicted& one : tried)
    if (one.prediction.fits) fitting.push_back(one);
  return fitting;
}

// The smallest system of this machine that holds the model in any cut: for a refusal.
std::string nearest_that_fits(const Machine& machine, Question question, const Configuration& start,
                              const GraphAt& graph_at) {
  constexpr int most_units = 64;  // chosen: a pod's
  question.stated = {.precision = question.stated.precision, .micro_batch = 1, .units = 1};
  for (int units = 1; units <= most_units; units *= 2) {
    question.stated.units = units;
    const auto found = searched_configurations(machine, question, start, graph_at);
    if (!found.empty())
      return fmt::format("micro-batch 1 on {} unit{}{}{} fits", units, units > 1 ? "s" : "",
                         found.front().settings.pipeline.size() > 1 ? " in a pipeline" : "",
                         found.front().settings.recompute ? ", recomputed" : "");
  }
  return fmt::format("no cut over up to {} units fits", most_units);
}

}  // namespace

Answer answer(const Machine& machine, const Question& question, const GraphAt& graph_at) {
  std::vector<Predicted> tried;
  for (Configuration& one : plausible_configurations(machine, question, graph_at))
    tried.push_back(predicted(machine, question, std::move(one), graph_at));
  std::vector<Predicted> fitting = those_that_fit(tried);
  const Predicted& first = tried.front();
  if (fitting.empty() && first.configuration.may_change && first.prediction.unsupported.empty()) {
    Configuration start = first.configuration;
    start.facts = question.facts;
    std::vector<Predicted> others;
    for (Configuration& one : searched_configurations(machine, question, start, graph_at))
      others.push_back(predicted(machine, question, std::move(one), graph_at));
    fitting = those_that_fit(others);
  }
  if (!fitting.empty()) return median_of(std::move(fitting));
  Answer answer{.configuration = first.configuration, .prediction = first.prediction};
  if (first.prediction.unsupported.empty() && question.fixed_batch == 0)
    answer.nearest = nearest_that_fits(machine, question, first.configuration, graph_at);
  return answer;
}

std::vector<std::string> words_of(const std::vector<Fact>& facts) {
  // Facts of one source stand together.
  std::vector<std::pair<std::string, std::vector<std::string>>> by_source;
  for (const Fact& fact : facts) {
    auto found = std::ranges::find(by_source, fact.source, [](const auto& one) { return one.first; });
    if (found == by_source.end()) found = by_source.insert(by_source.end(), {fact.source, {}});
    found->second.push_back(fact.what);
  }
  std::vector<std::string> words;
  for (const auto& [source, whats] : by_source)
    words.push_back(fmt::format("{}: {}", join(whats, ", "), source));
  return words;
}

Stated stated_by(const PredictSettings& settings) {
  const int stages = settings.chips.empty() ? std::max(1, static_cast<int>(settings.pipeline.size()))
                                            : std::ranges::max(settings.chips) + 1;
  return {.precision = settings.precision.name,
          .micro_batch = settings.micro_batch,
          .units = stages * settings.replicas,
          .replicas = settings.replicas,
          .accumulate = settings.accumulate,
          .stages = stages,
          .pipeline = settings.pipeline,
          .chips = settings.chips,
          .recompute = settings.recompute,
          .loaders = settings.loaders,
          .device_iterations = settings.device_iterations,
          .input_bytes = settings.input_bytes};
}

}  // namespace superstep::machine
