// A few samples of a run and what its model said of them when it was trained: held against what it says now,
// before it answers others.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>

#include "superstep/base/tensor.h"

namespace superstep::run {

struct SelfTest {
  std::map<std::string, Tensor> inputs, outputs;  // by the model's names, rows of a batch
  std::string precision = "f32";                  // that the outputs were computed in

  std::int64_t rows() const { return inputs.empty() ? 0 : inputs.begin()->second.shape().extents()[0]; }
};

// FOLDER/selftest.safetensors, for these weights alone.
void write_self_test(const std::filesystem::path& folder, const std::map<std::string, Tensor>& states,
                     const SelfTest& test);
// Nothing where there is none, or it is of other weights: a run that was trained on has no newer one before
// it ends. Throws Error (bad_file) where it is damaged.
std::optional<SelfTest> read_self_test(const std::filesystem::path& folder,
                                       const std::map<std::string, Tensor>& states);

// What is wrong with `outputs`, computed in `precision`, beside those of the test; empty: nothing is.
std::string difference_from(const SelfTest& test, const std::map<std::string, Tensor>& outputs,
                            const std::string& precision);

}  // namespace superstep::run
