// The ONNX model that an exported graph becomes, as its nodes are added.
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "superstep/onnx/exported/call.h"
#include "superstep/onnx/exported/program.h"
#include "superstep/onnx/wire/wire.h"

namespace superstep::onnx {

// Numbers of ONNX's element types.
inline constexpr std::int64_t onnx_f32 = 1, onnx_i64 = 7, onnx_bool = 9;

class Translation {
 public:
  using Value = std::variant<std::int64_t, double, std::string, std::vector<std::int64_t>>;
  using Attributes = std::vector<std::pair<const char*, Value>>;
  using Names = std::vector<std::string>;

  explicit Translation(const ExportedProgram& program) : program_(program) {}

  const ExportedProgram& program() const { return program_; }

  // Nodes get the name of the call that is being translated.
  void begin(const ExportedCall& call) { node_ = call.name(), made_ = 0; }

  // A node with these outputs, or with one that gets a name of its own. Inputs are values of ONNX: "" is one
  // that is left out.
  void node(const char* op, const Names& inputs, const Names& outputs, const Attributes& attributes = {});
  std::string node1(const char* op, const Names& inputs, const Attributes& attributes = {});

  // The value of ONNX that a value of the exported graph is.
  std::string value(const std::string& exported) const;
  void rename(const std::string& exported, const std::string& value) { names_[exported] = value; }

  // Constants, as nodes: they are no weights.
  std::string integers(const std::vector<std::int64_t>& values);  // a list
  std::string integer(std::int64_t value);                        // a scalar
  std::string number(std::int64_t onnx_type, double value);       // a scalar
  // A list of sizes, those that follow the inputs included.
  std::string sizes(const std::vector<ExportedCall::Size>& sizes);
  std::string size(const ExportedCall::Size& size);  // a scalar
  std::string cast(const std::string& value, std::int64_t onnx_type);

  void add_weight(const std::string& name, const ExportedProgram::Weight& weight);
  void add_input(const std::string& name);
  void add_output(const std::string& exported);

  std::string model_bytes(const std::string& name);

 private:
  std::string fresh();

  const ExportedProgram& program_;
  Message graph_;
  std::map<std::string, std::string> names_;
  std::set<std::string> plain_, outputs_;  // inputs and weights; what is given
  std::string node_;
  int made_ = 0;
};

}  // namespace superstep::onnx
