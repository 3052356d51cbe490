// How well compressed frames come back.
#pragma once

#include "superstep/baseline/xray/pca.h"

namespace superstep::baseline {

struct Quality {
  double nrmse = 0;  // rms error / rms of (frame - mean of the basis)
  double psnr = 0;   // dB, of the square roots of counts; the peak is the largest of them in any frame
};

// Sums over frames, for one way of compressing them.
class QualitySum {
 public:
  void add(const FrameMatrix& frames, const FrameMatrix& returned, const Eigen::VectorXf& mean);
  Quality quality() const;

 private:
  double error_ = 0, signal_ = 0, root_error_ = 0, peak_ = 0, count_ = 0;
};

// Means over blocks of `bin` x `bin` pixels, put back into all pixels of the block. `bin` divides both
// extents.
FrameMatrix binned(const FrameMatrix& frames, Eigen::Index height, Eigen::Index width, Eigen::Index bin);

}  // namespace superstep::baseline
