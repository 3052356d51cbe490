#include "superstep/target/cpu/run/outputs_apart.h"

#include <algorithm>
#include <vector>

namespace superstep::target::cpu {
namespace {

bool overlaps_any(const Tensor& output, std::span<const Tensor> inputs) {
  const std::byte* const begin = output.bytes();
  const std::byte* const end = begin + output.byte_count();
  return std::ranges::any_of(inputs, [&](const Tensor& input) {
    const std::byte* const first = input.bytes();
    return first < end && begin < first + input.byte_count();
  });
}

}  // namespace

bool overlap(std::span<const Tensor> inputs, std::span<const Tensor> outputs) {
  return std::ranges::any_of(outputs, [&](const Tensor& output) { return overlaps_any(output, inputs); });
}

void run_apart(std::span<const Tensor> inputs, std::span<Tensor> outputs,
               FunctionRef<void(std::span<Tensor> outputs)> run) {
  std::vector<Tensor> made(outputs.begin(), outputs.end());
  for (Tensor& output : made)
    if (overlaps_any(output, inputs)) output = Tensor(output.type(), output.shape());
  run(made);
  for (std::size_t i = 0; i < made.size(); ++i)
    if (made[i].bytes() != outputs[i].bytes()) made[i].copy_to(outputs[i].bytes());
}

}  // namespace superstep::target::cpu
