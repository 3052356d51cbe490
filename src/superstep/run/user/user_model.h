// A user's ONNX file in the place of a workload: served and trained like one of the zoo.
//
// Samples lie along the first axis of the inputs whose first extent the file leaves open (a symbol, or
// nothing); a file that fixes the first extent of all its inputs has that one batch. Other open extents are
// taken from `shapes`, else from the data, else they are 1.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "superstep/onnx/model.h"
#include "superstep/run/user/array_task.h"
#include "superstep/run/user/arrays.h"
#include "superstep/workload/workload.h"

namespace superstep::run {

struct UserModelSettings {
  std::filesystem::path file;
  std::vector<std::string> shapes;  // "x=-1,3,224,224": an input (-1: as the file or the data say);
                                    // "length=64": a symbol
  std::string loss;                 // "mse", "cross_entropy", or terms: "mse:position,l1:width"; empty: mse
  std::filesystem::path data;       // arrays by the names of the inputs and of the targets; may be empty
};

// Whether what stands where a workload is expected is a model file: it ends with .onnx.
bool is_model_file(const std::string& name);

class UserModel {
 public:
  // Throws Error: not_found, bad_file, unsupported (naming node, operator and opset), invalid_argument (a
  // binding or a loss that does not fit the model).
  explicit UserModel(UserModelSettings settings);

  // With a build function, a loss and names like those of the zoo; floating initialisers are its parameters.
  const workload::Workload& workload() const { return workload_; }
  std::int64_t fixed_batch() const { return fixed_batch_; }  // 0: any
  // Throws Error (invalid_argument) on a batch that the file does not allow.
  void require_batch(std::int64_t batch) const;
  // The graph at a batch, its floating initialisers as state. Throws what require_batch() throws.
  graph::Graph build(std::int64_t batch) const;

  // The data; without any, random inputs (uniform in [0, 1), whole numbers 0 or 1) and no labels.
  std::unique_ptr<Task> open_task(const TaskSettings& settings) const;

 private:
  struct Port {
    std::string name;
    graph::ValueType type;  // at batch 1, or at the fixed batch
    bool batched = false;
  };

  void find_batch();
  void bind(const std::string& assignment);
  void bind_to_data();
  void find_ports();
  void describe();
  transform::LossTerm parse_term(std::string_view text) const;
  const Port& output_of(const transform::LossTerm& term) const;
  ArrayTaskSpec task_spec() const;
  NamedTensors random_inputs(std::int64_t samples, std::uint64_t seed) const;

  UserModelSettings settings_;
  onnx::Model model_;
  // What every import starts from: extents by input (axis 0 of a batched one is filled in), and symbols.
  std::map<std::string, std::vector<std::int64_t>, std::less<>> shapes_;
  std::map<std::string, std::int64_t, std::less<>> symbols_;
  std::vector<bool> batched_;  // by input of the file
  std::int64_t fixed_batch_ = 0;
  NamedTensors arrays_;
  std::vector<Port> inputs_, outputs_;
  transform::LossSpec loss_;
  workload::Workload workload_;
};

}  // namespace superstep::run
