#include "superstep/target/cpu/plan/join.h"

#include <cstring>

#include "superstep/target/cpu/run/run_info.h"

namespace superstep::target::cpu {
namespace {

using kernels::Arguments;

kernels::KernelInfo info_for(std::size_t count) {
  kernels::KernelInfo info;
  info.name = "mean over parts";
  info.flops = static_cast<double>(count);
  info.bytes = static_cast<double>(2 * count * sizeof(float));
  info.inputs = 2;
  info.outputs = 1;
  return info;
}

class MeanOfParts final : public Join {
 public:
  explicit MeanOfParts(std::size_t count) : Join(info_for(count)), count_(count) {}

  void run(const Arguments& arguments) const override {
    std::memcpy(arguments.outputs[0], arguments.inputs[0], count_ * sizeof(float));
    const auto& run = *static_cast<const RunInfo*>(arguments.inputs[1]);
    if (run.exchange) run.exchange->average_over_span({static_cast<float*>(arguments.outputs[0]), count_});
  }

  void join(std::span<const Arguments> parts) const override {
    auto* const mean = static_cast<float*>(parts[0].outputs[0]);
    std::memcpy(mean, parts[0].inputs[0], count_ * sizeof(float));
    for (const Arguments& part : parts.subspan(1)) {
      const auto* x = static_cast<const float*>(part.inputs[0]);
      for (std::size_t i = 0; i < count_; ++i) mean[i] += x[i];
    }
    const float scale = 1.0f / static_cast<float>(parts.size());
    for (std::size_t i = 0; i < count_; ++i) mean[i] *= scale;
    for (const Arguments& part : parts.subspan(1)) std::memcpy(part.outputs[0], mean, count_ * sizeof(float));
  }

 private:
  std::size_t count_;
};

}  // namespace

kernels::KernelPointer prepare_mean_of_parts(std::size_t count) {
  return std::make_unique<MeanOfParts>(count);
}

}  // namespace superstep::target::cpu
