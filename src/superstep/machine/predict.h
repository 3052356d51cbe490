// The prediction of a run: one unit's step, then accumulation, pipeline, replicas and the host around it.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "superstep/base/metric.h"
#include "superstep/machine/cost_model.h"
#include "superstep/machine/host_path.h"
#include "superstep/machine/work.h"

namespace superstep::machine {

struct PredictSettings {
  Precision precision;
  std::int64_t micro_batch = 1;
  int accumulate = 1, replicas = 1;
  std::vector<int> pipeline;  // relative layers a stage; empty: one stage
  // The chip of each stage, where one has several: the last stage beside the first, say, whose words it
  // shares. Empty: a chip each.
  std::vector<int> chips;
  bool recompute = false;           // keep checkpoints only
  double samples_per_item = 1;      // things that a loader prepares for one item of the batch axis: a pack's
  int device_iterations = 1;        // steps a call of the program
  int loaders = 1;                  // processes of the host that prepare a replica's samples
  double host_sample_seconds = 0;   // a loader's work on one sample beside the machine's constants
  bool samples_in_files = false;    // pictures, which a loader opens and decodes one by one
  bool samples_are_graphs = false;  // nodes and edges, which a loader joins and numbers anew, batch by batch
  int input_bytes = 0;              // of an element of the inputs, on the host's link; 0: the precision's
  bool optimizer_off_chip = false;  // its state waits in memory beside the chip (IPUs' streaming memory)
  bool optimizer_sharded = false;   // each replica keeps its share of the optimiser's state
};

struct Stage {
  Parts forward_backward, update;  // of one micro-batch, of one step
  double backward_seconds = 0;     // of one micro-batch
  int gradients = 0;               // that are summed over replicas
  Memory memory;
};

// Where a step's time is the law's of networks: which, whose errors its interval is of, and what the
// machine's own model says of the same step.
struct TimedByLaw {
  std::string law, spread;
  std::size_t cells = 0;
  bool measured_machine = false;
  double model_seconds = 0;
};

struct Prediction {
  std::string machine;
  int units = 1;  // stages x replicas
  bool fits = false;
  std::vector<Stage> stages;
  std::vector<OperatorCost> operators;
  Parts step;  // of a whole step, without the host's data path; of no use when it does not fit
  double step_seconds = 0, step_seconds_with_data = 0, samples = 0;  // samples of a step
  HostPath host;                                                     // of a step, of one replica
  FedInterval fed;                                                   // seconds of a step with its data, 80 %
  double flops = 0;                                                  // of a step
  double border_bytes = 0;        // read and written at kernels' borders, in a step of one replica
  double uncertainty = 0;         // of the logarithm of step_seconds, 80 %
  double faster = 0, slower = 0;  // the same, each way: the larger of them is `uncertainty`
  double model_uncertainty = 0;   // the part of it that is the model's, beside the constants'
  double peak_seconds = 0, roofline_seconds = 0;
  std::vector<std::string> unsupported, warnings;
  std::optional<TimedByLaw> by_law;
  std::vector<std::string> beyond;  // in which ways it lies beyond what was calibrated on

  double shortest_step() const;  // the interval's ends
  double longest_step() const;
  double throughput() const { return samples / step_seconds; }
  double throughput_with_data() const { return samples / step_seconds_with_data; }
  std::string bound_by() const;
  std::string bound_by_with_data() const;  // "host loader", or as bound_by
  std::vector<Metric> metrics() const;
};

// `graph` of one micro-batch: an inference graph or a training step. Throws Error (invalid_argument) on
// impossible settings; operators without a cost are named in the prediction.
Prediction predict(const Machine& machine, const graph::Graph& graph, const PredictSettings& settings);

// Predictions of one model on many machines that are asked by law: what a step has in memory is the same on
// all of one style, and is found once. Good for any threads; graphs must stay where they are.
class PredictionsByLaw {
 public:
  // As predict(), which it calls where there is nothing to share.
  Prediction predict(const Machine& machine, const graph::Graph& graph, const PredictSettings& settings);

 private:
  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<const Prediction>> known_;
};

// Seconds of a step with its data on one stage a replica, and nothing else of a prediction: for fits, which
// ask thousands of times with other constants. `works` are the graph's, `gradient_bytes` its parameters'.
double fed_step_seconds(const Machine& machine, const graph::Graph& graph, const std::vector<Work>& works,
                        double gradient_bytes, const PredictSettings& settings);

// The shares of `stages` stages that even out time, as long as each fits: from equal numbers of layers, or
// from those that divide the layers' own times best, layers are moved across borders until nothing gets
// better.
std::vector<int> balanced_pipeline(const Machine& machine, const graph::Graph& graph,
                                   const PredictSettings& settings, int stages);

// The largest micro-batch that fits, at most `most`; 0 when none does.
std::int64_t largest_micro_batch(const Machine& machine,
                                 const std::function<graph::Graph(std::int64_t)>& graph_at,
                                 PredictSettings settings, std::int64_t most);

}  // namespace superstep::machine
