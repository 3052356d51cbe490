#include "superstep/lab/numerics/compare_numerics.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>

#include "superstep/base/progress.h"
#include "superstep/base/text.h"
#include "superstep/base/thread_pool.h"
#include "superstep/run/model.h"
#include "superstep/run/serve/served_weights.h"
#include "superstep/run/train/feeder.h"
#include "superstep/run/train/schedule.h"
#include "superstep/run/train/train_state.h"
#include "superstep/target/numerics/numerics_target.h"

namespace superstep::lab {
namespace {

using Json = nlohmann::json;
using States = std::map<std::string, Tensor>;

constexpr std::int64_t default_batch =
    32;                               // chosen: a mean of so many samples, and every node's results in memory
constexpr double clear_share = 0.25;  // chosen: below it no single node is named as the cause

double mean_of(std::span<const double> values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

// The same training in both arithmetics, batch by batch.
class InStep {
 public:
  InStep(const NumericsQuestion& question, std::uint64_t seed)
      : question_(question),
        settings_(with_seed(question.model, seed)),
        model_(settings_),
        pool_(question.threads) {
    run::TaskSettings samples = task_settings_of(settings_, pool_);
    samples.model_options = model_.settings().model_options;
    task_ = model_.open_task(samples);
    for (const std::string* name : {&question.of, &question.with}) both_.push_back(compiled(*name));
    pair_.seed = seed;
  }

  TrainedPair train() {
    const std::int64_t batch = model_.settings().batch;
    std::vector<Tensor> prototypes;
    const auto ports = both_[0]->inputs();
    for (std::size_t i = 0; i + 1 < ports.size(); ++i)
      prototypes.emplace_back(ports[i].type.element, ports[i].type.shape);
    run::Feeder feeder(*task_, prototypes, batch, settings_.seed, settings_.augment, {});
    std::vector<Tensor> outputs{
        Tensor(both_[0]->outputs()[0].type.element, both_[0]->outputs()[0].type.shape)};
    Progress progress = Progress::passing(fmt::format("training both, seed {}", settings_.seed),
                                          static_cast<double>(question_.steps), "steps");
    for (std::int64_t step = 0; step < question_.steps; ++step) {
      std::vector<Tensor> inputs = feeder.next();
      const run::Moment moment{step, question_.steps, feeder.batches_an_epoch()};
      inputs.push_back(Tensor::scalar(static_cast<float>(run::learning_rate(model_.schedule(), moment))));
      for (std::size_t i = 0; i < both_.size(); ++i) {
        both_[i]->run(inputs, outputs);
        (i == 0 ? pair_.of : pair_.with).push_back(outputs[0].at(0));
      }
      progress.update(static_cast<double>(step + 1));
    }
    const std::size_t last = std::max<std::size_t>(1, pair_.of.size() / 10);
    pair_.final_of = mean_of(std::span(pair_.of).last(last));
    pair_.final_with = mean_of(std::span(pair_.with).last(last));
    return std::move(pair_);
  }

  // Of the first arithmetic.
  States states() const {
    States states;
    for (const std::string& name : both_[0]->state_names()) states.emplace(name, both_[0]->state(name));
    return states;
  }

 private:
  static run::TrainSettings with_seed(run::TrainSettings settings, std::uint64_t seed) {
    settings.seed = seed;
    return settings;
  }
  std::unique_ptr<target::Executable> compiled(const std::string& name) {
    const target::Target& target = target::find_target(std::string(target::numerics::target_prefix) + name);
    target::CompileOptions options;
    options.batch = options.micro_batch = model_.settings().batch;
    options.threads = question_.threads;
    auto executable = target.compile(model_.training_step(&target), options);
    fit_states(*executable, model_, *task_, pool_);
    return executable;
  }

  const NumericsQuestion& question_;
  run::TrainSettings settings_;
  run::Model model_;
  ThreadPool pool_;
  std::unique_ptr<run::Task> task_;
  std::vector<std::unique_ptr<target::Executable>> both_;
  TrainedPair pair_;
};

// What the trainings leave, where there are any: weights of the first.
States train_all(const NumericsQuestion& question, NumericsComparison& comparison) {
  States states;
  for (int i = 0; question.steps > 0 && i < question.seeds; ++i) {
    InStep training(question, question.model.seed + static_cast<std::uint64_t>(i));
    comparison.trainings.push_back(training.train());
    if (i == 0) states = training.states();
  }
  if (comparison.trainings.empty()) return states;
  std::vector<double> of, apart;
  for (const TrainedPair& pair : comparison.trainings) {
    of.push_back(pair.final_of);
    apart.push_back(pair.final_with - pair.final_of);
  }
  comparison.loss_difference = mean_of(apart);
  double squares = 0;
  for (const double value : of) squares += (value - mean_of(of)) * (value - mean_of(of));
  if (of.size() > 1) comparison.seed_spread = std::sqrt(squares / static_cast<double>(of.size() - 1));
  return states;
}

// One batch of the samples, as the served model takes it.
std::vector<Tensor> batch_of(const run::Model& model, const run::Task& task, std::int64_t batch,
                             ThreadPool& pool) {
  std::vector<Tensor> inputs;
  const graph::Graph graph = model.inference()(batch);
  for (const graph::ValueId id : graph.inputs())
    inputs.emplace_back(graph.type(id).element, graph.type(id).shape);
  std::vector<std::int64_t> samples(static_cast<std::size_t>(batch));
  for (std::size_t i = 0; i < samples.size(); ++i)
    samples[i] = std::min(static_cast<std::int64_t>(i), task.size() - 1);
  task.fill_inputs(samples, inputs, pool);
  return inputs;
}

// A run's settings for other samples than its own.
run::TrainSettings with_data(run::TrainSettings settings, const std::filesystem::path& data) {
  settings.data = data;
  settings.validation.clear();
  settings.folds = settings.fold = 0;
  scale_other_data(settings, {}, {});
  return settings;
}

void compare_nodes(const NumericsQuestion& question, States states, NumericsComparison& comparison) {
  run::TrainSettings settings = question.model;
  if (!question.weights.empty()) {
    run::Weights weights = run::load_weights_for(question.model, question.weights);
    if (weights.of_a_run) settings = with_data(weights.settings, question.model.data);
    states = run::states_with_counter(weights);
  }
  settings.precision = "f32";
  const run::Model model(settings);
  ThreadPool pool(question.threads);
  comparison.batch = question.batch > 0        ? question.batch
                     : model.fixed_batch() > 0 ? model.fixed_batch()
                                               : default_batch;
  run::TaskSettings samples = task_settings_of(settings, pool);
  if (settings.data.empty()) samples.samples = comparison.batch;
  samples.labels_required = false;
  const auto task = model.open_task(samples);
  comparison.trained_weights = !states.empty();
  comparison.nodes = node_differences(model.inference(),
                                      {.batch = comparison.batch,
                                       .threads = question.threads,
                                       .of = target::numerics::parse_spec(question.of),
                                       .with = target::numerics::parse_spec(question.with)},
                                      batch_of(model, *task, comparison.batch, pool), states);
}

std::string amount(double difference) {
  return std::isfinite(difference) ? fmt::format("{:.3g}", difference) : "infinite: results are not finite";
}

// The least change that does as much as the other arithmetic altogether, or nearly.
const Cure& best_cure(const std::vector<Cure>& cures) {
  constexpr double nearly = 1.3;  // chosen: a node's last rounding, which other cures leave, is of that order
  for (const Cure& cure : cures)
    if (cure.difference <= nearly * cures.back().difference) return cure;
  return cures.back();
}

std::string culprit_sentence(const NumericsComparison& c) {
  const NodeDifferences& nodes = c.nodes;
  if (nodes.difference == 0) return fmt::format("{} and {} give the same bits", c.of, c.with);
  if (!nodes.found()) return "no single node moves the outputs: they part by all together";
  const NodeDifference& node = nodes.nodes[nodes.culprit];
  if (node.share < clear_share)
    return fmt::format(
        "the difference of {} is many nodes' together: the largest part, {:.0f} %, is that of '{}' ({})",
        amount(nodes.difference), 100 * node.share, node.name, node.op);
  const Cure& cure = best_cure(nodes.cures);
  const std::string changed = cure.setting == "all" ? fmt::format("in {}", cure.value)
                                                    : fmt::format("with {} = {}", cure.setting, cure.value);
  return fmt::format("'{}' ({}) explains {:.0f} % of the difference of {}: {}; {} there, {} is left",
                     node.name, node.op, 100 * node.share, amount(nodes.difference), node.with, changed,
                     amount(cure.difference));
}

std::string training_sentence(const NumericsComparison& c) {
  if (c.trainings.size() < 2)
    return fmt::format(
        "the final losses differ by {:.3g}; with one seed nobody knows whether that is a difference",
        c.loss_difference);
  if (!std::isfinite(c.loss_difference)) return fmt::format("in {} losses stop being finite", c.with);
  return fmt::format("the final losses differ by {:.3g}, and by {:.3g} from seed to seed: {}",
                     c.loss_difference, c.seed_spread,
                     c.within_spread() ? "that is no difference" : "that is a difference");
}

}  // namespace

NumericsComparison compare_numerics(const NumericsQuestion& question) {
  const target::numerics::Spec of = target::numerics::parse_spec(question.of);
  const target::numerics::Spec with = target::numerics::parse_spec(question.with);
  NumericsComparison comparison{.workload = question.model.workload,
                                .of = question.of,
                                .with = question.with,
                                .of_words = numerics::to_string(of.base.arithmetic),
                                .with_words = numerics::to_string(with.base.arithmetic)};
  compare_nodes(question, train_all(question, comparison), comparison);
  comparison.sentences.push_back(culprit_sentence(comparison));
  if (!comparison.trainings.empty()) comparison.sentences.push_back(training_sentence(comparison));
  return comparison;
}

std::string to_text(const NumericsComparison& c, bool all_nodes) {
  std::string text =
      fmt::format("{}, {} samples, {} weights\n  {}: {}\n  {}: {}\n\n", c.workload, c.batch,
                  c.trained_weights ? "trained" : "initial", c.of, c.of_words, c.with, c.with_words);
  TextTable table({"node", "operator", "computed", "error", "growth", "alone", "share"});
  for (const NodeDifference& node : c.nodes.nodes) {
    if (!all_nodes && !node.differs) continue;
    table.add_row({node.name, node.op, node.way, fmt::format("{:.2e}", node.error),
                   node.growth > 0 ? fmt::format("{:.2f}", node.growth) : "",
                   node.alone >= 0 ? fmt::format("{:.2e}", node.alone) : "",
                   node.share >= 0 ? fmt::format("{:.1f} %", 100 * node.share) : ""});
  }
  text += table.to_string();
  TextTable cures({"the culprit with", "difference left"});
  for (const Cure& cure : c.nodes.cures)
    cures.add_row({cure.setting == "all" ? "all of " + cure.value : cure.setting + " = " + cure.value,
                   amount(cure.difference)});
  if (!cures.empty()) text += "\n" + cures.to_string();
  TextTable trained({"seed", "final loss, " + c.of, "final loss, " + c.with});
  for (const TrainedPair& pair : c.trainings)
    trained.add_row({fmt::format("{}", pair.seed), fmt::format("{:.5g}", pair.final_of),
                     fmt::format("{:.5g}", pair.final_with)});
  if (!trained.empty()) text += "\n" + trained.to_string();
  for (const std::string& sentence : c.sentences) text += "\n" + sentence + "\n";
  return text;
}

namespace {

// JSON has no infinities.
Json number(double value) { return std::isfinite(value) ? Json(value) : Json("infinite"); }

}  // namespace

nlohmann::json to_json(const NumericsComparison& c) {
  Json nodes = Json::array(), cures = Json::array(), trainings = Json::array();
  for (const NodeDifference& node : c.nodes.nodes)
    nodes.push_back({{"node", node.name},
                     {"operator", node.op},
                     {"computed", node.way},
                     {"arithmetic", node.with},
                     {"differs", node.differs},
                     {"error", number(node.error)},
                     {"growth", number(node.growth)},
                     {"alone", node.alone >= 0 ? number(node.alone) : Json(nullptr)},
                     {"share", node.share >= 0 ? Json(node.share) : Json(nullptr)},
                     {"reads", node.reads}});
  for (const Cure& cure : c.nodes.cures)
    cures.push_back(
        {{"setting", cure.setting}, {"value", cure.value}, {"difference", number(cure.difference)}});
  for (const TrainedPair& pair : c.trainings)
    trainings.push_back({{"seed", pair.seed}, {"of", pair.of}, {"with", pair.with}});
  return {{"schema", "superstep-numerics/1"},
          {"workload", c.workload},
          {"of", c.of},
          {"with", c.with},
          {"samples", c.batch},
          {"trained_weights", c.trained_weights},
          {"outputs", c.nodes.outputs},
          {"difference", number(c.nodes.difference)},
          {"culprit", c.nodes.found() ? Json(c.nodes.nodes[c.nodes.culprit].name) : Json(nullptr)},
          {"nodes", nodes},
          {"cures", cures},
          {"trainings", trainings},
          {"loss_difference", number(c.loss_difference)},
          {"seed_spread", number(c.seed_spread)},
          {"sentences", c.sentences}};
}

}  // namespace superstep::lab
