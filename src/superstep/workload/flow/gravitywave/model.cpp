// The drag of gravity waves that do not come from mountains on the wind of a column of air, in place of the
// scheme that a weather model calls for every column at every step (M. Chantry et al., J. Adv. Model. Earth
// Syst. 13, e2021MS002477, 2021: profiles of both winds and temperature and two numbers of the column go in,
// increments of both winds come out). Width and number of the layers are chosen here.
//
// u, v, temperature f32 [N, 63], source f32 [N, 2] -> drag_u, drag_v f32 [N, 63], all in the units of the
// data.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "superstep/op/elementwise/arithmetic.h"
#include "superstep/op/move/movement.h"
#include "superstep/op/rows/reduction.h"
#include "superstep/transform/training/training_form.h"
#include "superstep/workload/flow/gravitywave/gravitywave.h"
#include "superstep/workload/layers.h"
#include "superstep/workload/metrics.h"

namespace superstep::workload {
namespace {

constexpr std::int64_t default_levels = 63;
constexpr std::array input_names{"u", "v", "temperature", "source"};
constexpr std::array output_names{"drag_u", "drag_v"};

std::int64_t levels_of(const Options& options) { return options.integer("levels", 13, 1024); }

std::int64_t width_of(const char* input, std::int64_t levels) {
  return input == std::string_view("source") ? 2 : levels;
}

// --- the model

// Counted on the training columns before the first step.
std::string state_name(const std::string& port, const char* what) {
  return std::string(transform::counted_prefix) + port + "." + what;
}

// Every number less its mean over the training columns, in deviations.
Var standardised(Builder& b, Layers& layers, const char* name, std::int64_t batch, std::int64_t width) {
  const Var x = b.input(name, ElementType::f32, {batch, width});
  const Var mean = layers.zeros(state_name(name, "mean"), {width});
  const Var inverse = layers.filled(state_name(name, "inverse_deviation"), {width}, 1);
  const op::NameScope scope(b, std::string(name) + ".scale");
  return (x - mean) * inverse;
}

graph::Graph build_gravity_wave_drag(std::int64_t batch, const Options& options, std::uint64_t seed) {
  const std::int64_t levels = levels_of(options), width = options.integer("width", 1, 8192);
  const double dropped = options.number("dropout", 0, 0.9);
  graph::Graph graph("gravity-wave-drag");
  Builder b(graph);
  Layers layers(b, seed);
  std::vector<Var> seen;
  for (const char* name : input_names)
    seen.push_back(standardised(b, layers, name, batch, width_of(name, levels)));
  b.set_name("column");
  Var y = op::concat(seen, 1);
  b.set_name({});
  for (std::int64_t i = 1; i <= options.integer("layers", 1, 64); ++i) {
    const std::string name = fmt::format("fc{}", i);
    y = layers.silu(layers.dense(y, name, width));
    if (dropped > 0) y = layers.dropout(y, name + ".dropout", dropped);
  }
  for (const char* name : output_names) {
    const Var said = layers.dense(y, name, levels);
    const Var deviation = layers.filled(state_name(name, "deviation"), {levels}, 1);
    const Var mean = layers.zeros(state_name(name, "mean"), {levels});
    const op::NameScope scope(b, std::string(name) + ".unscale");
    b.output(name, said * deviation + mean);
  }
  return graph;
}

// Of one deviation each level counts the same: air of the mesosphere is pushed a thousand times as hard as
// that of the lower stratosphere. The weights come with the data: one over the deviation of the training
// columns, nothing below the launch.
Var squares_in_deviations(transform::LossPorts& ports) {
  std::vector<Var> terms;
  for (const char* name : output_names) {
    const Var found = ports.output(name);
    const Var truth = ports.target(std::string(name) + "_target", found.type());
    const Var weight = ports.target(std::string(name) + "_weight", found.type());
    const Var off = (found - truth) * weight;
    terms.push_back(op::reduce_mean(off * off));
  }
  return terms[0] + terms[1];
}

// --- what is counted

struct Moments {
  std::vector<double> mean, deviation;  // of each column of a table
};

Moments moments_of(const Tensor& rows, std::int64_t count) {
  const std::int64_t width = rows.shape()[1];
  Moments moments{std::vector<double>(static_cast<std::size_t>(width)),
                  std::vector<double>(static_cast<std::size_t>(width))};
  for (std::int64_t k = 0; k < width && count > 0; ++k) {
    double sum = 0, squares = 0;
    for (std::int64_t i = 0; i < count; ++i) sum += rows.at(i * width + k);
    const double mean = sum / static_cast<double>(count);
    for (std::int64_t i = 0; i < count; ++i) squares += std::pow(rows.at(i * width + k) - mean, 2);
    moments.mean[static_cast<std::size_t>(k)] = mean;
    moments.deviation[static_cast<std::size_t>(k)] = std::sqrt(squares / static_cast<double>(count));
  }
  return moments;
}

// One over each; zero where nothing varies, so that nothing is made of what does.
std::vector<double> inverted(std::vector<double> values) {
  for (double& value : values) value = value > 0 ? 1 / value : 0;
  return values;
}

Tensor tensor_of(const std::vector<double>& values) {
  Tensor tensor(ElementType::f32, {static_cast<std::int64_t>(values.size())});
  for (std::size_t k = 0; k < values.size(); ++k) tensor.set(static_cast<std::int64_t>(k), values[k]);
  return tensor;
}

std::map<std::string, Tensor> count_moments(const Task& task, const Options& options, ThreadPool&) {
  const std::vector<std::int64_t> known = first_samples(task.training_count());
  const auto rows = static_cast<std::int64_t>(known.size());
  const std::int64_t levels = levels_of(options);
  std::vector<Tensor> batch;
  for (const char* name : input_names)
    batch.emplace_back(ElementType::f32, Shape{rows, width_of(name, levels)});
  for (int k = 0; k < 4; ++k) batch.emplace_back(ElementType::f32, Shape{rows, levels});
  task.fill(known, 0, false, batch);
  std::map<std::string, Tensor> states;
  for (std::size_t i = 0; i < input_names.size(); ++i) {
    const Moments moments = moments_of(batch[i], rows);
    states.emplace(state_name(input_names[i], "mean"), tensor_of(moments.mean));
    states.emplace(state_name(input_names[i], "inverse_deviation"), tensor_of(inverted(moments.deviation)));
  }
  for (std::size_t i = 0; i < output_names.size(); ++i) {
    const Moments moments = moments_of(batch[input_names.size() + 2 * i], rows);
    states.emplace(state_name(output_names[i], "mean"), tensor_of(moments.mean));
    states.emplace(state_name(output_names[i], "deviation"), tensor_of(moments.deviation));
  }
  return states;
}

// --- quality and references

std::vector<Metric> quality_of_drag(const Fields& fields, std::span<const std::int64_t> indices,
                                    std::span<const Tensor> outputs) {
  const baseline::DragScore score = baseline::score_drag(true_drag(fields, indices), found_drag(outputs));
  return {quality_metric("r2", score.r2), quality_metric("rmse", score.rmse, "m/s/day")};
}

References schemes_of_waves(const TableSamples& samples, const data::WaveSpectrum& spectrum) {
  // A line through so many has settled; chosen.
  const std::int64_t known = std::min<std::int64_t>(samples.training, 8192);
  const baseline::AirColumns air{samples.fields.at("u"), samples.fields.at("v"),
                                 samples.fields.at("temperature"), samples.fields.at("source")};
  const baseline::DragRows truth = true_drag(samples.fields, samples.indices);
  const auto r2 = [&](const baseline::DragRows& found) { return baseline::score_drag(truth, found).r2; };
  return {.floor = Reference{"ridge regression on the profiles",
                             r2(baseline::drag_of_a_line(air, true_drag(samples.fields, first_samples(known)),
                                                         known, samples.indices))},
          .conventional =
              Reference{fmt::format("the scheme itself, {} x {} waves", spectrum.azimuths, spectrum.speeds),
                        r2(baseline::drag_of_waves(air, samples.indices, spectrum, samples.pool))},
          .limit = {},
          .target = {}};
}

// --- data

// Weights are those of the columns that may be learnt from.
void add_weights(TableSpec& spec, const Fields& fields) {
  for (const char* name : output_names) {
    const auto field = fields.find(name);
    if (field == fields.end()) continue;  // columns whose drag is asked for
    const auto known =
        static_cast<std::int64_t>(spec.training_share * static_cast<double>(field->second.shape()[0]));
    const std::vector<double> weights = inverted(moments_of(field->second, known).deviation);
    const auto target = std::ranges::find_if(
        spec.targets, [&](const Column& column) { return column.make && column.field == name; });
    target->make = [weights](const Tensor&, std::int64_t, std::span<float> row) {
      for (std::size_t k = 0; k < row.size(); ++k) row[k] = static_cast<float>(weights.at(k));
    };
  }
}

// The image of a column in a mirror along the equator, whose drag is the mirror's image too.
void mirror(const Fields&, std::int64_t, RandomStream& random, std::span<Tensor> batch, std::size_t row) {
  if (random.below(2) == 0) return;
  constexpr std::size_t v = 1, drag_v_target = 6;  // of inputs and targets in their order
  for (const std::size_t mirrored : {v, drag_v_target}) {
    const auto width = static_cast<std::size_t>(batch[mirrored].shape()[1]);
    for (float& value : batch[mirrored].as<float>().subspan(row * width, width)) value = -value;
  }
}

std::unique_ptr<Task> open_air_columns(const TaskSettings& settings, const Options& model) {
  const std::int64_t levels = levels_of(model);
  const data::WaveSpectrum spectrum;
  const auto nothing = [](const Tensor&, std::int64_t, std::span<float>) {};
  return open_table_task(
      {.generator = "gravity-wave-drag",
       .settings = {fmt::format("levels={}", levels)},
       .default_samples = 40000,
       .inputs = {{"u"}, {"v"}, {"temperature"}, {"source"}},
       .targets = {{"drag_u"}, {"drag_u", nullptr, nothing}, {"drag_v"}, {"drag_v", nullptr, nothing}},
       .prepare = add_weights,
       .augment = mirror,
       .quality = quality_of_drag,
       .present = present_wave_drag,
       .references = [spectrum](const TableSamples& samples) { return schemes_of_waves(samples, spectrum); },
       .reference_seconds = 1},  // on two threads
      settings);
}

std::vector<PortSpec> drag_targets() {
  const Shape layers{default_levels};
  std::vector<PortSpec> targets;
  for (const std::string name : output_names) {
    targets.push_back({name + "_target", ElementType::f32, layers, "m/s/day", "the same, by the scheme"});
    targets.push_back({name + "_weight", ElementType::f32, layers, "day/(m/s)", "one over its deviation"});
  }
  return targets;
}

}  // namespace

baseline::DragRows found_drag(std::span<const Tensor> outputs) {
  return baseline::rows_of_drag(outputs[0], outputs[1], first_samples(outputs[0].shape()[0]));
}

baseline::DragRows true_drag(const Fields& fields, std::span<const std::int64_t> indices) {
  return baseline::rows_of_drag(fields.at("drag_u"), fields.at("drag_v"), indices);
}

Workload gravity_wave_drag() {
  const Shape layers{default_levels};
  return {
      .name = "gravity-wave-drag",
      .summary = "drag of gravity waves on a column of air, in place of a weather model's scheme",
      .options = {{"levels", "63", "layers of the column, 13 to 1024, of equal depth up to 63 km"},
                  {"width", "256", "of the hidden layers"},
                  {"layers", "5", "hidden layers"},
                  {"dropout", "0", "share of a hidden layer's outputs that training drops"}},
      .build = build_gravity_wave_drag,
      .parameters = 344702,
      .flops = 691192,
      .inputs = {{"u", ElementType::f32, layers, "m/s", "wind eastwards, from the ground up"},
                 {"v", ElementType::f32, layers, "m/s", "wind northwards"},
                 {"temperature", ElementType::f32, layers, "K", "of the same layers"},
                 {"source", ElementType::f32, {2}, "mPa, m/s", "flux of the waves, width of their spectrum"}},
      .outputs = {{"drag_u", ElementType::f32, layers, "m/s/day", "change of the wind eastwards"},
                  {"drag_v", ElementType::f32, layers, "m/s/day", "change of the wind northwards"}},
      .targets = drag_targets(),
      .training = {.batch = 128,
                   .epochs = 30,
                   .loss = {.terms = {}, .own = squares_in_deviations},
                   .optimizer = {.kind = transform::OptimizerKind::adam},
                   .learning_rate = 1e-3,
                   .schedule = {.kind = Schedule::Kind::cosine, .warm_up_share = 0.02}},
      .open = open_air_columns,
      .fit = count_moments,
      .metrics = {{"r2", "", true}, {"rmse", "m/s/day"}},
      // About what the scheme itself reaches with half its directions.
      .target = QualityTarget{.metric = "r2", .value = 0.85, .higher_is_better = true},
  };
}

}  // namespace superstep::workload
