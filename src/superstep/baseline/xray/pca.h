// Lossy compression of frames by projection on their principal components: y = W^T (x - mean).
//
// The basis comes from randomised subspace iteration on the covariance (N. Halko, P. Martinsson and
// J. Tropp, SIAM Review 53, 217, 2011, section 4.5), in passes over the frames, so that they need not fit
// into memory.
#pragma once

#include <Eigen/Dense>
#include <cstdint>
#include <functional>

#include "superstep/base/function_ref.h"
#include "superstep/base/thread_pool.h"

namespace superstep::baseline {

// One frame per row.
using FrameMatrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

// Frames by number; read() must return `count` rows and may be called several times for the same rows.
struct FrameSource {
  std::int64_t frames = 0, pixels = 0;
  std::function<FrameMatrix(std::int64_t first, std::int64_t count)> read;
};

struct PcaBasis {
  Eigen::VectorXf mean;         // [pixels]
  Eigen::MatrixXf components;   // [pixels, k], orthonormal columns, strongest first
  Eigen::VectorXd eigenvalues;  // [k], of the covariance (divided by the number of frames)
  double total_variance = 0;    // its trace
};

struct PcaSettings {
  int components = 64;
  int oversampling = 16;     // directions more than components during the iteration
  int power_iterations = 3;  // passes that sharpen the subspace
  std::uint64_t seed = 1;
};

// Called with the number of frames read so far in all passes, and the number there will be.
using PcaProgress = FunctionRef<void(double done, double total)>;

// The same bits on any number of threads. Throws Error (invalid_argument) when there are fewer frames or
// pixels than components, or when frames hold values that are not finite.
PcaBasis principal_components(const FrameSource& source, const PcaSettings& settings, ThreadPool& pool,
                              PcaProgress progress);

// Codes [frames, k] of frames [frames, pixels], and frames of codes.
FrameMatrix compress(const FrameMatrix& frames, const PcaBasis& basis);
FrameMatrix reconstruct(const FrameMatrix& codes, const PcaBasis& basis);

// The basis in 16-bit floating point. Most entries of a component of 16,384 pixels are far below 1 and many
// fall under the normal range of the format: they are multiplied by a power of two before rounding,
// W16 = round(W s), and codes are divided by it, y = W16^T x / s.
struct HalfBasis {
  Eigen::MatrixXf components;  // the rounded values of W s
  float scale = 1;             // s
};
HalfBasis half_basis(const PcaBasis& basis);               // s: the largest entry comes to [2^14, 2^15)
HalfBasis half_basis(const PcaBasis& basis, float scale);  // 1 for plain rounding
FrameMatrix compress(const FrameMatrix& frames, const PcaBasis& basis, const HalfBasis& half);

// All of it in 16 bits: frames, basis without a scale, products and running sums (in the order of the
// pixels). What goes wrong without care.
FrameMatrix compress_all_half(const FrameMatrix& frames, const PcaBasis& basis);

}  // namespace superstep::baseline
