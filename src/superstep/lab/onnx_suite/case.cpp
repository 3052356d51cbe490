#include "superstep/lab/onnx_suite/case.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "superstep/onnx/model.h"
#include "superstep/op/core/definition.h"
#include "superstep/target/target.h"

namespace superstep::lab {
namespace {

namespace fs = std::filesystem;

// What a case may hold that is not arithmetic on tensors: not in the count of what must pass.
struct Skip {
  std::string reason;
};

std::vector<fs::path> numbered(const fs::path& folder, const char* prefix) {
  std::vector<fs::path> files;
  for (std::size_t i = 0;; ++i) {
    fs::path file = folder / fmt::format("{}_{}.pb", prefix, i);
    if (!fs::exists(file)) return files;
    files.push_back(std::move(file));
  }
}

void require_tensors(std::span<const onnx::Port> ports) {
  for (const onnx::Port& port : ports)
    if (!port.element) throw Skip{fmt::format("takes or gives {}", port.type)};
}

std::vector<Tensor> read_all(const std::vector<fs::path>& files) {
  std::vector<Tensor> tensors;
  for (const fs::path& file : files) try {
      tensors.push_back(onnx::read_tensor_file(file));
    } catch (const Error& error) {
      if (error.code() == ErrorCode::unsupported) throw Skip{error.message()};
      throw;
    }
  return tensors;
}

// NumPy has no bf16, so the suite's files hold the bits of such tensors as u16.
Tensor as_declared(const Tensor& tensor, ElementType declared) {
  if (declared != ElementType::bf16 || tensor.type() != ElementType::u16) return tensor;
  Tensor result(ElementType::bf16, tensor.shape());
  std::copy_n(tensor.bytes(), tensor.byte_count(), result.bytes());
  return result;
}

// Reasons of findings that say "not arithmetic on tensors" (onnx/adapters/adapters.cpp).
bool is_outside(const onnx::Finding& finding) {
  static constexpr std::array<std::string_view, 6> words{"strings", "sequences",           "optional values",
                                                         "maps",    "no place in a graph", "at run time"};
  return std::ranges::any_of(
      words, [&](std::string_view word) { return finding.reason.find(word) != std::string::npos; });
}

const Tensor* constant_data(const graph::Graph& graph, graph::ValueId id,
                            const onnx::ImportOptions& options) {
  const graph::Value& value = graph.value(id);
  if (value.kind == graph::ValueKind::constant) return &value.data;
  const auto given = options.values.find(value.name);
  return given == options.values.end() ? nullptr : &given->second;
}

// Does this Dropout drop anything?
bool drops(const graph::Graph& graph, const graph::Node& node, const onnx::ImportOptions& options) {
  if (node.inputs.size() < 3) return false;
  const Tensor* training = constant_data(graph, node.inputs[2], options);
  const Tensor* ratio = node.inputs[1].valid() ? constant_data(graph, node.inputs[1], options) : nullptr;
  return !training || (training->at(0) != 0 && (!ratio || ratio->at(0) != 0));
}

bool is_random(const graph::Graph& graph, const onnx::Findings& findings,
               const onnx::ImportOptions& options) {
  const bool has_random = std::ranges::any_of(findings.operators, [&](const onnx::OperatorCount& count) {
    const op::Definition* definition = op::find(count.op);
    return definition && definition->has_effects && count.op != "Dropout";
  });
  return has_random || std::ranges::any_of(graph.nodes(), [&](const graph::Node& node) {
           return node.op == "Dropout" && drops(graph, node, options);
         });
}

std::vector<Tensor> execute(const graph::Graph& graph, const std::vector<Tensor>& inputs,
                            const std::string& target) {
  const auto plan = target::find_target(target).compile([&](std::int64_t) { return graph; },
                                                        {.batch = 1, .micro_batch = 1});
  std::vector<Tensor> outputs;
  for (const target::Executable::Port& port : plan->outputs())
    outputs.emplace_back(port.type.element, port.type.shape);
  plan->run(inputs, outputs);
  return outputs;
}

class CaseRun {
 public:
  CaseRun(const fs::path& folder, const CaseOptions& options) : folder_(folder), options_(options) {
    result_.name = folder.filename().string();
    result_.target = options.target;
  }

