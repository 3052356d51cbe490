// A wall model for large-eddy simulation of film-cooled turbine blades: the shear stress at the wall from
// what is known of the flow at a point above it (ANL-23/15, 2022 AI Testbed Expeditions Report).
//
// features f32 [N, 16 a point of the stencil] -> tau f32 [N, 1], both in the units of the data.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "superstep/baseline/flow/wall.h"
#include "superstep/baseline/regression.h"
#include "superstep/op/elementwise/arithmetic.h"
#include "superstep/physics/flow/wall_flow.h"
#include "superstep/physics/flow/wall_generator.h"
#include "superstep/transform/training/training_form.h"
#include "superstep/workload/flow/wallmodel/wallmodel.h"
#include "superstep/workload/layers.h"
#include "superstep/workload/metrics.h"

namespace superstep::workload {
namespace {

using data::wall_features;

// --- the model

std::int64_t features_of(const Options& options) { return options.integer("stencil", 1, 5) * wall_features; }

// Counted on the training points before the first step: the middle and half the range of what comes in and of
// what comes out, so that both lie between -1 and 1 within the network.
std::string counted(const char* name) { return std::string(transform::counted_prefix) + name; }

graph::Graph build_wallmodel(std::int64_t batch, const Options& options, std::uint64_t seed) {
  const std::int64_t width = features_of(options);
  const double dropped = options.number("dropout", 0, 0.9);
  graph::Graph graph("wallmodel");
  Builder b(graph);
  Layers layers(b, seed);
  const Var features = b.input("features", ElementType::f32, {batch, width});
  const Var middle = layers.zeros(counted("features.middle"), {width});
  const Var inverse = layers.filled(counted("features.inverse_reach"), {width}, 1);
  b.set_name("scale");
  Var y = (features - middle) * inverse;
  for (int i = 1; i <= 3; ++i) {
    const std::string name = fmt::format("fc{}", i);
    y = layers.relu(layers.dense(y, name, 64));
    if (dropped > 0) y = layers.dropout(y, name + ".dropout", dropped);
  }
  y = layers.dense(y, "fc4", 1);
  const Var reach = layers.filled(counted("tau.reach"), {1}, 1);
  const Var centre = layers.zeros(counted("tau.middle"), {1});
  b.set_name("unscale");
  b.output("tau", y * reach + centre);
  b.set_name({});
  return graph;
}

struct Ranges {
  Tensor middle, reach;  // of each column; a reach of 1 where nothing varies
};

Ranges ranges_of(const Tensor& rows) {
  const std::int64_t width = rows.shape()[1], count = rows.shape()[0];
  Ranges ranges{Tensor(ElementType::f32, {width}), Tensor(ElementType::f32, {width})};
  for (std::int64_t k = 0; k < width; ++k) {
    double low = std::numeric_limits<double>::infinity(), high = -low;
    for (std::int64_t i = 0; i < count; ++i) {
      low = std::min(low, rows.at(i * width + k));
      high = std::max(high, rows.at(i * width + k));
    }
    ranges.middle.set(k, count > 0 ? (low + high) / 2 : 0);
    ranges.reach.set(k, high > low ? (high - low) / 2 : 1);
  }
  return ranges;
}

std::map<std::string, Tensor> count_ranges(const Task& task, const Options& options, ThreadPool&) {
  const std::vector<std::int64_t> known = first_samples(task.training_count());
  const auto rows = static_cast<std::int64_t>(known.size());
  std::array batch{Tensor(ElementType::f32, {rows, features_of(options)}),
                   Tensor(ElementType::f32, {rows, 1})};
  task.fill(known, 0, false, batch);
  const Ranges in = ranges_of(batch[0]), out = ranges_of(batch[1]);
  Tensor inverse(ElementType::f32, in.reach.shape());
  for (std::int64_t k = 0; k < inverse.element_count(); ++k) inverse.set(k, 1 / in.reach.at(k));
  return {{counted("features.middle"), in.middle},
          {counted("features.inverse_reach"), inverse},
          {counted("tau.middle"), out.middle},
          {counted("tau.reach"), out.reach}};
}

// --- quality and references

std::vector<double> stresses(const Tensor& tau, std::span<const std::int64_t> indices) {
  std::vector<double> values;
  for (const std::int64_t index : indices) values.push_back(tau.at(index));
  return values;
}

std::vector<double> found_stresses(const Tensor& output) {
  const auto values = output.as<float>();
  return {values.begin(), values.end()};
}

std::vector<Metric> quality_of_stresses(const Fields& fields, std::span<const std::int64_t> indices,
                                        std::span<const Tensor> outputs) {
  const baseline::RegressionScore found =
      baseline::score(stresses(fields.at("tau"), indices), found_stresses(outputs[0]));
  return {quality_metric("pearson", found.pearson), quality_metric("mse", found.rmse * found.rmse)};
}

// By a method that needs no training, which takes the profile where the wall equation does not settle.
double pearson_of_method(baseline::WallMethod method, const TableSamples& samples) {
  const Tensor &features = samples.fields.at("features"), &position = samples.fields.at("position");
  const auto width = static_cast<std::size_t>(features.shape()[1]);
  std::vector<double> found(samples.indices.size());
  samples.pool.parallel_for(static_cast<std::int64_t>(found.size()), [&](std::int64_t item, int) {
    const auto at = static_cast<std::size_t>(item);
    const auto point = static_cast<std::size_t>(samples.indices[at]);
    const auto own = features.as<float>().subspan(point * width, wall_features);
    const double height = position.at(static_cast<std::int64_t>(3 * point + 1));
    try {
      found[at] = baseline::wall_stress(method, own, height, data::wall_viscosity);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::diverged) throw;
      found[at] = baseline::wall_stress(baseline::WallMethod::profile, own, height, data::wall_viscosity);
    }
  });
  return baseline::score(stresses(samples.fields.at("tau"), samples.indices), found).pearson;
}

// `exact`: the stresses are those of the wall equation, whose sources are measured with noise.
References wall_equations(const TableSamples& samples, bool exact) {
  using enum baseline::WallMethod;
  return {.floor = Reference{"the law of the wall inverted", pearson_of_method(profile, samples)},
          .conventional =
              exact ? Reference{"the wall equation with its sources", pearson_of_method(gradients, samples)}
                    : Reference{"the equilibrium wall equation", pearson_of_method(equilibrium, samples)},
          .limit = {},
          .target = {}};
}

std::string present_stresses(const Fields& fields, const Predictions& found, page::Page& page) {
  const Regression stress{
      .quantity = "Stress at the wall",
      .unit = "",
      .truth = stresses(fields.at("tau"), found.indices),
      .found = found_stresses(found.outputs[0]),
      .samples = {found.indices.begin(), found.indices.end()},
      .spread = found.spread.empty() ? std::vector<double>() : found_stresses(found.spread[0])};
  present_regression(page, stress);
  if (const auto position = fields.find("position"); position != fields.end())
    present_wall_maps(page, position->second, stress, found.indices);
  return {};
}

// --- data

std::unique_ptr<Task> open_wall_points(const TaskSettings& settings, const Options& model) {
  const std::vector<std::string> generator = {"level=" + model.text("level"),
                                              fmt::format("stencil={}", model.integer("stencil", 1, 5)),
                                              "blowing=" + model.text("blowing")};
  const bool exact = settings.data.empty() && model.text("level") == "b";
  TableSpec spec{
      .generator = "wallmodel",
      .settings = generator,
      .default_samples = 16384,
      .group = "snapshot",
      .inputs = {{"features"}},
      .targets = {{"tau"}},
      .more = {},
      .quality = quality_of_stresses,
      .spread_of = "tau",
      .present = present_stresses,
      .references = [exact](const TableSamples& samples) { return wall_equations(samples, exact); },
      .reference_seconds = 0.2,  // on two threads
      .reference_fields = {"position"}};
  if (settings.data.empty()) return open_table_task(std::move(spec), settings);
  Fields fields = read_wall_points(settings, features_of(model));
  return open_table_task(std::move(spec), std::move(fields), settings);
}

}  // namespace

