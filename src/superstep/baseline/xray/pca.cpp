#include "superstep/baseline/xray/pca.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "superstep/base/element_type.h"
#include "superstep/base/error.h"
#include "superstep/base/random.h"

namespace superstep::baseline {
namespace {

constexpr std::int64_t block_frames = 256;  // read at once
constexpr Eigen::Index item_frames = 32;    // of a block that a thread takes, in products by frame
constexpr Eigen::Index item_pixels = 1024;  // of a frame that a thread takes, in products by pixel

Error bad(std::string what) {
  return Error(ErrorCode::invalid_argument, std::move(what), "principal components");
}

void require_valid(const FrameSource& source, const PcaSettings& settings) {
  if (settings.components < 1 || settings.oversampling < 0 || settings.power_iterations < 0)
    throw bad("at least one component is needed, and no negative setting");
  if (source.frames < settings.components || source.pixels < settings.components)
    throw bad(fmt::format("{} components from {} frames of {} pixels: there must be as many of both",
                          settings.components, source.frames, source.pixels));
}

// Calls f(begin, count) for pieces of [0, total) on all threads. The pieces do not depend on the threads.
template <class F>
void in_pieces(ThreadPool& pool, Eigen::Index total, Eigen::Index piece, F f) {
  pool.parallel_for((total + piece - 1) / piece,
                    [&](std::int64_t item, int) { f(item * piece, std::min(piece, total - item * piece)); });
}

class Passes {
 public:
  Passes(const FrameSource& source, ThreadPool& pool, PcaProgress progress, int passes)
      : source_(source),
        pool_(pool),
        progress_(progress),
        total_(static_cast<double>(source.frames) * passes) {}

  // Calls visit(block) for all frames in order.
  template <class F>
  void over_blocks(F visit) {
    for (std::int64_t first = 0; first < source_.frames; first += block_frames) {
      const std::int64_t count = std::min(block_frames, source_.frames - first);
      visit(source_.read(first, count));
      progress_(done_ += static_cast<double>(count), total_);
    }
  }

  void mean_and_variance(PcaBasis& basis) {
    Eigen::VectorXd sum = Eigen::VectorXd::Zero(source_.pixels), squares = sum;
    over_blocks([&](const FrameMatrix& block) {
      if (!block.allFinite()) throw bad("a frame holds a value that is not finite");
      in_pieces(pool_, source_.pixels, item_pixels, [&](Eigen::Index p, Eigen::Index n) {
        const Eigen::MatrixXd part = block.middleCols(p, n).cast<double>();
        sum.segment(p, n) += part.colwise().sum().transpose();
        squares.segment(p, n) += part.colwise().squaredNorm().transpose();
      });
    });
    const auto count = static_cast<double>(source_.frames);
    basis.mean = (sum / count).cast<float>();
    basis.total_variance = (squares / count - (sum / count).cwiseAbs2()).sum();
  }

  // (A - 1 m^T)^T (A - 1 m^T) Z for all frames A, by blocks.
  Eigen::MatrixXf covariance_product(const Eigen::VectorXf& mean, const Eigen::MatrixXf& z) {
    Eigen::MatrixXf product = Eigen::MatrixXf::Zero(z.rows(), z.cols());
    over_blocks([&](FrameMatrix block) {
      const Eigen::MatrixXf projected = project(block, mean, z);
      in_pieces(pool_, z.rows(), item_pixels, [&](Eigen::Index p, Eigen::Index n) {
        product.middleRows(p, n).noalias() += block.middleCols(p, n).transpose() * projected;
      });
    });
    return product;
  }

  // Q^T C Q n: the covariance within a subspace with orthonormal columns.
  Eigen::MatrixXd covariance_within(const Eigen::VectorXf& mean, const Eigen::MatrixXf& q) {
    Eigen::MatrixXd gram = Eigen::MatrixXd::Zero(q.cols(), q.cols());
    over_blocks([&](FrameMatrix block) {
      const Eigen::MatrixXd projected = project(block, mean, q).cast<double>();
      gram.noalias() += projected.transpose() * projected;
    });
    return gram;
  }

 private:
  // Subtracts the mean from the block and returns (block - mean) Z.
  Eigen::MatrixXf project(FrameMatrix& block, const Eigen::VectorXf& mean, const Eigen::MatrixXf& z) {
    Eigen::MatrixXf projected(block.rows(), z.cols());
    in_pieces(pool_, block.rows(), item_frames, [&](Eigen::Index first, Eigen::Index n) {
      block.middleRows(first, n).rowwise() -= mean.transpose();
      projected.middleRows(first, n).noalias() = block.middleRows(first, n) * z;
    });
    return projected;
  }

