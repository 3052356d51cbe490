#include "superstep/target/cpu/kernels/elementwise/random_normal.h"

#include <algorithm>

#include "superstep/target/cpu/kernels/elementwise/random_normal_loops.h"

namespace superstep::kernels {
namespace {

// Numbers of a part, at least: two microseconds' work.
constexpr std::int64_t smallest_part = 4096;

class RandomNormalKernel final : public Kernel {
 public:
  RandomNormalKernel(KernelInfo info, const RandomNormal& random)
      : Kernel(std::move(info)), r_(random), loop_(normal_loop()) {
    info_.parts = std::clamp<std::int64_t>(r_.count / smallest_part, 1, most_parts);
  }

  void run(const Arguments& arguments) const override { run_range(arguments, {0, fours()}); }
  void run_part(const Arguments& arguments, std::int64_t part) const override {
    run_range(arguments, part_range(fours(), part, info_.parts));
  }

 private:
  std::int64_t fours() const { return (r_.count + 3) / 4; }  // what one block of the generator gives

  void run_range(const Arguments& arguments, PartRange range) const {
    NormalRun run;
    run.seed = r_.seed;
    run.sample = *static_cast<const std::uint64_t*>(arguments.inputs[0]);
    run.purpose = r_.stream;
    run.first = 4 * range.begin;
    run.n = std::min(4 * range.end, r_.count) - run.first;
    run.numbers = static_cast<float*>(arguments.outputs[0]) + run.first;
    if (run.n > 0) loop_(run);
  }

  RandomNormal r_;
  NormalLoop* loop_;
};

}  // namespace

Prepared prepare(const RandomNormal& random) {
  KernelInfo info;
  info.name = "normal random numbers";
  info.bytes = 4 * static_cast<double>(random.count);
  info.inputs = info.outputs = 1;
  return std::make_unique<RandomNormalKernel>(std::move(info), random);
}

}  // namespace superstep::kernels
