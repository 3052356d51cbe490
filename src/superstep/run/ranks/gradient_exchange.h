// Averages gradients over ranks between backward and update, and knows what that costs.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "superstep/run/ranks/communicator.h"
#include "superstep/target/target.h"

namespace superstep::run {

class GradientExchange {
 public:
  explicit GradientExchange(Communicator& world) : world_(world) {}
  GradientExchange(const GradientExchange&) = delete;  // targets keep a reference
  GradientExchange& operator=(const GradientExchange&) = delete;

  // What a target is compiled with: this rank's part.
  target::Parts parts();

  // s, a value a step: until the last rank had its gradients, and the exchange itself.
  const std::vector<double>& waiting() const { return waiting_; }
  const std::vector<double>& communication() const { return communication_; }
  double bytes() const { return bytes_; }  // of a step's gradients

 private:
  void average(std::span<float> means);

  Communicator& world_;
  std::vector<double> waiting_, communication_;
  double bytes_ = 0;
};

}  // namespace superstep::run
