#include "bench/kernels/sequence.h"

#include <fmt/format.h>

#include <cstdlib>

#include "bench/kernels/peak.h"
#include "superstep/base/error.h"
#include "superstep/base/random.h"

namespace superstep::bench {

void Sequence::Free::operator()(void* p) const { std::free(p); }

Sequence::Memory Sequence::allocate(std::size_t bytes) {
  return Memory(std::aligned_alloc(64, (bytes + 63) / 64 * 64 + 64));
}

void* Sequence::tensor(const std::string& name, std::int64_t elements) {
  Memory& memory = tensors_[name];
  if (memory) return memory.get();
  const std::size_t bytes = static_cast<std::size_t>(elements) * sizeof(float);
  memory = allocate(bytes);
  tensor_bytes_ += bytes;
  RandomStream random(tensors_.size());
  for (std::int64_t i = 0; i < elements; ++i)
    static_cast<float*>(memory.get())[i] = static_cast<float>(random.uniform(-0.1, 0.1));
  return memory.get();
}

const kernels::Kernel& Sequence::add(const std::string& phase, const std::string& name,
                                     kernels::Prepared kernel, std::vector<void*> inputs,
                                     std::vector<void*> outputs, int times) {
  if (!kernel) throw Error(ErrorCode::internal, to_string(kernel.error()), name);
  if ((*kernel)->info().scratch_bytes > scratch_bytes_) {
    scratch_bytes_ = (*kernel)->info().scratch_bytes;
    scratch_ = allocate(scratch_bytes_);
  }
  steps_.push_back(
      {phase, name, std::move(*kernel), {inputs.begin(), inputs.end()}, std::move(outputs), times});
  return *steps_.back().kernel;
}

void Sequence::run() const {
  for (const Step& step : steps_) run_step(step, scratch_.get());
}

std::vector<Sequence::Timing> Sequence::time_each() const {
  std::vector<Timing> timings;
  for (const Step& step : steps_) {
    const double seconds = best_seconds([&] { run_step(step, scratch_.get()); });
    const kernels::KernelInfo& info = step.kernel->info();
    timings.push_back({step.phase, step.name, info.name, info.flops, info.bytes, seconds, step.times});
  }
  return timings;
}

void print_table(const Sequence& sequence, std::int64_t samples, double peak, bool in_sequence) {
  const auto n = static_cast<double>(samples);
  double seconds = 0, flops = 0;
  std::map<std::string, std::pair<double, double>> phases;
  fmt::print("{:9} {:22} {:>9} {:>8} {:>7} {:>7}  {}\n", "phase", "kernel", "us/sample", "GFLOP/s", "% peak",
             "% time", "implementation");
  const auto timings = sequence.time_each();
  for (const auto& t : timings) {
    seconds += t.times * t.seconds, flops += t.times * t.flops;
    phases[t.phase].first += t.times * t.seconds, phases[t.phase].second += t.times * t.flops;
  }
  for (const auto& t : timings)
    fmt::print("{:9} {:22} {:9.3f} {:8.1f} {:7.1f} {:7.1f}  {}\n", t.phase, t.name, 1e6 * t.seconds / n,
               t.flops / t.seconds / 1e9, 100 * t.flops / t.seconds / peak, 100 * t.seconds / seconds,
               t.kernel);
  for (const auto& [phase, sum] : phases)
    fmt::print("{:9} sum {:28.3f} us a sample, floor {:.3f}, ratio {:.3f}\n", phase, 1e6 * sum.first / n,
               1e6 * sum.second / peak / n, sum.first / (sum.second / peak));
  if (!in_sequence) return;
  const double whole = best_seconds([&] { sequence.run(); }, 15, 5e-3);
  fmt::print(
      "all apart: {:.2f} us a sample, ratio {:.3f}; in sequence: {:.2f} us a sample; floor {:.2f} us; ratio "
      "{:.3f}; "
      "tensors {:.0f} kB\n",
      1e6 * seconds / n, seconds / (flops / peak), 1e6 * whole / n, 1e6 * flops / peak / n,
      whole / (flops / peak), static_cast<double>(sequence.tensor_bytes()) / 1e3);
}

}  // namespace superstep::bench
