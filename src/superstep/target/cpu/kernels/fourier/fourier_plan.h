// What a transform of one length needs beside its data: stages and their factors. Internal to the kernels.
#pragma once

#include <cstdint>
#include <vector>

namespace superstep::kernels {

// One stage of Stockham's algorithm: for every p in [0, blocks) and q in [0, run)
//   y[q + run (radix p + j)] = w^(j p) * sum over k of x[q + run (p + blocks k)] e^(-2 pi i j k / radix)
// with w = e^(-2 pi i / (radix blocks)).
struct FourierStage {
  int radix = 1;
  std::int64_t blocks = 1, run = 1;
  std::vector<float> factors;  // [p][j - 1][re, im]; none where there is a single block
};

// The stages of n, which has no prime factor above largest_radix; n = 1: none.
std::vector<FourierStage> fourier_stages(std::int64_t n);
bool has_stages(std::int64_t n);

// A transform of n as a convolution with a chirp, by transforms of `padded` elements.
struct Chirp {
  std::int64_t padded = 0;      // 0: there is none, n has stages
  std::vector<float> chirp;     // e^(-pi i k^2 / n), [k][re, im]
  std::vector<float> spectrum;  // of the conjugate chirp, over `padded`: [k][re, im]
};
Chirp chirp_of(std::int64_t n);

struct FourierPlan {
  explicit FourierPlan(std::int64_t length);
  std::int64_t n;
  Chirp chirp;
  std::vector<FourierStage> stages;  // of n, or of the padded length
  std::int64_t rows() const { return chirp.padded > 0 ? chirp.padded : n; }
};

}  // namespace superstep::kernels
