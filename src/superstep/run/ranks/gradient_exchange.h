// Averages gradients over ranks, beside the backward pass or after it, and knows what that costs.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "superstep/run/ranks/communicator.h"
#include "superstep/target/target.h"

namespace superstep::run {

enum class ExchangeMode {
  overlapped,  // range by range while the backward pass runs
  after,       // the same sums when it has ended
  library,     // by the library's own all-reduce when it has ended; bits depend on the library
};
const char* name_of(ExchangeMode mode);
ExchangeMode exchange_mode_from_name(
    const std::string& name);  // throws Error (invalid_argument), nearest name

struct ExchangeSettings {
  ExchangeMode mode = ExchangeMode::overlapped;
  int span = 1;                                       // ranks whose statistics of a normalisation are joined
  std::size_t range_values = std::size_t{256} << 10;  // 1 MB
};

class GradientExchange : public target::Exchange {
 public:
  // Collective. Throws Error (invalid_argument) where the span does not divide the number of ranks.
  explicit GradientExchange(Communicator& world, ExchangeSettings settings = {});

  // What a target is compiled with: this rank's part.
  target::Parts parts();

  std::size_t range_values() const override;
  // Throws Error (invalid_argument) where ranks have compiled different plans.
  std::span<float> open(std::size_t values, std::vector<target::ValueRange> ranges) override;
  void begin() override;
  void ready(std::size_t range) override { means_->ready(range); }
  void progress() override;
  void finish() override;
  void average_over_span(std::span<float> values) override;

  // s, a value per step: waiting for another rank's gradients; the exchange itself, and what of it came after
  // the backward pass. Waiting for messages is part of the exchange: it cannot be told apart there.
  const std::vector<double>& waiting() const { return waiting_; }
  const std::vector<double>& communication() const { return communication_; }
  const std::vector<double>& exposed() const { return exposed_; }
  double bytes() const { return bytes_; }  // of a step's gradients

 private:
  void require_same_plans(std::size_t values, const std::vector<target::ValueRange>& ranges);
  void finish_by_library();

  Communicator& world_;
  ExchangeSettings settings_;
  std::unique_ptr<Communicator> span_;  // null: this rank alone
  std::unique_ptr<RangeMeans> means_;
  std::vector<target::ValueRange> ranges_;
  double overlapped_ = 0;  // s of this step's exchange before its backward pass has ended
  std::vector<double> waiting_, communication_, exposed_;
  double bytes_ = 0;
};

}  // namespace superstep::run
