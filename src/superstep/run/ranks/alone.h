// One rank: every collective call is done at once. Internal to ranks/.
#pragma once

#include <cstdlib>

#include "superstep/run/ranks/aligned_values.h"
#include "superstep/run/ranks/communicator.h"

namespace superstep::run {

class AloneMeans : public RangeMeans {
 public:
  explicit AloneMeans(std::size_t values) : values_(values) {}
  std::span<float> values() override { return values_.all(); }
  void begin() override {}
  void ready(std::size_t) override {}
  bool progress() override { return false; }
  void finish() override {}
  double seconds_waited() const override { return 0; }

 private:
  AlignedValues values_;
};

class Alone : public Communicator {
 public:
  int rank() const override { return 0; }
  int size() const override { return 1; }
  void barrier() override {}
  void sum(std::span<float>, SumOrder) override {}
  double maximum(double value) override { return value; }
  bool any(bool flag) override { return flag; }
  std::unique_ptr<RangeMeans> range_means(std::size_t values, std::vector<target::ValueRange>,
                                          SumOrder) override {
    return std::make_unique<AloneMeans>(values);
  }
  std::unique_ptr<Communicator> group(int) override { return std::make_unique<Alone>(); }
  std::string road() const override { return "one rank"; }
  [[noreturn]] void abort(int code) override { std::_Exit(code); }
};

}  // namespace superstep::run
