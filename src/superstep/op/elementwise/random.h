// Random numbers that depend on a seed, a counter kept as state, and the element's position alone: the same
// bits on every target and for any number of threads; and dropout made of them.
#pragma once

#include "superstep/base/random.h"
#include "superstep/op/core/box.h"
#include "superstep/op/core/definition.h"

namespace superstep::op {

// superstep.RandomMask: 1/keep with probability `keep`, else 0, for each element of `shape`.
//
// Inputs: counter i64[] (state; a training graph adds the number of samples each step, so that it counts the
// samples seen). Attributes: seed (integer), stream (a number in [0, 2^32) that sets the masks of one step
// apart), keep (0 < keep <= 1), shape, dtype (ONNX element type, f32 by default).
//
// Row r of the mask (axis 0: the sample) has the words of RandomStream(seed, counter + r, stream), in the
// row's own row-major order: element e takes the 32-bit word e % 4 of the Philox4x32-10 block (Salmon et al.,
// SC 2011)
//   philox(counter = {e / 4, stream, low half of counter + r, its high half},
//          key = {low half of seed, high half of seed})
// and is kept when word < keep * 2^32. So a batch drawn in parts has the mask it has as a whole.
struct RandomMaskAttributes {
  std::uint64_t seed = 0;
  std::uint32_t stream = 0;
  double keep = 0.5;
};
Var random_mask(Var counter, ElementType element, const Shape& shape, const RandomMaskAttributes& attributes);

// The same distribution in ONNX's own operators, for a mask that leaves in a file: the program that runs it
// draws the numbers (RandomUniform), others than the counter gives here. `attributes` are the operator's.
// Seeds of a step's masks are spread out: a program may count up from them, run after run.
Var drawn_mask(Builder& builder, const Attributes& attributes);

// superstep.RandomNormal: independent numbers of mean 0 and variance 1, the same for every sample of a batch:
// the directions of forward gradients (transform/training/forward_gradient.h).
//
// Inputs: counter i64[] (state). Attributes: seed, stream (in [0, 2^32)), shape, dtype (f32 by default).
//
// Elements e = 2 p and 2 p + 1 in row-major order take the words a, b with these numbers of
// RandomStream(seed, counter, stream) and are r cos(2 pi t) and r sin(2 pi t) with r = sqrt(-2 ln u),
// u = (a / 2^9 + 1/2) / 2^23 and t = (b / 2^9 + 1/2) / 2^23, divisions by 2^9 rounded down (G. E. P. Box and
// M. E. Muller, Ann. Math. Stat. 29, 1958): u and t are exact in f32, and no element is beyond 5.77.
Var random_normal(Var counter, ElementType element, const Shape& shape, std::uint64_t seed,
                  std::uint32_t stream);

// Sets the streams of ONNX's random operators that have the same seed apart.
enum class RandomPurpose : std::uint32_t { uniform = 0x75, normal, bernoulli, multinomial };
// The stream of an operator's numbers, by its attribute `seed`.
RandomStream number_stream(const Attributes& attributes, RandomPurpose purpose);

// The words below which an element is kept; 2^32 keeps all.
std::uint64_t keep_threshold(double keep);

// x times a random mask that keeps 1 - ratio of the elements and scales them up: training-time dropout.
Var dropout(Var x, double ratio, Var counter, std::uint64_t seed, std::uint32_t stream);

// superstep.StochasticDepth: x itself, as it is served. In training the whole of a sample (axis 0) is dropped
// with probability `ratio`, and scaled up where it is kept (G. Huang et al., ECCV 2016): what is added to a
// residual branch (transform/training/training_form.h).
Var stochastic_depth(Var x, double ratio);

// ONNX's own: the same numbers at every run, for a seed. Without a derivative by what they are drawn from.
Var random_uniform(Builder& builder, ElementType element, const Shape& shape, double low = 0, double high = 1,
                   double seed = 0);
Var random_normal(Builder& builder, ElementType element, const Shape& shape, double mean = 0,
                  double scale = 1, double seed = 0);
Var bernoulli(Var probability, double seed = 0);  // 1 with that probability, else 0
// Classes (i32 [batch, samples]) drawn by unnormalised log probabilities [batch, classes].
Var multinomial(Var log_probabilities, std::int64_t samples, double seed = 0);

std::span<const Definition> random_operators();  // superstep.RandomMask ... Dropout
std::span<const Definition>
random_number_operators();  // RandomUniform[Like] RandomNormal[Like] Bernoulli ...

}  // namespace superstep::op
