// The loss of sequences whose labels have no places: connectionist temporal classification.
#pragma once

#include "superstep/transform/training/loss.h"

namespace superstep::transform {

// Lengths of samples, i64 [N]; invalid: all frames, and labels up to the first that is blank or negative.
struct CtcLengths {
  op::Var frames = {}, labels = {};
};

// A number of each sample, [N], as torch.nn.functional.ctc_loss has it before its mean: minus the logarithm
// of the probability of all alignments, divided by the number of labels (of none: by one). Infinite where the
// frames are too few for the labels, or zero with `zero_infinity`; the slope is zero in both cases.
// `scores` [N, frames, classes] are normalized first, which leaves log-probabilities as they are. The graph
// has some twenty nodes a frame: the forward algorithm in logarithms, in f32 at least. Throws Error
// (invalid_argument) where `blank` is no class, (unsupported) with more frames than `most_ctc_frames`.
op::Var ctc_values(const LossTerm& term, op::Var scores, op::Var labels, const CtcLengths& lengths);

// A step of 100 frames is compiled in 0.6 s, of 500 in 7: the time grows with the square.
inline constexpr std::int64_t most_ctc_frames = 1000;

}  // namespace superstep::transform
