// One rank: every collective call is done at once. Internal to ranks/.
#pragma once

#include <cstdlib>

#include "superstep/run/ranks/communicator.h"

namespace superstep::run {

class Alone : public Communicator {
 public:
  int rank() const override { return 0; }
  int size() const override { return 1; }
  void barrier() override {}
  void sum(std::span<float>, SumOrder) override {}
  double maximum(double value) override { return value; }
  bool any(bool flag) override { return flag; }
  [[noreturn]] void abort(int code) override { std::_Exit(code); }
};

}  // namespace superstep::run
