// A task over the arrays of a source: what a user's own model is trained on.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "superstep/file/source/sample_source.h"
#include "superstep/file/source/scaled_source.h"
#include "superstep/run/task.h"
#include "superstep/run/user/arrays.h"
#include "superstep/run/user/augmentation.h"
#include "superstep/run/user/metrics.h"
#include "superstep/transform/training/loss.h"

namespace superstep::run {

struct ArrayTaskSpec {
  // What one input of the model takes from the array of its name.
  struct Input {
    std::string name;
    ElementType element = ElementType::f32;
    Shape shape;          // of one sample where `batched`, else of the whole array
    bool batched = true;  // axis 0 of the array numbers the samples
  };
  // How a term of the loss, and the metrics of it, compare an output with a target.
  struct Comparison {
    transform::LossTerm term;
    std::vector<std::string> metrics;          // run/user/metrics.h
    std::optional<std::size_t> variance = {};  // position of the output that has it
    std::optional<std::size_t> mask = {};      // position among the targets of what each element counts
    std::optional<std::size_t> positive = {}, negative = {};  // positions of outputs: of a triplet
    std::optional<std::size_t> input_lengths = {},
                               target_lengths = {};  // positions among the targets: of ctc
  };
  // What the loss takes beside the inputs: what it compares an output with, or what samples or elements
  // count.
  struct Target {
    std::vector<std::string> names;  // of the array, the first that the file has
    graph::ValueType type;           // of one sample, with an axis 0 of extent 1 where samples have one
    std::size_t output = 0;          // position among the model's outputs
    std::int64_t classes = 0;        // of labels: 0 to classes - 1; 0: not labels
    std::int64_t longest = 0;        // of lengths: 0 to longest; 0: not lengths
    std::string label = {};          // in names of metrics; empty where there is only one term
    std::vector<Comparison> compared = {};  // none of weights and masks
  };
  // An output that is itself a term of the loss, or is compared with other outputs alone.
  struct Value {
    std::size_t output = 0;
    std::string label;                        // as of a target
    std::optional<Comparison> compared = {};  // with other outputs; none: its mean is the quality
  };
  std::vector<Input> inputs;
  std::vector<Target> targets;
  std::vector<Value> values;
  bool allow_not_finite = false;                 // NaN and infinities in arrays that are trained on
  std::vector<Augmentation> augmentations = {};  // of what trains
  std::vector<data::Scaling> scalings = {};      // what the source has been scaled by
  double training_share = 0.8;                   // the first samples train, the rest validate
  // All that the model takes and gives is one sample. Arrays have an axis more, which numbers the samples, or
  // none: an input is then the same for all samples, a target that of the only one.
  bool one_a_call = false;
};

// What the quality of such a task consists of, in its order.
std::vector<workload::MetricSpec> metrics_of(const ArrayTaskSpec& spec);

// Checks the arrays against the spec: all of their elements where they fit into the memory for data, else
// those that are read, as they are read. An integer input takes only whole numbers. Without targets in the
// arrays, or with targets of other shapes, the task has no labels, which is an error where
// `settings.labels_required`. Throws Error (bad_file) naming file and array.
//
// Quality: the metrics of each target; of an output that is a loss its mean.
std::unique_ptr<Task> make_array_task(const ArrayTaskSpec& spec,
                                      std::shared_ptr<const data::SampleSource> source,
                                      const std::string& where, const TaskSettings& settings);
// Over arrays in memory.
std::unique_ptr<Task> make_array_task(const ArrayTaskSpec& spec, const NamedTensors& arrays,
                                      const std::string& where, const TaskSettings& settings);

}  // namespace superstep::run
