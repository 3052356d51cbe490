// A user's ONNX file in the place of a workload: served and trained like one of the zoo.
//
// Samples lie along the first axis of the inputs whose first extent the file leaves open (a symbol, or
// nothing); a file that fixes the first extent of all its inputs has that one batch. Where first extents
// differ (the nodes and the edges of a graph), or arrays have an axis more than the inputs, all that the
// model takes is one sample: arrays of several samples have a first axis for them. Other open extents are
// taken from `shapes`, else from the data, else they are 1.
#pragma once

#include <filesystem>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "superstep/file/source/fit.h"
#include "superstep/file/source/request.h"
#include "superstep/onnx/model.h"
#include "superstep/run/user/array_task.h"
#include "superstep/run/user/arrays.h"
#include "superstep/workload/workload.h"

namespace superstep::run {

struct UserModelSettings {
  std::filesystem::path file;
  std::vector<std::string> shapes;  // "x=-1,3,224,224": an input (-1: as the file or the data say);
                                    // "length=64": a symbol
  std::vector<std::string> keep =
      {};  // values, or nodes, by name, * and ? in it: outputs beside the model's own
  std::vector<std::string> bounds;  // "NODE=100", "*=all": how long results may be whose length the data say
  std::string loss = {};            // transform/training/loss_text.h: "mse:position,l1:width"; empty: mse
  std::string metrics = {};         // run/user/metrics.h; empty: those of the loss
  onnx::TrainChoice choice;    // initialisers that are trained beside the weights, and weights that are not
  std::filesystem::path data;  // arrays by the names of the inputs and of the targets; may be empty
  std::filesystem::path validation = {};  // the same of the samples that validate; empty: a fifth of `data`
  bool allow_not_finite = false;          // NaN and infinities in arrays that are trained on
  bool skip_broken = false;               // samples that cannot be read are left out
  int folds = 0;                          // parts of the data, of which one validates; 0: a fifth does
  bool crop = false;                      // of larger pictures than the model takes the middle is taken
  std::vector<data::Scaling> scalings = {};      // of arrays of the data
  std::vector<Augmentation> augmentations = {};  // of what trains
};

// "NODE=100" or "NODE=all", as --bound takes them. Throws Error (invalid_argument).
onnx::Bound bound_from(const std::string& text);

// Whether what stands where a workload is expected is a model file, by its name (onnx/model.h).
bool is_model_file(const std::string& name);

class UserModel {
 public:
  // Throws Error: not_found, bad_file, unsupported (naming node, operator and opset), invalid_argument (a
  // binding or a loss that does not fit the model).
  explicit UserModel(UserModelSettings settings);

  // With a build function, a loss and names like those of the zoo; what is trained (onnx/parameters.h) are
  // its parameters.
  const workload::Workload& workload() const { return workload_; }
  std::int64_t fixed_batch() const { return fixed_batch_; }  // 0: any
  // Whether a call takes one sample: arrays of samples have an axis more than the inputs.
  bool one_a_call() const { return one_a_call_; }
  // Whether the arrays that were given have such an axis.
  bool numbers_samples() const { return one_a_call_ && arrays_have_an_axis_more(); }
  // Outputs without a row for each sample of a batch: they are what the whole call gave.
  const std::vector<std::string>& whole_outputs() const { return whole_outputs_; }
  std::int64_t smallest_batch() const { return fixed_batch_ > 0 ? fixed_batch_ : 1; }
  // Throws Error (unsupported) where nothing is trained, or the loss is of an output of a whole batch.
  void require_trainable() const;
  // Why a file that leaves the batch open has a fixed one all the same; empty where it has not.
  const std::string& why_fixed() const { return why_fixed_; }
  const std::string& why_not_served() const { return why_not_served_; }  // empty: it is served
  // Throws Error (invalid_argument) on a batch that the file does not allow.
  void require_batch(std::int64_t batch) const;
  // What becomes of each of its floating initialisers.
  const std::vector<onnx::Initializer>& initializers() const { return initializers_; }
  // The graph at a batch, what is trained as state; of the batches that were asked for last it is not
  // imported again. Any thread may ask. Throws what require_batch() throws.
  graph::Graph build(std::int64_t batch) const;

