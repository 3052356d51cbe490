// Superstep as a library: a model of the zoo or an ONNX file, compiled for this machine, run, trained,
// exported.
//
//     superstep::Model model("model.onnx");
//     superstep::Session session = model.compile({.batch = 4});
//     std::vector<superstep::Tensor> outputs = session.run({input});
//
// Everything that goes wrong is a superstep::Error: what, where, what to do. The library installs no signal
// handlers and writes nothing to the terminal. Objects are independent of each other; one object is used by
// one thread at a time. docs/library.md explains the whole.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "superstep/base/error.h"
#include "superstep/base/tensor.h"
#include "superstep/base/watch.h"  // set_interrupt_check, set_progress_listener

#pragma GCC visibility push(default)

namespace superstep {

std::string version();  // "0.2.0"
// Makes operators of a shared library of yours known (superstep/operator.h), for as long as the program
// lives; before models with them are opened. Throws Error: not_found, bad_file, invalid_argument.
void load_operators(const std::filesystem::path& library);
std::vector<std::string> zoo();      // names of the workloads that Model() knows
std::vector<std::string> targets();  // where models run: "cpu", ...

// An input, an output or a parameter. Extents are those of the batch that was asked for.
struct Port {
  std::string name;
  ElementType element = ElementType::f32;
  Shape shape;
};

// Tensors by name.
using NamedValues = std::map<std::string, Tensor>;

struct ModelSettings {
  std::vector<std::string> options;  // of a workload: "patch=13"
  std::vector<std::string>
      shapes;  // of an ONNX file, extents that it leaves open: "x=-1,3,224,224", "length=64"
  // Of an ONNX file: how long results may be whose length depends on the data, "NODE=100" or "*=all". Results
  // are padded to it; where a bound may be too small, an output "beyond_bounds" counts what found no room.
  std::vector<std::string> bounds;
  // Of an ONNX file that is trained: initialisers that are trained beside its weights, and weights that are
  // not;
  // * and ? in a name stand for any letters and for one.
  std::vector<std::string> train, freeze;
  // Of an ONNX file that is trained (docs/losses.md): "mse", "focal(gamma=2)", "value" (an output is itself
  // the loss: "value:NAME" where there are several), or several: "mse:position,0.1*l1:width"; empty: mse
  std::string loss;
  std::uint64_t seed = 1;  // of initial parameters and random masks
};

struct CompileSettings {
  std::int64_t batch = 1;         // samples that a call takes
  std::int64_t micro_batch = 0;   // that go through the model at a time; 0: the target chooses
  std::string precision = "f32";  // f32, bf16, f16 (inference alone), int8 (the same; needs `calibration`)
  std::string target = "cpu";
  int threads = 0;               // 0: every processor there is
  std::size_t memory_limit = 0;  // bytes that the plan may take in all; 0: no limit
  NamedValues calibration;       // int8: samples that ranges are taken from, by input, a row a sample
};

struct TrainerSettings {
  std::string optimizer;     // "sgd", "adam", "adamw", "adamax", "rmsprop", "lamb"; empty: the workload's own
  double learning_rate = 0;  // 0: the workload's own
};

struct OnnxSettings {
  int opset = 0;           // of the default domain; 0: the smallest that will do
  std::int64_t batch = 0;  // fixed; 0: left open where the model allows it
};

// What was compiled.
struct PlanFacts {
  std::int64_t batch = 0, micro_batch = 0;
  int threads = 0;
  double flops = 0;            // of one call
  std::size_t plan_bytes = 0;  // all that the plan takes; 0: not known
  double compile_seconds = 0;
};

// A model compiled for one batch: gives outputs for inputs.
class Session {
 public:
  Session(Session&&) noexcept;
  Session& operator=(Session&&) noexcept;
  ~Session();

  const std::vector<Port>& inputs() const;
  const std::vector<Port>& outputs() const;

  // In the order of the ports. Inputs are read where they lie, outputs are written where they lie. Throws
  // Error (invalid_argument) naming a port of another type or shape.
  void run(std::span<const Tensor> inputs, std::span<Tensor> outputs);
  std::vector<Tensor> run(const std::vector<Tensor>& inputs);
  NamedValues run(const NamedValues& inputs);

  std::vector<std::string> parameter_names() const;
  Tensor parameter(std::string_view name) const;
  void set_parameter(std::string_view name, const Tensor& value);

  PlanFacts plan() const;

 private:
  friend class Model;
  class __attribute__((visibility("hidden"))) Implementation;
  explicit Session(std::unique_ptr<Implementation> implementation);
  std::unique_ptr<Implementation> implementation_;
};

// A training step compiled for one batch: forward, loss, backward and optimiser in one call.
class Trainer {
 public:
  Trainer(Trainer&&) noexcept;
  Trainer& operator=(Trainer&&) noexcept;
  ~Trainer();

