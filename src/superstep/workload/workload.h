// The zoo: what every workload says about itself. One file a workload, with its model, its data, its quality
// and its pictures; the table is workload/workloads.cpp.
//
// Models are built in the form that is served; transform/training/training_step.h makes the training step of
// it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "superstep/base/options.h"
#include "superstep/base/thread_pool.h"
#include "superstep/file/weights/names.h"
#include "superstep/graph/graph.h"
#include "superstep/workload/recipe.h"

namespace superstep::workload {

// Builds a model for `batch` samples, along the first axis of every input. Parameter i, in the order of
// building, draws its initial values from RandomStream(seed, i): they do not depend on the batch.
using BuildModel =
    std::function<graph::Graph(std::int64_t batch, const Options& options, std::uint64_t seed)>;

// An input, an output or a target, under the default options.
struct PortSpec {
  std::string name;  // as in the graph, in ONNX files and, where there are any, in data files
  ElementType element = ElementType::f32;
  Shape shape;          // of one sample, without the batch axis
  std::string unit;     // "px"; empty for none
  std::string meaning;  // one line
};

struct MetricSpec {
  std::string name;  // as in the house's JSON: "error_px_mean", "accuracy"
  std::string unit;  // "px"; empty for fractions
  bool higher_is_better = false;
};

// What a trained model must reach on data it has not seen, on `metric`. `floor` is what a simple estimator
// reaches, `ceiling` the conventional method or the noise limit.
struct QualityTarget {
  std::string metric;
  double value = 0;
  bool higher_is_better = false;
  std::optional<double> floor, ceiling;
};

class Task;
struct TaskSettings;

// Opens the samples that the workload is trained and judged on (workload/task.h): a file of the user's, or
// what a generator makes for a model of these options. A table of fields is opened by workload/table.h.
using OpenData = std::function<std::unique_ptr<Task>(const TaskSettings& settings, const Options& model)>;

// States that are computed from the training samples rather than learnt, by name: a mean, a basis. Given the
// options that the model is built with; the same bits on any number of threads.
using FitStates =
    std::function<std::map<std::string, Tensor>(const Task& task, const Options& model, ThreadPool& pool)>;

// A graph that says one sample's answer in place of the model: with the model's inputs, every output of the
// model once more as the input "OUTPUT_start", and its outputs, which are those until an optimiser changes
// the parameters, zero at first.
using BuildAnswer = std::function<graph::Graph(const Options& options)>;

// What other programs' files of its weights call the states of a model: rules by these names. Empty: none do.
using NameWeights = std::span<const data::NameRule> (*)();

struct Workload {
  std::string name;     // as typed: "braggnn"
  std::string summary;  // one line
  std::vector<OptionSpec> options;
  BuildModel build = nullptr;
  std::int64_t parameters = 0;  // trainable scalars, under the default options
  std::int64_t flops = 0;       // of one sample through the model, under the same
  std::vector<PortSpec> inputs, outputs, targets;
  Recipe training;                            // the quick one
  std::optional<Recipe> published = {};       // what its authors trained it by
  RecipeName by_default = RecipeName::quick;  // of the two
  OpenData open = nullptr;
  BuildAnswer answer = nullptr;     // where a loss that asks for no label can refine what the model says
  FitStates fit = nullptr;          // before the first step of a training; may be empty
  std::vector<MetricSpec> metrics;  // all that its task measures; targets are set on the first
  std::optional<QualityTarget> target;
  // Where a sample is a pack: of what users and published epochs count, so many are in one, in the mean of
  // the generated data.
  double things_a_sample = 1;
  NameWeights weight_names = nullptr;
  bool takes_texts = false;  // its data may be texts, of which a tokenizer makes tokens (texts.h)
};

// All workloads, in the order `superstep list workloads` shows them.
std::span<const Workload> workloads();
const Workload& find_workload(std::string_view name);  // throws Error (invalid_argument), nearest name

// The workload's own recipe of this name; empty: the one that it is trained by unless the user says
// otherwise. Throws Error (invalid_argument) on a name that there is not, and where nothing was published.
const Recipe& find_recipe(const Workload& workload, std::string_view name);

// `assignments` of model options, with those of the recipe before them that they do not make themselves.
std::vector<std::string> with_options_of(const Recipe& recipe, std::span<const std::string> assignments);

// The model at a batch size. `assignments` are options of the model ("patch=13"). Throws Error
// (invalid_argument) on an unknown option, with the nearest one, and on a batch below 1.
graph::Graph build_model(const Workload& workload, std::int64_t batch,
                         std::span<const std::string> assignments = {}, std::uint64_t seed = 1);

// The answer to one sample as parameters. Throws Error (unsupported) where the workload's loss needs labels.
graph::Graph build_answer(const Workload& workload, std::span<const std::string> assignments = {});

// Trainable scalars of a model.
std::int64_t count_parameters(const graph::Graph& model);

}  // namespace superstep::workload
