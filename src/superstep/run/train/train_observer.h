// Told what happens in a training run while it happens, for those who keep a log of it. Of several ranks only
// the first has one. Epochs count from 1; a run that stops within an epoch ends that epoch there.
#pragma once

#include <cstdint>
#include <vector>

#include "superstep/base/metric.h"
#include "superstep/run/train/schedule.h"
#include "superstep/run/train/train_settings.h"

namespace superstep::run {

struct TrainBeginning {
  std::int64_t training_samples = 0, validation_samples = 0;
  std::int64_t scheduled_steps = 0, warm_up_steps = 0;
  std::int64_t micro_batches = 1;  // a step
};

class TrainObserver {
 public:
  virtual ~TrainObserver() = default;

  // The data are opened, or made, from now on. Settings have every default filled in.
  virtual void data_touched(const TrainSettings&, const Schedule&) {}
  virtual void begun(const TrainBeginning&) {}
  virtual void epoch_begun(std::int64_t /* epoch */) {}
  virtual void epoch_ended(std::int64_t /* epoch */, double /* samples/s */) {}
  virtual void evaluation_begun(std::int64_t /* epoch */) {}
  // The first metric is the one that targets are set on.
  virtual void evaluation_ended(std::int64_t /* epoch */, const std::vector<Metric>&) {}
  virtual void finished() {}  // as it was asked for: not called when it is stopped or fails
};

}  // namespace superstep::run