  const std::vector<Port>& inputs() const;  // the model's inputs, then the targets of its loss

  // One step on one batch, `values` in the order of inputs(). Gives the loss before the step. Throws Error
  // (diverged) when it is not finite. A learning rate of 0 is that of the settings.
  double step(std::span<const Tensor> values, double learning_rate = 0);
  double step(const NamedValues& values, double learning_rate = 0);
  std::int64_t steps() const;  // made so far, those before a restore() included

  std::vector<std::string> parameter_names() const;
  Tensor parameter(std::string_view name) const;
  void set_parameter(std::string_view name, const Tensor& value);

  // Parameters, moments and counters: a trainer that restores the file goes on as if it had never stopped.
  void save(const std::filesystem::path& file) const;
  void restore(const std::filesystem::path& file);

  PlanFacts plan() const;

 private:
  friend class Model;
  class __attribute__((visibility("hidden"))) Implementation;
  explicit Trainer(std::unique_ptr<Implementation> implementation);
  std::unique_ptr<Implementation> implementation_;
};

// A model with its parameters, at any batch.
class Model {
 public:
  // The name of a workload (`superstep list workloads`), or an ONNX file (its name ends with .onnx). Throws
  // Error: not_found, bad_file, unsupported (naming node, operator and operator set), invalid_argument.
  explicit Model(const std::string& what, const ModelSettings& settings = {});
  // What a training run left in its folder: the model as it was trained, with its best parameters.
  static Model from_run(const std::filesystem::path& folder);
  Model(Model&&) noexcept;
  Model& operator=(Model&&) noexcept;
  ~Model();

  const std::string& name() const;
  std::int64_t fixed_batch() const;                        // the only batch of a file that fixes it; 0: any
  std::vector<Port> inputs(std::int64_t batch = 0) const;  // 0: 1, or the fixed one
  std::vector<Port> outputs(std::int64_t batch = 0) const;
  std::vector<Port> targets(
      std::int64_t batch = 0) const;  // of the loss: what a trainer takes after the inputs

  const std::vector<Port>& parameters() const;
  Tensor parameter(std::string_view name) const;
  void set_parameter(std::string_view name, const Tensor& value);  // copies
  void take_parameters(const Trainer& trainer);                    // what it has learned

  Session compile(const CompileSettings& settings = {}) const;
  Trainer trainer(const CompileSettings& settings, const TrainerSettings& training = {}) const;

  // Loss and gradients, for an optimizer of your own. Inputs: the model's, then the targets. Outputs: "loss"
  // (before any step), the model's, then "gradient/NAME" for each trained parameter, in its shape. Random
  // masks are drawn anew at every call, and running statistics are kept as in a training step; parameters
  // stay as they are until Session::set_parameter(). Throws Error as trainer() does.
  Session gradient(const CompileSettings& settings = {}) const;

  // The model as it is served, with its present parameters. Atomically.
  void write_onnx(const std::filesystem::path& file, const OnnxSettings& settings = {}) const;

 private:
  class __attribute__((visibility("hidden"))) Implementation;
  explicit Model(std::unique_ptr<Implementation> implementation);
  std::unique_ptr<Implementation> implementation_;
};

// A trained force field (docs/force-fields.md): energy, forces and virial of atoms wherever they are, for a
// program that moves them.
//
//     superstep::ForceField field("run/", {8, 1, 1});
//     const superstep::Forces now = field.evaluate(positions, cell);
struct Forces {
  double energy = 0;                            // eV
  std::vector<double> forces;                   // eV/A, [atoms, 3], in the order of the atoms
  std::optional<std::array<double, 9>> virial;  // eV, -dE/d(strain), [3, 3]; where the model gives it
};

class ForceField {
 public:
  // The model that a training of deepmd or schnet left in the folder `run`, for atoms of these elements
  // (atomic numbers). Threads 0: every processor there is. Throws Error: not_found and bad_file (the run),
  // unsupported (its workload gives no forces), invalid_argument (an element that the model does not know).
  ForceField(const std::filesystem::path& run, const std::vector<int>& elements, int threads = 1);
  ~ForceField();
  ForceField(ForceField&&) noexcept;
  ForceField& operator=(ForceField&&) noexcept;

  const std::vector<int>& elements() const;    // of the atoms
  std::vector<int> elements_it_knows() const;  // atomic numbers
  double cutoff() const;                       // A
  // Positions: A, [atoms, 3]. Cell: the edges of a periodic box as rows, A; none: open space. A box may be
  // smaller than the cutoff. Throws Error: invalid_argument (another number of atoms, what is not finite, a
  // box without volume), bad_file naming the atoms that are at one place, or one with more neighbors than the
  // model has room for.
  Forces evaluate(std::span<const double> positions, const std::optional<std::array<double, 9>>& cell = {});

