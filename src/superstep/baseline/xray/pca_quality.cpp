#include "superstep/baseline/xray/pca_quality.h"

#include <algorithm>
#include <cmath>

namespace superstep::baseline {

void QualitySum::add(const FrameMatrix& frames, const FrameMatrix& returned, const Eigen::VectorXf& mean) {
  error_ += (frames - returned).cast<double>().squaredNorm();
  signal_ += (frames.rowwise() - mean.transpose()).cast<double>().squaredNorm();
  const auto root = [](const FrameMatrix& counts) { return counts.cwiseMax(0.0f).cwiseSqrt().eval(); };
  const FrameMatrix true_root = root(frames);
  root_error_ += (true_root - root(returned)).cast<double>().squaredNorm();
  peak_ = std::max(peak_, static_cast<double>(true_root.maxCoeff()));
  count_ += static_cast<double>(frames.size());
}

Quality QualitySum::quality() const {
  const double mean_square = root_error_ / count_;
  return {signal_ > 0 ? std::sqrt(error_ / signal_) : 0, 10 * std::log10(peak_ * peak_ / mean_square)};
}

FrameMatrix binned(const FrameMatrix& frames, Eigen::Index height, Eigen::Index width, Eigen::Index bin) {
  FrameMatrix result(frames.rows(), frames.cols());
  for (Eigen::Index frame = 0; frame < frames.rows(); ++frame) {
    const Eigen::Map<const FrameMatrix> in(frames.row(frame).data(), height, width);
    Eigen::Map<FrameMatrix> out(result.row(frame).data(), height, width);
    for (Eigen::Index y = 0; y < height; y += bin)
      for (Eigen::Index x = 0; x < width; x += bin)
        out.block(y, x, bin, bin).setConstant(in.block(y, x, bin, bin).mean());
  }
  return result;
}

}  // namespace superstep::baseline