  const FrameSource& source_;
  ThreadPool& pool_;
  PcaProgress progress_;
  double done_ = 0, total_;
};

Eigen::MatrixXf orthonormal(const Eigen::MatrixXf& columns) {
  const Eigen::HouseholderQR<Eigen::MatrixXf> qr(columns);
  return qr.householderQ() * Eigen::MatrixXf::Identity(columns.rows(), columns.cols());
}

Eigen::MatrixXf random_directions(std::int64_t rows, std::int64_t columns, std::uint64_t seed) {
  Eigen::MatrixXf directions(rows, columns);
  for (Eigen::Index column = 0; column < columns; ++column) {
    RandomStream random(seed, static_cast<std::uint64_t>(column));
    for (Eigen::Index row = 0; row < rows; ++row)
      directions(row, column) = static_cast<float>(random.normal());
  }
  return directions;
}

}  // namespace

PcaBasis principal_components(const FrameSource& source, const PcaSettings& settings, ThreadPool& pool,
                              PcaProgress progress) {
  require_valid(source, settings);
  const std::int64_t columns =
      std::min({std::int64_t{settings.components} + settings.oversampling, source.frames, source.pixels});
  Passes passes(source, pool, progress, settings.power_iterations + 3);
  PcaBasis basis;
  passes.mean_and_variance(basis);
  Eigen::MatrixXf z = random_directions(source.pixels, columns, settings.seed);
  for (int iteration = 0; iteration <= settings.power_iterations; ++iteration)
    z = orthonormal(passes.covariance_product(basis.mean, z));
  const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> solver(passes.covariance_within(basis.mean, z));
  // Eigenvalues come in rising order.
  const Eigen::Index k = settings.components;
  const Eigen::MatrixXd rotation = solver.eigenvectors().rightCols(k).rowwise().reverse();
  basis.components = orthonormal(z * rotation.cast<float>());
  for (Eigen::Index i = 0; i < k; ++i)  // the sign of a column is free: its largest entry is made positive
    if (Eigen::Index at; basis.components.col(i).cwiseAbs().maxCoeff(&at), basis.components(at, i) < 0)
      basis.components.col(i) *= -1;
  basis.eigenvalues = solver.eigenvalues().tail(k).reverse() / static_cast<double>(source.frames);
  return basis;
}

FrameMatrix compress(const FrameMatrix& frames, const PcaBasis& basis) {
  return (frames.rowwise() - basis.mean.transpose()) * basis.components;
}

FrameMatrix reconstruct(const FrameMatrix& codes, const PcaBasis& basis) {
  return (codes * basis.components.leftCols(codes.cols()).transpose()).rowwise() + basis.mean.transpose();
}

HalfBasis half_basis(const PcaBasis& basis) {
  int exponent = 0;  // largest = fraction 2^exponent with a fraction in [1/2, 1)
  std::frexp(basis.components.cwiseAbs().maxCoeff(), &exponent);
  return half_basis(basis, std::ldexp(1.0f, 15 - exponent));
}

HalfBasis half_basis(const PcaBasis& basis, float scale) {
  return {basis.components.unaryExpr([scale](float w) { return static_cast<float>(f16(w * scale)); }), scale};
}

FrameMatrix compress(const FrameMatrix& frames, const PcaBasis& basis, const HalfBasis& half) {
  return ((frames.rowwise() - basis.mean.transpose()) * half.components) / half.scale;
}

FrameMatrix compress_all_half(const FrameMatrix& frames, const PcaBasis& basis) {
  const auto rounded = [](float value) { return static_cast<float>(f16(value)); };
  FrameMatrix codes(frames.rows(), basis.components.cols());
  for (Eigen::Index frame = 0; frame < frames.rows(); ++frame)
    for (Eigen::Index k = 0; k < codes.cols(); ++k) {
      float sum = 0;
      for (Eigen::Index pixel = 0; pixel < frames.cols(); ++pixel) {
        const float x = rounded(frames(frame, pixel) - basis.mean(pixel));
        sum = rounded(sum + rounded(x * rounded(basis.components(pixel, k))));
      }
      codes(frame, k) = sum;
    }
  return codes;
}

}  // namespace superstep::baseline
