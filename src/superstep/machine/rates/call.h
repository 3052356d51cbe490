// Questions that a law can be asked (law.h), from the shapes of what is computed: the same for a row of a
// table and for a prediction.
#pragma once

#include <array>
#include <string>

#include "superstep/machine/rates/facts.h"
#include "superstep/machine/rates/law.h"
#include "superstep/machine/rates/models.h"

namespace superstep::machine {

struct LawCall {
  std::string family;                             // "products", "convolutions", "language generation", ...
  MeasuredCall call;                              // without its seconds
  double peak_seconds = 0, roofline_seconds = 0;  // of the facts alone
  double flops = 0, bytes = 0;
};

struct Product {
  double batch = 1, rows = 1, columns = 1, inner = 1;
  bool transposed = false;  // its first operand
  double flops() const { return 2 * batch * rows * columns * inner; }
};
LawCall product_call(const MachineFacts& machine, const Product& product, const std::string& type);

enum class Pass : std::uint8_t { forward, inputs, weights };  // what is computed: results, or gradients
struct Convolution {
  double width = 0, height = 0, channels = 0, batch = 0, kernels = 0, window_width = 0, window_height = 0,
         pad_width = 0, pad_height = 0, stride_width = 0, stride_height = 0;
  bool valid() const;
};
LawCall convolution_call(const MachineFacts& machine, const Convolution& convolution, Pass pass,
                         const std::string& type);

struct Recurrent {
  std::string cell = "lstm";          // "rnn", "lstm", "gru"
  std::string pass = "time_forward";  // as tables name it
  double width = 0, batch = 0, steps = 0;
};
LawCall recurrent_call(const MachineFacts& machine, const Recurrent& layer, const std::string& type);

// An operator on vectors by its name ("add", "softmax", ...), of f32.
LawCall vector_call(const MachineFacts& machine, const std::string& op, double rows, double columns);

struct Collective {
  std::string kind = "allreduce";  // "allgather", "reducescatter", "alltoall", "permute"
  double bytes = 0, units = 1, groups = 1;
};
LawCall collective_call(const MachineFacts& machine, const Collective& collective);

// Requests of a language model, all of one length and at the same time.
struct Request {
  enum class What : std::uint8_t { whole, first_token, prompt, decoding } what = What::whole;
  double batch = 1, in = 0, out = 0, units = 1;  // units that share every layer
  double stages = 1;                             // of a pipeline, of so many units each
  bool in_turn = false;                          // units that work one after the other, layer by layer
  bool best_batch = false;                       // as many at a time as memory holds
  std::string software = "vllm", type = "fp16";
};
LawCall request_call(const MachineFacts& machine, const ModelFacts& model, const Request& request);
// Sequences of a request that lie in memory beside the weights; 0: the weights do not.
double sequences_held(const MachineFacts& machine, const ModelFacts& model, const Request& request);
double sequence_bytes(const ModelFacts& model, const Request& request);  // of keys and values
double weight_bytes(const std::string& type);

// Training of a language model, of one token on one unit.
struct LanguageTraining {
  double length = 0, micro_batch = 0, units = 1;  // micro-batch 0: not said, large
  double network_rate = 0;                        // bytes/s of a unit between nodes; 0: that of its link
  bool recomputes = false, with_evaluation = false, sharded = false;
  std::string software = "pytorch-fsdp", type = "bf16";
};
LawCall language_training_call(const MachineFacts& machine, const ModelFacts& model,
                               const LanguageTraining& training);
// Model FLOP of a token.
double training_flops(const ModelFacts& model, double length);

// One pass over a batch of whole sequences.
LawCall language_pass_call(const MachineFacts& machine, const ModelFacts& model, double length, double batch,
                           bool training, const std::string& software, const std::string& type);

struct NetworkStep {
  std::string of;  // "", "with evaluation", "of a server", "of one": what was reported
  double batch = 1, units = 1;
  bool training = false, updates = true, channels_last = false;
  bool one_process = false;  // drives all units in turn
  std::string software = "pytorch", type = "fp16";
};
LawCall network_call(const MachineFacts& machine, const NetworkSums& sums, const NetworkStep& step);

// How types of one width are called together: "f32", "tf32", "f16", "8 bits".
std::string width_of(const std::string& type);

}  // namespace superstep::machine