  // The data; without any, random inputs (uniform in [0, 1), whole numbers 0 or 1) and no labels.
  std::unique_ptr<Task> open_task(const TaskSettings& settings) const;

 private:
  struct Port {
    std::string name;
    graph::ValueType type;  // at batch 1, or at the fixed batch
    bool batched = false;   // has a row a sample on its first axis
  };

  // Shared by copies of a model: large initialisers stay in the file, so that a graph that is kept takes
  // little.
  struct Imports {
    std::mutex mutex;
    std::vector<std::pair<std::int64_t, onnx::Model::WithInitializers>> latest;  // by batch, the newest last
  };

  onnx::ImportOptions options(std::int64_t batch) const;
  data::SourceRequest wanted_data() const;
  std::unique_ptr<data::SampleSource> open_data() const;
  std::vector<data::WantedRow> samples_wanted() const;
  onnx::Model::WithInitializers imported(std::int64_t batch) const;
  void take_given_defaults();
  bool is_whole(const onnx::Port& port) const;
  void find_batch();
  bool takes_one_a_call() const;
  bool arrays_have_an_axis_more() const;
  void take_one_a_call();
  void settle_batch();
  bool has_rows(const std::string& output, const Shape& shape, std::int64_t batch) const;
  bool is_training_step(const graph::Graph& graph) const;
  std::int64_t usual_batch() const;
  void bind(const std::string& assignment);
  void bind_to_data();
  void find_ports();
  void keep_values(graph::Graph& graph) const;
  void describe();
  void settle(transform::LossTerm& term) const;
  std::int64_t longest_labels(const transform::LossTerm& term) const;
  const Port& output_of(const std::string& name, const std::string& where = {}) const;
  std::size_t position_of(const Port& output) const;
  void add_targets(const transform::LossTerm& term, const std::vector<MetricChoice>& chosen,
                   ArrayTaskSpec& spec) const;
  ArrayTaskSpec::Comparison comparison_of(const transform::LossTerm& term, ArrayTaskSpec& spec) const;
  void add_value(const transform::LossTerm& term, const std::vector<MetricChoice>& chosen,
                 ArrayTaskSpec& spec) const;
  std::vector<std::string> metrics_of_term(const transform::LossTerm& term,
                                           const std::vector<MetricChoice>& chosen,
                                           const std::vector<ArrayTaskSpec::Comparison>& before) const;
  void require_chosen(const std::vector<MetricChoice>& chosen, const ArrayTaskSpec& spec) const;
  ArrayTaskSpec task_spec() const;
  NamedTensors random_inputs(std::int64_t samples, std::uint64_t seed) const;

  UserModelSettings settings_;
  onnx::Model model_;
  // What every import starts from: extents by input (axis 0 of a batched one is filled in), and symbols.
  std::map<std::string, std::vector<std::int64_t>, std::less<>> shapes_;
  std::map<std::string, std::int64_t, std::less<>> symbols_;
  std::vector<onnx::Bound> bounds_;
  std::set<std::string> given_;  // inputs that have an initialiser and are given all the same
  std::vector<bool> batched_;    // by input of the file
  std::shared_ptr<Imports> imports_ = std::make_shared<Imports>();
  std::int64_t fixed_batch_ = 0;
  bool one_a_call_ = false;
  std::set<std::string> rows_;  // outputs whose first extent is the batch, of a file that leaves it open
  std::vector<std::string> whole_outputs_;
  std::string why_fixed_, why_not_served_;
  std::shared_ptr<const data::SampleSource> source_;  // null: no data
  std::vector<Port> inputs_, outputs_;
  std::vector<onnx::Initializer> initializers_;
  transform::LossSpec loss_;
  workload::Workload workload_;
};

}  // namespace superstep::run
