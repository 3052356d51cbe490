// The drag of gravity waves in columns of air: the scheme itself with any number of waves, and a line fitted
// through the profiles.
#pragma once

#include <Eigen/Dense>
#include <cstdint>
#include <span>
#include <vector>

#include "superstep/base/tensor.h"
#include "superstep/base/thread_pool.h"
#include "superstep/baseline/baseline.h"
#include "superstep/physics/flow/gravity_waves.h"

namespace superstep::baseline {

// As the generator's fields are: u, v, temperature [n, levels], source [n, 2] (mPa, m/s).
struct AirColumns {
  const Tensor &u, &v, &temperature, &source;
  int levels() const { return static_cast<int>(u.shape()[1]); }
};

// Rows are columns of air: the drag on u of every layer from the ground up, then that on v; m/s a day.
using DragRows = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
DragRows rows_of_drag(const Tensor& u, const Tensor& v, std::span<const std::int64_t> indices);

struct DragScore {
  // 1 - squared error / squared deviation from the mean, of every layer and component where there is any: a
  // mean over these, so that the thin air of the top does not stand for all. By layer below; NaN where there
  // is no drag.
  double r2 = 0;
  double rmse = 0;  // m/s a day, of all layers with drag
  std::vector<double> r2_u, r2_v;
};
DragScore score_drag(const DragRows& truth, const DragRows& found);

DragRows drag_of_waves(const AirColumns& columns, std::span<const std::int64_t> indices,
                       const data::WaveSpectrum& spectrum, ThreadPool& pool);

// By ridge regression on the profiles and the source of the first `training` columns.
DragRows drag_of_a_line(const AirColumns& columns, const DragRows& known, std::int64_t training,
                        std::span<const std::int64_t> indices);

Entry gravity_wave_schemes();  // "gravity-wave-drag"

}  // namespace superstep::baseline
