// One case of the ONNX backend test suite: a model, inputs, and what it must give.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "superstep/base/tensor.h"

namespace superstep::lab {

enum class CaseOutcome : std::uint8_t { passed, failed, skipped };
const char* name_of(CaseOutcome outcome);

struct CaseResult {
  std::string name;    // "test_relu"
  std::string target;  // "cpu"
  CaseOutcome outcome = CaseOutcome::failed;
  std::string reason;         // of a failure or a skip
  bool types_only = false;    // random: types and shapes were compared, elements were not
  bool folded_whole = false;  // a shape needed every input, so everything was computed at import
  double worst_error = 0;  // largest |y - expected| / (absolute + relative |expected|); above 1 is a failure
};

struct CaseOptions {
  std::string target = "reference";
  // A result y is right when |y - expected| <= absolute + relative |expected|: the tolerances of ONNX's own
  // runner (onnx/backend/test/runner, version 1.12).
  double relative = 1e-3, absolute = 1e-7;
};

// Every folder at or below `folder` that holds a model.onnx and a test_data_set_0, by path. Throws Error
// (not_found) when there is none.
std::vector<std::filesystem::path> find_cases(const std::filesystem::path& folder);

// Never throws for what the case holds.
CaseResult run_case(const std::filesystem::path& folder, const CaseOptions& options);

// Compares a result with what is expected. Empty when it is right, else what is wrong. `worst` takes the
// largest error in units of the tolerance.
std::string compare(const Tensor& result, const Tensor& expected, const CaseOptions& options, double& worst);

}  // namespace superstep::lab