  CaseResult run() {
    try {
      const onnx::Model model = onnx::Model::open(folder_ / "model.onnx");
      require_tensors(model.inputs());
      require_tensors(model.outputs());
      run_sets(model);
    } catch (const Skip& skip) {
      finish(CaseOutcome::skipped, skip.reason);
    } catch (const std::exception& error) {
      finish(CaseOutcome::failed, error.what());
    }
    return result_;
  }

 private:
  void finish(CaseOutcome outcome, std::string reason) {
    result_.outcome = outcome;
    result_.reason = std::move(reason);
  }

  void run_sets(const onnx::Model& model) {
    finish(CaseOutcome::passed, {});
    for (int set = 0; result_.outcome == CaseOutcome::passed; ++set) {
      const fs::path folder = folder_ / fmt::format("test_data_set_{}", set);
      if (!fs::exists(folder)) return;
      run_set(model, folder);
    }
  }

  void run_set(const onnx::Model& model, const fs::path& folder) {
    std::vector<Tensor> inputs = read_all(numbered(folder, "input"));
    const std::vector<Tensor> expected = read_all(numbered(folder, "output"));
    if (inputs.size() > model.inputs().size() || expected.size() > model.outputs().size())
      return finish(CaseOutcome::failed, "the data set does not fit the model");
    onnx::ImportOptions bound;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      inputs[i] = as_declared(inputs[i], *model.inputs()[i].element);
      bound.values[model.inputs()[i].name] = inputs[i];
    }
    const onnx::Findings findings = model.check(bound);
    if (!findings.importable()) return refuse(findings);
    const graph::Graph graph = model.import(bound);
    result_.folded_whole = result_.folded_whole || (graph.node_count() == 0 && !inputs.empty());
    result_.types_only = is_random(graph, findings, bound);
    compare_all(execute(graph, inputs, options_.target), expected, graph);
  }

  void refuse(const onnx::Findings& findings) {
    const bool outside = std::ranges::any_of(findings.unsupported, is_outside);
    finish(outside ? CaseOutcome::skipped : CaseOutcome::failed, onnx::to_string(findings.unsupported[0]));
  }

  void compare_all(const std::vector<Tensor>& results, const std::vector<Tensor>& expected,
                   const graph::Graph& graph) {
    for (std::size_t i = 0; i < expected.size(); ++i) {
      CaseOptions options = options_;
      if (result_.types_only) options.absolute = INFINITY;
      double worst = 0;
      const std::string wrong =
          compare(results[i], as_declared(expected[i], results[i].type()), options, worst);
      if (!result_.types_only) result_.worst_error = std::max(result_.worst_error, worst);
      if (!wrong.empty())
        return finish(CaseOutcome::failed, fmt::format("output '{}' {}", graph.outputs()[i].name, wrong));
    }
  }

  fs::path folder_;
  CaseOptions options_;
  CaseResult result_;
};

}  // namespace

const char* name_of(CaseOutcome outcome) {
  static constexpr const char* names[] = {"passed", "failed", "skipped"};
  return names[static_cast<int>(outcome)];
}

std::vector<fs::path> find_cases(const fs::path& folder) {
  if (!fs::is_directory(folder))
    throw Error(ErrorCode::not_found, "there is no such folder", folder.string());
  std::vector<fs::path> cases;
  const auto take = [&](const fs::path& path) {
    if (fs::exists(path / "model.onnx") && fs::exists(path / "test_data_set_0")) cases.push_back(path);
  };
  take(folder);
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    if (entry.is_directory()) take(entry.path());
  if (cases.empty())
    throw Error(ErrorCode::not_found, "holds no cases", folder.string(),
                "a case is a folder with a model.onnx and a test_data_set_0");
  std::ranges::sort(cases);
  return cases;
}

CaseResult run_case(const fs::path& folder, const CaseOptions& options) {
  return CaseRun(fs::weakly_canonical(folder), options).run();
}

}  // namespace superstep::lab
