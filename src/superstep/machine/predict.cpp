#include "superstep/machine/predict.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "superstep/base/text.h"
#include "superstep/machine/rates/network_by_law.h"
#include "superstep/op/core/definition.h"
#include "superstep/op/product/cholesky.h"

namespace superstep::machine {
namespace {

using graph::Graph;
using graph::Phase;

int chips_of(const PredictSettings& settings) {
  if (settings.chips.empty()) return std::max(1, static_cast<int>(settings.pipeline.size()));
  return std::ranges::max(settings.chips) + 1;
}

// Micro-batches between a chip's forward pass and its backward pass: of its earliest stage.
double in_flight(const PredictSettings& settings, std::size_t chip) {
  if (settings.chips.empty()) return 0;
  const auto first = std::ranges::find(settings.chips, static_cast<int>(chip)) - settings.chips.begin();
  return 2 * (static_cast<double>(settings.chips.size()) - 1 - static_cast<double>(first)) + 1;
}

void check(const PredictSettings& settings) {
  const auto refuse = [](const char* what) { throw Error(ErrorCode::invalid_argument, what, "prediction"); };
  if (settings.micro_batch < 1) refuse("the micro-batch must be one or more");
  if (settings.accumulate < 1) refuse("accumulation takes one micro-batch or more");
  if (settings.replicas < 1) refuse("there must be one replica or more");
  if (settings.device_iterations < 1) refuse("a call takes one device iteration or more");
  if (settings.loaders < 1) refuse("samples are prepared by one process or more");
  // A stage that shares its chip may have no layer with parameters: the words alone.
  for (int share : settings.pipeline)
    if (share < (settings.chips.empty() ? 1 : 0)) refuse("every pipeline stage needs one layer or more");
  if (settings.chips.empty()) return;
  if (settings.chips.size() != settings.pipeline.size()) refuse("every pipeline stage has its chip");
  for (int chip = 0; chip < chips_of(settings); ++chip)
    if (std::ranges::find(settings.chips, chip) == settings.chips.end())
      refuse("chips are counted from 0, and each has a stage");
}

std::vector<OperatorCost> costs_of_stage(const std::vector<OperatorCost>& costs, std::size_t stage,
                                         bool update) {
  std::vector<OperatorCost> chosen;
  for (const OperatorCost& cost : costs)
    if (cost.work.stage == stage && (cost.work.phase == Phase::update) == update) chosen.push_back(cost);
  return chosen;
}

double gradient_bytes(const std::vector<Stage>& stages) {
  double bytes = 0;
  for (const Stage& stage : stages) bytes = std::max(bytes, stage.memory.parameters);
  return bytes;
}

int updates_of(const std::vector<OperatorCost>& costs, std::size_t stage) {
  return static_cast<int>(std::ranges::count_if(costs, [&](const OperatorCost& cost) {
    return cost.work.stage == stage && cost.work.phase == Phase::update &&
           cost.work.kind == WorkKind::optimizer;
  }));
}

double forward_share(const std::vector<OperatorCost>& costs, std::size_t stage) {
  double forward = 0, all = 0;
  for (const OperatorCost& cost : costs) {
    if (cost.work.stage != stage || cost.work.phase == Phase::update) continue;
    all += cost.parts.total();
    if (cost.work.phase == Phase::forward) forward += cost.parts.total();
  }
  return all > 0 ? forward / all : 0;
}

// What the host does for one replica's step.
HostWork host_work(const Graph& graph, const PredictSettings& settings, bool training) {
  HostWork work{
      .samples = static_cast<double>(settings.micro_batch) * settings.accumulate * settings.samples_per_item,
      .accumulate = settings.accumulate,
      .device_iterations = settings.device_iterations,
      .loaders = settings.loaders,
      .extra_seconds = settings.host_sample_seconds,
      .in_files = settings.samples_in_files,
      .are_graphs = settings.samples_are_graphs,
      .training = training};
  double prepared = 0;
  for (const graph::ValueId id : graph.inputs()) {
    const graph::Value& value = graph.value(id);
    const auto elements = static_cast<double>(value.type.shape.element_count());
    const double precise = settings.precision.bytes(value);
    work.transfer_bytes += settings.input_bytes > 0 ? elements * settings.input_bytes : precise;
    prepared +=
        elements * (settings.input_bytes > 0 ? settings.input_bytes
                                             : static_cast<double>(size_in_bytes(value.type.element)));
  }
  work.loader_bytes =
      prepared / (static_cast<double>(settings.micro_batch) * std::max(1.0, settings.samples_per_item));
  if (!training)
    for (const graph::Output& output : graph.outputs())
      work.transfer_bytes += settings.precision.bytes(graph.value(output.value));
  return work;
}

// Where the last stage has room it keeps what it made: its backward pass follows at once, so the vendor's
// compiler runs nothing again there (Graphcore's port of TensorFlow, passes/pipeline_recomputation.cc).
Memory memory_of_stage(const CostModel& model, const Graph& graph, const std::vector<OperatorCost>& costs,
                       const PredictSettings& settings, MemoryOptions options) {
  const bool last = options.stage + 1 == options.stages && settings.chips.empty();
  if (options.recompute && options.stages > 1 && last) {
    options.recompute = false;
    if (Memory kept = model.memory(graph, costs, settings.precision, options); kept.fits()) return kept;
    options.recompute = true;
  }
  return model.memory(graph, costs, settings.precision, options);
}

std::vector<Stage> stages_of(const CostModel& model, const Graph& graph,
                             const std::vector<OperatorCost>& costs, const PredictSettings& settings,
                             std::size_t count) {
  std::vector<Stage> stages;
  for (std::size_t s = 0; s < count; ++s) {
    Stage stage;
    stage.forward_backward = model.together(costs_of_stage(costs, s, false));
    stage.update = model.together(costs_of_stage(costs, s, true));
    stage.memory =
        memory_of_stage(model, graph, costs, settings,
                        {.stage = s,
                         .stages = count,
                         .in_flight = in_flight(settings, s),
                         .recompute = settings.recompute,
                         .accumulate = settings.accumulate > 1 || count > 1,
                         .optimizer_share = settings.optimizer_sharded ? 1.0 / settings.replicas : 1,
                         .optimizer_off_chip = settings.optimizer_off_chip});
    stage.gradients = updates_of(costs, s);
    const double forward = forward_share(costs, s);
    stage.backward_seconds = (1 - forward) * stage.forward_backward.total();
    stage.forward_backward += stage.memory.recomputed * forward * stage.forward_backward;
    stages.push_back(stage);
  }
  return stages;
}

std::size_t slowest_of(const std::vector<Stage>& stages) {
  std::size_t slowest = 0;
  for (std::size_t s = 1; s < stages.size(); ++s)
    if (stages[s].forward_backward.total() > stages[slowest].forward_backward.total()) slowest = s;
  return slowest;
}

// Frameworks sum gradients in buckets as the last backward pass makes them: what is left is the last bucket,
// or what takes longer than that pass. Bytes of a bucket: PyTorch's default.
constexpr double bucket_bytes = 25e6;

double exposed_all_reduce(const CostModel& model, const std::vector<Stage>& stages, int replicas) {
  const Stage& slowest = stages[slowest_of(stages)];
  const double bytes = gradient_bytes(stages),
               all = model.all_reduce_seconds(bytes, replicas) +
                     slowest.gradients * model.collective_call_seconds(replicas);
  if (!model.overlaps_collectives() || bytes <= 0) return all;
  const double last = all * std::min(1.0, bucket_bytes / bytes);
  return std::max(last, all - slowest.backward_seconds);
}

// Micro-batches pass the slowest stage one after the other; the pipeline fills and drains once a step.
Parts step_of(const CostModel& model, const std::vector<Stage>& stages, const PredictSettings& settings,
              std::span<const Border> borders, bool training) {
  const std::size_t slowest = slowest_of(stages);
  const double count = static_cast<double>(std::max(stages.size(), settings.pipeline.size()));
  Parts one = stages[slowest].forward_backward;
  if (stages.size() > 1) one.collective += model.borders_seconds(borders);
  Parts step = static_cast<double>(settings.accumulate) * one;
  step.fill += (count - 1) * one.total();
  step += stages[slowest].update;
  double streamed = 0;
  for (const Stage& stage : stages) streamed = std::max(streamed, stage.memory.streamed);
  step.memory += model.streaming_seconds(streamed);
  if (training) step.collective += exposed_all_reduce(model, stages, settings.replicas);
  return step;
}

// Half of the range of a constant's logarithm; ranges are taken to hold 80 %. None of one that was fitted:
// what the fit leaves is in the errors that the model's own uncertainty was taken from.
double half_range(const std::vector<Constant>& constants, const char* name) {
  for (const Constant& constant : constants)
    if (constant.name == name && constant.low > 0 && !constant.open)
      return std::log(constant.high / constant.low) / 2;
  return 0.0;
}

// The model's uncertainty and those of the constants behind each part, as they enter the logarithm of the
// sum. They have sources of their own, so that nothing makes several err the same way: their squares add up.
double uncertainty_of(const CostModel& model, const Parts& step) {
  const Machine& machine = model.machine();
  const auto relative = [&](const char* name) { return half_range(machine.constants(), name); };
  const double launch =
      machine.stack() ? half_range(machine.stack()->constants, "launch") : relative("launch_overhead") / 2;
  const double total = step.total();
  if (total <= 0) return 0;
  const std::pair<double, double> terms[] = {
      {1.0, model.model_uncertainty()},
      {(step.compute + step.sync + step.memory) / total, relative("clock")},
      {step.compute / total, std::hypot(relative("matrix_efficiency"), relative("compute_efficiency"))},
      {step.exchange / total, relative("exchange_share")},
      {step.memory / total, std::hypot(relative("rearrange_rate") / 2, relative("memory_rate"))},
      {step.launch / total, launch},
      {step.collective / total, std::hypot(relative("link_rate"), relative("link_efficiency"))},
      {step.fill / total, std::hypot(relative("section_switch") / 2, relative("operator_cycles"))}};
  double sum = 0;
  for (const auto& [share, uncertainty] : terms) sum += share * uncertainty * share * uncertainty;
  return std::sqrt(sum);
}

void add_bounds(const CostModel& model, const PredictSettings& settings, std::size_t stages,
                const std::vector<OperatorCost>& operators, Prediction& prediction) {
  const Bounds bounds = model.bounds(settings.precision);
  const double share = settings.accumulate / static_cast<double>(stages);
  for (const OperatorCost& cost : operators) {
    const double times = cost.work.phase == Phase::update ? 1.0 / static_cast<double>(stages) : share;
    const double peak = cost.work.flops / bounds.peak_flops;
    const double bytes = (cost.work.read_bytes + cost.work.write_bytes) / bounds.memory_rate;
    const int in_step = cost.work.phase == Phase::update ? 1 : settings.accumulate;
    prediction.flops += cost.work.flops * in_step;
    prediction.border_bytes += (cost.work.read_bytes + cost.work.write_bytes) * in_step;
    prediction.peak_seconds += times * peak;
    prediction.roofline_seconds += times * std::max(peak, bytes);
  }
  prediction.flops *= settings.replicas;
}

void add_warnings(const PredictSettings& settings, Prediction& prediction) {
  for (const Stage& stage : prediction.stages)
    if (!stage.memory.fits())
      prediction.warnings.push_back(
          fmt::format("a stage does not fit; its fullest moment is at '{}'", stage.memory.fullest));
  if (settings.accumulate < static_cast<int>(prediction.stages.size()) && prediction.stages.size() > 1)
    prediction.warnings.emplace_back("fewer micro-batches than pipeline stages: the pipeline is never full");
}

// Operators on IPUs of which the memory of all tiles is a bound from above: beside the vendor's simulator
// sums are predicted up to 9 times too large, factors and triangular systems up to 44 times, as few tiles
// hold most of it (superstep validate of its operators: median of all 21 %).
void add_loose_memory(const Machine& machine, Prediction& prediction) {
  if (machine.style() != Style::bulk_synchronous) return;
  std::set<std::string> loose;
  for (const OperatorCost& cost : prediction.operators)
    if (std::ranges::any_of(op::cholesky_operators(),
                            [&](const op::Definition& one) { return one.name == cost.work.op; }))
      loose.insert(cost.work.op);
  if (!loose.empty())
    prediction.warnings.push_back(
        fmt::format("the memory of {} is a bound from above: beside the vendor's simulator "
                    "it is predicted up to 44 times too large",
                    join(std::vector(loose.begin(), loose.end()), ", ")));
}

// So many times as far as was measured no laws are expected to change (chosen); beyond, nothing is known.
constexpr double kernel_reach = 16, unit_reach = 64;

void add_beyond(const CostModel& model, Prediction& prediction) {
  const Calibrated calibrated = model.calibrated();
  double largest = 0;
  for (const OperatorCost& cost : prediction.operators) largest = std::max(largest, cost.work.flops);
  if (calibrated.kernel_flops > 0 && largest > kernel_reach * calibrated.kernel_flops)
    prediction.beyond.push_back(fmt::format(
        "a kernel of {:.2g} FLOP is more than {:.0f} times the largest that was measured ({:.2g})", largest,
        kernel_reach, calibrated.kernel_flops));
  if (calibrated.units > 0 && prediction.units > unit_reach * calibrated.units)
    prediction.beyond.push_back(
        fmt::format("{} units are more than {:.0f} times the largest system that was measured ({})",
                    prediction.units, unit_reach, calibrated.units));
}

}  // namespace

double Prediction::shortest_step() const { return step_seconds * std::exp(-faster); }
double Prediction::longest_step() const { return step_seconds * std::exp(slower); }

std::string Prediction::bound_by() const { return step.largest(); }

std::string Prediction::bound_by_with_data() const {
  const char* by_host = host.bound_by(step_seconds);
  return by_host ? by_host : step.largest();
}

namespace {

// The law's time in place of the model's, where the machine is asked by it.
void take_law(const Machine& machine, const PredictSettings& settings, Prediction& prediction) {
  if (!machine.by_law()) return;
  const auto law = step_by_law(*machine.by_law(), settings, prediction.stages.front().memory.recomputed);
  if (!law) return;
  const LawAnswer& answer = law->answer;
  prediction.by_law = {law->law, answer.spread, answer.cells, answer.measured_machine,
                       prediction.step_seconds};
  prediction.step = law->parts;
  prediction.step_seconds = answer.seconds;
  prediction.faster = std::log(answer.seconds / answer.low);
  prediction.slower = std::log(answer.high / answer.seconds);
  prediction.uncertainty = prediction.model_uncertainty = std::max(prediction.faster, prediction.slower);
}

void add_host(const CostModel& model, const HostWork& work, Prediction& prediction) {
  prediction.host = host_path(model, work);
  prediction.step_seconds_with_data = prediction.host.with(prediction.step_seconds);
  prediction.fed = fed_interval(model.machine(), work, prediction.step_seconds, prediction.shortest_step(),
                                prediction.longest_step());
}

Prediction predict_as_is(const Machine& machine, const Graph& graph, const PredictSettings& settings) {
  const std::unique_ptr<CostModel> model = cost_model(machine);
  if (settings.optimizer_off_chip && model->streaming_capacity() <= 0)
    throw Error(ErrorCode::invalid_argument, "has no memory beside the chip that keeps an optimizer's state",
                machine.id());
  std::vector<Work> works = works_of(graph, settings.precision, model->work_options());
  Prediction prediction{.machine = machine.id()};
  prediction.unsupported = unsupported_operators(works);
  const auto stages = static_cast<std::size_t>(chips_of(settings));
  if (stages > 1) assign_stages(graph, works, settings.pipeline);
  if (!settings.chips.empty())
    for (Work& work : works) work.stage = static_cast<std::size_t>(settings.chips[work.stage]);
  prediction.operators = model->operators(graph, works, settings.precision);
  prediction.stages = stages_of(*model, graph, prediction.operators, settings, stages);
  prediction.fits = std::all_of(prediction.stages.begin(), prediction.stages.end(), [&](const Stage& stage) {
    return stage.memory.fits() && stage.memory.streamed <= model->streaming_capacity();
  });
  const bool training =
      std::any_of(works.begin(), works.end(), [](const Work& w) { return w.phase == Phase::update; });
  prediction.units = static_cast<int>(stages) * settings.replicas;
  prediction.step = step_of(*model, prediction.stages, settings,
                            borders_of(graph, works, settings.precision, stages), training);
  prediction.step_seconds = prediction.step.total();
  prediction.samples = static_cast<double>(settings.micro_batch) * settings.accumulate * settings.replicas;
  prediction.model_uncertainty = model->model_uncertainty();
  prediction.uncertainty = uncertainty_of(*model, prediction.step);
  prediction.faster = prediction.slower = prediction.uncertainty;
  take_law(machine, settings, prediction);
  add_host(*model, host_work(graph, settings, training), prediction);
  add_bounds(*model, settings, stages, prediction.operators, prediction);
  add_warnings(settings, prediction);
  add_loose_memory(machine, prediction);
  add_beyond(*model, prediction);
  return prediction;
}

}  // namespace

double fed_step_seconds(const Machine& machine, const Graph& graph, const std::vector<Work>& works,
                        double gradient_bytes, const PredictSettings& settings) {
  const std::unique_ptr<CostModel> model = cost_model(machine);
  const std::vector<OperatorCost> costs = model->operators(graph, works, settings.precision);
  Stage stage{.forward_backward = model->together(costs_of_stage(costs, 0, false)),
              .update = model->together(costs_of_stage(costs, 0, true)),
              .memory = {}};
  stage.memory.parameters = gradient_bytes;
  stage.backward_seconds = (1 - forward_share(costs, 0)) * stage.forward_backward.total();
  stage.gradients = updates_of(costs, 0);
  const bool training = std::ranges::any_of(works, [](const Work& w) { return w.phase == Phase::update; });
  const double step = step_of(*model, {stage}, settings, {}, training).total();
  return host_path(*model, host_work(graph, settings, training)).with(step);
}

namespace {

// Is what plans cannot change, state and activations, more than a unit has? What is alive at a moment does
// not depend on the temporaries of the kernels.
// A type that its units do not have would be timed as one that they have.
void require_precision(const Machine& machine, const Precision& precision) {
  if (machine.computes_in(precision.name)) return;
  throw Error(ErrorCode::unsupported, fmt::format("does not compute in {}", precision.name), machine.name(),
              "it computes in " + join(machine.precisions(), ", "));
}

bool cannot_fit(const Prediction& prediction) {
  return std::any_of(prediction.stages.begin(), prediction.stages.end(), [](const Stage& stage) {
    const Memory& memory = stage.memory;
    return memory.parameters + memory.optimizer + memory.activations > memory.limit;
  });
}

}  // namespace

// Where it does not fit, plans are given less room for their temporaries: they become slower and smaller.
Prediction predict(const Machine& machine, const Graph& graph, const PredictSettings& settings) {
  check(settings);
  require_precision(machine, settings.precision);
  Prediction prediction = predict_as_is(machine, graph, settings);
  if (machine.style() != Style::bulk_synchronous || cannot_fit(prediction)) return prediction;
  // Halved from 0.6 on, the vendor's default (availableMemoryProportion of PopLibs). Three times: chosen.
  for (double share : {0.3, 0.15, 0.075}) {
    if (prediction.fits || share >= machine.value("memory_proportion")) break;
    Prediction smaller = predict_as_is(machine.with("memory_proportion", share), graph, settings);
    smaller.warnings.push_back(fmt::format("plans were kept to {:.3g} of a tile for temporaries", share));
    if (smaller.fits) prediction = std::move(smaller);
  }
  return prediction;
}

namespace {

// The same step on another machine of the style, where the law times it; what lies in memory is known.
std::optional<Prediction> by_law_alike(const Machine& machine, const Graph& graph,
                                       const PredictSettings& settings, const Prediction& other) {
  const std::unique_ptr<CostModel> model = cost_model(machine);
  Prediction prediction{.machine = machine.id(), .units = other.units, .stages = other.stages};
  for (Stage& stage : prediction.stages) stage.memory.limit = model->capacity();
  prediction.fits =
      std::ranges::all_of(prediction.stages, [](const Stage& stage) { return stage.memory.fits(); });
  prediction.samples = other.samples;
  prediction.unsupported = other.unsupported;
  take_law(machine, settings, prediction);
  if (!prediction.by_law) return std::nullopt;
  add_host(*model, host_work(graph, settings, machine.by_law()->training), prediction);
  add_bounds(*model, settings, prediction.stages.size(), other.operators, prediction);
  add_warnings(settings, prediction);
  return prediction;
}

std::string name_of(const Graph& graph, const PredictSettings& s) {
  return fmt::format("{} {} {} {} {} {} {} {}", static_cast<const void*>(&graph), s.precision.name,
                     s.micro_batch, s.accumulate, s.replicas, s.recompute, s.optimizer_sharded,
                     s.optimizer_off_chip);
}

}  // namespace

Prediction PredictionsByLaw::predict(const Machine& machine, const Graph& graph,
                                     const PredictSettings& settings) {
  const bool alike = machine.by_law() && machine.style() == Style::kernel_by_kernel &&
                     settings.pipeline.empty() && machine.computes_in(settings.precision.name);
  if (!alike) return machine::predict(machine, graph, settings);
  const std::string name = name_of(graph, settings);
  std::shared_ptr<const Prediction> other;
  {
    const std::lock_guard lock(mutex_);
    other = known_[name];
  }
  if (other)
    if (auto found = by_law_alike(machine, graph, settings, *other)) return std::move(*found);
  auto made = std::make_shared<const Prediction>(machine::predict(machine, graph, settings));
  const std::lock_guard lock(mutex_);
  known_[name] = made;
  return *made;
}

std::vector<Metric> Prediction::metrics() const {
  std::vector<Metric> metrics;
  const auto add = [&](const char* name, double value, const char* unit, bool interval) {
    Metric metric{.name = name, .value = value, .unit = unit, .how = How::predicted};
    const bool rate = name != std::string_view("step_time");
    if (interval) metric.low = value / std::exp(rate ? slower : faster);
    if (interval) metric.high = value * std::exp(rate ? faster : slower);
    metrics.push_back(metric);
  };
  add("fits", fits ? 1 : 0, "", false);
  double memory = 0, peak = 0;
  for (const Stage& stage : stages) {
    memory = std::max(memory, stage.memory.limit);
    peak = std::max(peak, stage.memory.total());
  }
  add("memory_per_unit", memory, "B", false);
  add("peak_memory", peak, "B", false);
  if (!fits) return metrics;
  add("throughput", throughput(), "samples/s", true);
  add("throughput_with_data", throughput_with_data(), "samples/s", false);
  metrics.back().low = samples / fed.high;
  metrics.back().high = samples / fed.low;
  add("step_time", step_seconds, "s", true);
  add("flops_rate", flops / step_seconds, "FLOP/s", true);
  add("compute_utilization", peak_seconds / step_seconds, "", true);
  return metrics;
}

namespace {

double score(const Machine& machine, const Graph& graph, PredictSettings settings,
             const std::vector<int>& shares) {
  settings.pipeline = shares;
  const Prediction prediction = predict(machine, graph, settings);
  double overflow = 0;
  for (const Stage& stage : prediction.stages)
    overflow += std::max(0.0, stage.memory.fullest_tile - stage.memory.tile_limit) /
                std::max(1.0, stage.memory.tile_limit);
  return prediction.step_seconds * (1 + 10 * overflow);
}

int count_layers(const Machine& machine, const Graph& graph, const PredictSettings& settings) {
  const auto works = works_of(graph, settings.precision, cost_model(machine)->work_options());
  int layers = 0;
  for (const Work& work : works)
    layers += work.phase == Phase::forward && work.weight_bytes > 0 &&
              (work.kind == WorkKind::product || work.kind == WorkKind::recurrent);
  return layers;
}

// Of a micro-batch, each layer alone: a pipeline in which every stage has one.
std::vector<double> layer_seconds(const Machine& machine, const Graph& graph, PredictSettings settings,
                                  int layers) {
  settings.pipeline.assign(static_cast<std::size_t>(layers), 1);
  std::vector<double> seconds;
  for (const Stage& stage : predict_as_is(machine, graph, settings).stages)
    seconds.push_back(stage.forward_backward.total());
  return seconds;
}

// Neighbours in groups whose largest sum is least, by dynamic programming: how many are in each.
std::vector<int> grouped(const std::vector<double>& values, int groups) {
  const std::size_t count = values.size(), parts = static_cast<std::size_t>(groups);
  std::vector<double> before(count + 1, 0.0);
  for (std::size_t i = 0; i < count; ++i) before[i + 1] = before[i] + values[i];
  // largest[g][n]: of the first n values in g groups; first[g][n]: where the last of these groups begins.
  std::vector largest(parts + 1, std::vector<double>(count + 1, std::numeric_limits<double>::infinity()));
  std::vector first(parts + 1, std::vector<std::size_t>(count + 1, 0));
  largest[0][0] = 0;
  for (std::size_t g = 1; g <= parts; ++g)
    for (std::size_t n = g; n <= count; ++n)
      for (std::size_t begin = g - 1; begin < n; ++begin) {
        const double found = std::max(largest[g - 1][begin], before[n] - before[begin]);
        if (found >= largest[g][n]) continue;
        largest[g][n] = found;
        first[g][n] = begin;
      }
  std::vector<int> sizes(parts);
  for (std::size_t g = parts, end = count; g > 0; end = first[g][end], --g)
    sizes[g - 1] = static_cast<int>(end - first[g][end]);
  return sizes;
}

}  // namespace

std::vector<int> balanced_pipeline(const Machine& machine, const Graph& graph,
                                   const PredictSettings& settings, int stages) {
  const int layers = count_layers(machine, graph, settings);
  if (stages < 1 || stages > std::max(1, layers))
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{} pipeline stages cannot be made of {} layers", stages, layers), "prediction");
  std::vector<int> even(static_cast<std::size_t>(stages), layers / stages);
  for (int i = 0; i < layers % stages; ++i) ++even[static_cast<std::size_t>(i)];
  std::vector<int> shares = even;
  double best = score(machine, graph, settings, even);
  // Moving one layer across one border may leave the slowest stage as it is, and stop far from the best
  // split: it begins at the better of two.
  const std::vector<int> by_time = grouped(layer_seconds(machine, graph, settings, layers), stages);
  if (const double found = score(machine, graph, settings, by_time); found < best) {
    best = found;
    shares = by_time;
  }
  for (bool better = true; better;) {
    better = false;
    for (std::size_t border = 0; border + 1 < shares.size(); ++border)
      for (int direction : {-1, 1}) {
        std::vector<int> moved = shares;
        moved[border] += direction;
        moved[border + 1] -= direction;
        if (moved[border] < 1 || moved[border + 1] < 1) continue;
        const double found = score(machine, graph, settings, moved);
        if (found >= best) continue;
        best = found;
        shares = moved;
        better = true;
      }
  }
  return shares;
}

std::int64_t largest_micro_batch(const Machine& machine, const std::function<Graph(std::int64_t)>& graph_at,
                                 PredictSettings settings, std::int64_t most) {
  const auto fits = [&](std::int64_t batch) {
    settings.micro_batch = batch;
    return predict(machine, graph_at(batch), settings).fits;
  };
  if (!fits(1)) return 0;
  std::int64_t low = 1, high = 2;
  while (high <= most && fits(high)) low = high, high *= 2;
  if (high > most) return low;
  while (high - low > std::max<std::int64_t>(1, low / 16)) {
    const std::int64_t middle = low + (high - low) / 2;
    (fits(middle) ? low : high) = middle;
  }
  return low;
}

}  // namespace superstep::machine
