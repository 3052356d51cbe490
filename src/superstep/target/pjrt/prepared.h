// What a program takes besides inputs, states and constants, made of states and constants alone
// (stablehlo/preparation.h): made before the first run, and anew when a state has been set.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "superstep/target/pjrt/spread.h"
#include "superstep/target/pjrt/stablehlo/program.h"
#include "superstep/target/pjrt/states.h"

namespace superstep::target::pjrt {

// Whether programs there take prepared arguments. Compilers for processors order the kernels of convolutions
// anew in every run; those of other devices choose their order themselves, and read theirs as they lie.
bool is_prepared_at(const Place& place);

class PreparedArguments {
 public:
  PreparedArguments() = default;
  // Compiles the program that makes them; nothing where there is none. On one device.
  PreparedArguments(const stablehlo::Program::Prepared& program, const Place& place);

  // Throws Error (invalid_argument) where the states are refused.
  void refresh(const DeviceStates& states, const std::vector<std::vector<Buffer>>& constants);
  const std::vector<Buffer>& buffers() const { return buffers_; }
  std::int64_t bytes() const { return bytes_; }  // what they take; 0 where the plug-in does not say

 private:
  std::vector<abi::PjrtBuffer*> arguments(const DeviceStates& states,
                                          const std::vector<std::vector<Buffer>>& constants) const;

  Place place_;
  Loaded loaded_;
  std::size_t results_ = 0;
  std::vector<std::string> refusals_;
  std::vector<Buffer> buffers_;
  std::uint64_t made_of_ = 0;  // DeviceStates::settings(), where there are buffers
  std::int64_t bytes_ = 0;
};

// Where a program is compiled for one device that is not the first, it is compiled for any, and a call says
// which.
std::optional<std::size_t> named_device(const Place& place);

// Throws Error (invalid_argument) in the words of the first truth that holds.
void raise_refusal(const std::vector<std::string>& words, const Tensor& truths);

}  // namespace superstep::target::pjrt