Workload wallmodel() {
  // Stresses are some 3e-3 in the units of the free stream: the weight makes of their squares what they are
  // between -1 and 1, about.
  const transform::LossSpec loss{{transform::LossTerm{.kind = transform::LossKind::mse, .weight = 1e5}}};
  return {
      .name = "wallmodel",
      .summary = "shear stress at a film-cooled wall from the flow at a point above it",
      .options = {{"level", "b",
                   "of the generated data: a, a kinematic flow, b, columns of the wall equation"},
                  {"stencil", "1", "points per sample, 1 to 5: the point and, at level a, its neighbors"},
                  {"blowing", "1", "of the generated data: blowing ratio of the jet"},
                  {"dropout", "0", "share of a hidden layer's outputs that training drops"}},
      .build = build_wallmodel,
      .parameters = 9473,
      .flops = 18979,
      .inputs = {{"features",
                  ElementType::f32,
                  {wall_features},
                  "",
                  "velocity 3, its gradient 9, pressure gradient 3, density"}},
      .outputs = {{"tau", ElementType::f32, {1}, "", "shear stress at the wall along x"}},
      .targets = {{"target", ElementType::f32, {1}, "", "shear stress at the wall along x"}},
      .training = {.batch = 64,
                   .epochs = 40,
                   .loss = loss,
                   .optimizer = {.kind = transform::OptimizerKind::adam},
                   .learning_rate = 2e-3,
                   .schedule = {.kind = Schedule::Kind::cosine}},
      // Neither the batch nor how long it waits before it stops early was published: chosen here.
      .published =
          Recipe{.batch = 64,
                 .epochs = 500,
                 .loss = loss,
                 .optimizer = {.kind = transform::OptimizerKind::adam},
                 .learning_rate = 2e-4,
                 .schedule = {.kind = Schedule::Kind::plateau,
                              .factor = 0.5,
                              .patience = 20,
                              .monitor = "mse",
                              .give_up = 50},
                 .model_options = {"dropout=0.1"},
                 .source = "ANL-23/15, wall model of film cooling; batch and early stop chosen here"},
      .by_default = RecipeName::quick,
      .open = open_wall_points,
      .fit = count_ranges,
      .metrics = {{"pearson", "", true}, {"mse", ""}},
      .target = QualityTarget{.metric = "pearson", .value = 0.95, .higher_is_better = true},
  };
}

}  // namespace superstep::workload