 private:
  struct Implementation;
  std::unique_ptr<Implementation> implementation_;
};

// A network of dense layers, x f32 [N, widths.front()] -> y f32 [N, widths.back()], with an activation
// between them. Weights are drawn uniformly by the rule of He et al. (ICCV 2015), biases are zero.
struct DenseNetwork {
  std::vector<std::int64_t> widths;  // of the input, of each layer
  std::string activation = "relu";   // relu, silu, gelu
  std::uint64_t seed = 1;            // of the weights
};
// As an ONNX file with an open batch, which Model() takes. Throws Error: invalid_argument, io.
void write_dense_network(const std::filesystem::path& file, const DenseNetwork& network);

// --- whole training runs, as `superstep train` makes them

struct TrainingMetric {
  std::string name, unit;
  double value = 0;
};

// What happens in a training run. Epochs count from 1; a run that stops within an epoch ends that epoch
// there.
struct TrainingEvent {
  enum class Kind { epoch_begun, epoch_ended, evaluated, finished };
  Kind kind = Kind::epoch_begun;
  std::int64_t epoch = 0;               // 0: of `finished`
  double samples_per_second = 0;        // of an epoch that ended
  std::vector<TrainingMetric> metrics;  // of the validation samples, where they were evaluated
};
const char* name_of(TrainingEvent::Kind kind);  // "epoch_begun"

struct TrainingSettings {
  std::string model;  // the name of a workload, or an ONNX file; empty where a run goes on
  ModelSettings settings;
  std::filesystem::path data;        // empty: generated, of workloads that generate theirs
  std::filesystem::path validation;  // samples that validate; empty: a part of `data`
  std::int64_t samples = 0;          // 0: all
  std::string target = "cpu", precision = "f32";
  std::int64_t batch = 0;        // 0: the workload's own
  std::int64_t micro_batch = 0;  // 0: the target chooses
  int threads = 0;               // 0: every processor there is
  std::size_t memory_limit = 0;
  double epochs = 0;       // 0: the workload's own
  std::int64_t steps = 0;  // stop after so many; 0: after the epochs
  TrainerSettings training;
  std::string until_metric;   // stop when this metric of the validation samples
  double until_value = 0;     // is so good
  std::filesystem::path out;  // the run's folder: checkpoints, log, ONNX file; empty: nothing is written
  // `out` holds a run: go on with it. It stays what it was begun as: of the settings, only `epochs`, `steps`,
  // `until_metric`, `threads` and `devices` are taken, each where it is given.
  bool resume = false;
  std::string recipe;  // "quick", "published"; empty: the workload's own choice
  // Of the learning rate: "cosine:warm_up=5,final=0.01", "stairs:period=30,factor=0.1",
  // "plateau:patience=10", "one_cycle", ... (docs/your-own-model.md); empty: the recipe's.
  std::string schedule;
  int patience = 0;     // epochs without a gain after which it ends; 0: the recipe's
  std::string monitor;  // the metric that both watch, and the best weights are kept by; empty: the first
  // Of an ONNX file, what quality is measured by (docs/losses.md): "r2,mae", "auc:mask"; empty: by its loss.
  std::string metrics;
  std::string loss_scale;       // of precision "f16": "dynamic", "dynamic:1024" or "1024"; empty: dynamic
  bool gradient_norms = false;  // the log of the run has the lengths of gradients
  double average = 0;   // decay of averages of the weights, which validate and are served; 0: the recipe's
  bool augment = true;  // where the data allow it
  bool crop = false;    // of pictures that are larger than the model's the middle is taken
  // "x=0.1", "x=log", "x=unit", one per channel "image=4.4,4.5,4.4"; then "x=-3" is added. Of arrays of
  // the data, and kept with the run.
  std::vector<std::string> scale = {}, offset = {};
  std::vector<std::string> augmentation = {};  // of a model file: "x,mask=flip-horizontal", "x=noise:0.01"
  bool skip_broken = false;                    // samples that cannot be read are left out
  std::size_t data_memory = 0;     // bytes that samples of files may take; 0: a quarter of what is free
  double checkpoint_seconds = 30;  // between checkpoints within an epoch
  // Behind a plug-in ("cuda", ...): so many devices share each batch; 0: one, or where a run goes on as many
  // as before. With `divide_parameters` each keeps a part of the parameters and moments.
  int devices = 0;
  bool divide_parameters = false;
  // Told what happens, by the thread that called train(); must not throw.
  std::function<void(const TrainingEvent&)> on_event;
};

struct TrainingReport {
  std::vector<TrainingMetric> metrics;  // throughput, step_time, loss, quality of the validation samples
  std::int64_t steps = 0;
  double epochs = 0;
  bool reached = false;  // the value of `until_metric`
};

// Throws Error: interrupted (after writing a checkpoint), diverged, and what Model() throws.
TrainingReport train(const TrainingSettings& settings);

}  // namespace superstep

#pragma GCC visibility pop
