// Operators that behave differently in training: what stands in a model is their form at inference.
//
//   Dropout              becomes a product with superstep.RandomMask, addressed by a counter kept as state
//   StochasticDepth      the same, with a mask of one number a sample
//   DequantizeLinear     behind a QuantizeLinear: rounds as it does, and has the slope of what it rounds
//   BatchNormalization   takes the statistics of the batch and updates the running ones
#pragma once

#include <cstdint>

#include "superstep/transform/rewrite.h"

namespace superstep::transform {

// The state that counts the samples seen, for random masks.
inline constexpr const char* dropout_counter = "dropout.counter";

// How the names of states begin that are counted on data and not learnt: ranges that inputs are scaled by.
inline constexpr const char* counted_prefix = "counted/";

class TrainingForm {
 public:
  // `joint_statistics`: those of a batch whose parts several runs work on.
  TrainingForm(Rewrite& rewrite, std::uint64_t seed, bool joint_statistics)
      : rewrite_(rewrite), seed_(seed), joint_statistics_(joint_statistics) {}

  // Keeps the node, or replaces it by its form in training.
  void visit(const Node& node);

  // Keeps the node unless it drops out at random within samples: the form of a model that is served with
  // masks.
  void visit_dropout(const Node& node);

  // What every step adds to the counter is the number of samples; call once, in phase update.
  void update_counter(std::int64_t samples);

 private:
  void train_dropout(const Node& node);
  void train_depth(const Node& node);
  void train_batch_normalization(const Node& node);
  void train_rounding(const Node& node);
  Var counter();

  Rewrite& rewrite_;
  std::uint64_t seed_;
  bool joint_statistics_;
  std::uint32_t next_stream_ = 0;  // a number for each mask, in the order of the nodes
  Var counter_;
};

// The states that training changes: floating-point states that the model itself does not update and that are
// neither the running statistics of a normalisation nor counted on data.
std::vector<ValueId> trainable_states(const Graph& model);

}  // namespace superstep::transform
