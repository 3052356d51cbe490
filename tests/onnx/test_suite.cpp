// ONNX's own backend test suite (package libonnx-testdata), and the models exported from PyTorch.
#include <fmt/format.h>

#include <cmath>
#include <map>

#include "superstep/base/file.h"
#include "superstep/base/text.h"
#include "superstep/base/thread_pool.h"
#include "superstep/lab/onnx_suite/suite.h"
#include "tests/onnx/support.h"
#include "tests/scratch.h"

namespace superstep::lab {
namespace {

namespace fs = std::filesystem;
using onnx::testing::values;

constexpr const char* suite_folder = "/usr/include/onnx/backend/test/data";
const fs::path models = fs::path(SUPERSTEP_ONNX_TESTS) / "models";

// Lines "TARGET CASE: REASON" of expected_failures.txt, by case; target "all" or a name.
std::map<std::string, std::string> expected_failures(const std::string& target) {
  std::map<std::string, std::string> failures;
  for (const std::string& line :
       split(read_text_file(fs::path(SUPERSTEP_ONNX_TESTS) / "expected_failures.txt"), '\n')) {
    if (line.empty() || line[0] == '#') continue;
    const std::size_t space = line.find(' '), colon = line.find(": ");
    const std::string where = line.substr(0, space);
    if (where == "all" || where == target)
      failures[line.substr(space + 1, colon - space - 1)] = line.substr(colon + 2);
  }
  return failures;
}

class Suite : public ::testing::TestWithParam<const char*> {};

TEST_P(Suite, PassesButForWhatIsListed) {
  if (!fs::exists(suite_folder))
    GTEST_SKIP() << "libonnx-testdata is not installed (tools/setup installs it)";
  const std::string target = GetParam();
  const auto results = run_cases(find_cases(suite_folder), {.target = target}, available_processors());
  std::map<std::string, std::string> listed = expected_failures(target);
  for (const CaseResult& result : results) {
    const bool is_listed = listed.erase(result.name) > 0;
    if (result.outcome == CaseOutcome::failed)
      EXPECT_TRUE(is_listed) << result.name << " fails: " << result.reason;
    else
      EXPECT_FALSE(is_listed) << result.name << " " << name_of(result.outcome)
                              << ", and is listed as a failure";
  }
  for (const auto& [name, reason] : listed) ADD_FAILURE() << name << " is listed, and not in the suite";
  const SuiteCounts counts = count(results);
  EXPECT_GE(counts.share(), 0.97);
  EXPECT_GE(counts.passed, 1000);
  // Comparing types alone, or computing at import, must stay the exception.
  EXPECT_LE(counts.types_only, 15);
  EXPECT_LE(counts.folded_whole, 60);
}

INSTANTIATE_TEST_SUITE_P(Targets, Suite, ::testing::Values("reference", "cpu"),
                         [](const auto& target) { return std::string(target.param); });

// Nine architectures at small width against PyTorch's outputs.
TEST_P(Suite, ModelsFromPyTorchGiveItsOutputs) {
  const auto results = run_cases(
      find_cases(models), {.target = GetParam(), .relative = 1e-4, .absolute = 1e-5}, available_processors());
  EXPECT_EQ(results.size(), 9u);
  for (const CaseResult& result : results) {
    EXPECT_EQ(result.outcome, CaseOutcome::passed) << result.name << ": " << result.reason;
    EXPECT_FALSE(result.folded_whole || result.types_only) << result.name;
  }
}

// The runner itself: a case that is right, and what must not pass.
class Runner : public ::testing::Test {
 protected:
  void write_case(const Tensor& input, const Tensor& output, const std::string& op = "Relu") {
    using namespace onnx::testing;
    fs::create_directories(scratch_ / "case/test_data_set_0");
    const std::string extent = std::to_string(input.element_count());
    const GraphParts parts{.nodes = {node(op, {"x"}, {"y"})},
                           .inputs = {port("x", f32, {extent})},
                           .outputs = {port("y", f32, {extent})}};
    write_file_atomically(scratch_ / "case/model.onnx", model_bytes(onnx::testing::graph(parts)));
    write_tensor("input_0", input);
    write_tensor("output_0", output);
  }
  CaseResult result() { return run_case(scratch_ / "case", {}); }

 private:
  void write_tensor(const std::string& name, const Tensor& tensor) {
    const std::string raw(reinterpret_cast<const char*>(tensor.bytes()), tensor.byte_count());
    write_file_atomically(
        scratch_ / ("case/test_data_set_0/" + name + ".pb"),
        onnx::testing::tensor(name, tensor.type() == ElementType::f32 ? 1 : 11, tensor.shape().extents(), raw)
            .bytes());
  }
  ScratchFolder scratch_;
};

TEST_F(Runner, PassesWhatIsRight) {
  write_case(values({-1, 2}), values({0, 2}));
  EXPECT_EQ(result().outcome, CaseOutcome::passed) << result().reason;
  write_case(values({-1, 2}), values({0, 2.0019f}));
  EXPECT_EQ(result().outcome, CaseOutcome::passed);  // inside the suite's tolerance
}

TEST_F(Runner, FailsWhatIsWrong) {
  write_case(values({-1, 2}), values({0, 2.0021f}));
  EXPECT_TRUE(
      contains(result().reason, "1 of 2 elements are wrong; the first, element 1, is 2, expected 2.0021"));
  write_case(values({-1, 2}), values({0, NAN}));
  EXPECT_EQ(result().outcome, CaseOutcome::failed);
  write_case(values({-1, 2}), values({2, 1}, {0, 2}));
  EXPECT_TRUE(contains(result().reason, "is f32[2], expected f32[2,1]"));
  write_case(values({-1, 2}), Tensor::from<double>({2}, {0, 2}));
  EXPECT_TRUE(contains(result().reason, "is f32[2], expected f64[2]"));
}

TEST_F(Runner, FailsWhatItCannotImportAndSkipsWhatIsNoArithmetic) {
  write_case(values({-1, 2}), values({0, 2}), "Reluu");
  EXPECT_EQ(result().outcome, CaseOutcome::failed);
  EXPECT_TRUE(contains(result().reason, "there is no such operator"));
  write_case(values({-1, 2}), values({0, 2}), "StringNormalizer");
  EXPECT_EQ(result().outcome, CaseOutcome::skipped);
}

TEST(FindCases, SaysWhenThereAreNone) {
  const ScratchFolder scratch;
  EXPECT_TRUE(contains(onnx::testing::error_of([&] { find_cases(scratch / ""); }), "holds no cases"));
  EXPECT_TRUE(
      contains(onnx::testing::error_of([&] { find_cases(scratch / "absent"); }), "there is no such folder"));
}

}  // namespace
}  // namespace superstep::lab
