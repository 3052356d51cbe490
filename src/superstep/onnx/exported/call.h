// One node of an exported graph: an operator of ATen, and what it is called with.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace superstep::onnx {

// Arguments by their names in ATen's declarations; those that have their default are left out in the file.
// What is asked for as another kind than it is throws Error (unsupported) naming the argument.
class ExportedCall {
 public:
  explicit ExportedCall(const nlohmann::json& node);

  const std::string& op() const { return op_; }      // "aten.conv2d.default"
  const std::string& base() const { return base_; }  // "conv2d", without overload and the mark of in-place
  bool in_place() const { return in_place_; }
  const std::string& name() const { return name_; }
  // Where in its module: "layer1.conv"; empty at its top, and where it is not said.
  const std::string& module() const { return module_; }
  // Values that it gives; empty names of those that nobody takes.
  const std::vector<std::string>& outputs() const { return outputs_; }

  // Tensors that it takes, wherever they stand among its arguments.
  std::vector<std::string> values_taken() const;

  bool has(const std::string& argument) const { return find(argument) != nullptr; }
  bool is_tensor(const std::string& argument) const;
  bool is_number(const std::string& argument) const;  // known, of any kind
  std::string tensor(const std::string& argument) const;
  std::vector<std::string> tensors(const std::string& argument) const;
  std::int64_t integer(const std::string& argument, std::optional<std::int64_t> otherwise = {}) const;
  double real(const std::string& argument, std::optional<double> otherwise = {}) const;
  bool yes(const std::string& argument, bool otherwise) const;
  std::string text(const std::string& argument, const std::string& otherwise) const;
  std::vector<std::int64_t> integers(const std::string& argument,
                                     std::optional<std::vector<std::int64_t>> otherwise = {}) const;
  // A number that is known, or a value that has it.
  struct Size {
    std::int64_t value = 0;
    std::string symbol;  // the value; empty: known
  };
  Size size(const std::string& argument) const;
  std::vector<Size> sizes(const std::string& argument) const;

 private:
  const nlohmann::json* find(const std::string& argument) const;
  const nlohmann::json& get(const std::string& argument) const;

  std::string op_, base_, name_, module_;
  bool in_place_ = false;
  std::vector<std::string> outputs_;
  std::vector<std::pair<std::string, nlohmann::json>> arguments_;  // {"as_tensor": ...}
};

}  // namespace superstep::onnx
