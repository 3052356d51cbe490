#include "superstep/onnx/exported/exported.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>
#include <stdexcept>

#include "superstep/base/printable.h"
#include "superstep/base/text.h"
#include "superstep/onnx/exported/aten.h"

namespace superstep::onnx {
namespace {

using nlohmann::json;

constexpr std::size_t most_told = 10;  // nodes that cannot be read, in one message

std::string place_of(const ExportedCall& call) {
  return call.module().empty() ? printable(call.name())
                               : fmt::format("{} ({})", printable(call.name()), printable(call.module()));
}

class Reading {
 public:
  explicit Reading(const ExportedProgram& program) : program_(program), translation_(program) {}

  std::string run() {
    for (const json& spec : program_.signature().at("input_specs")) take_input(spec);
    for (const json& node : program_.graph().at("nodes")) take_node(ExportedCall(node));
    if (!refused_.empty()) refuse();
    for (const json& spec : program_.signature().at("output_specs")) give_output(spec);
    return translation_.model_bytes("exported");
  }

 private:
  [[noreturn]] void refuse() const {
    std::vector<std::string> lines = refused_;
    const std::size_t more = lines.size() - std::min(lines.size(), most_told);
    lines.resize(lines.size() - more);
    throw Error(
        ErrorCode::unsupported,
        fmt::format("cannot be read: {}{}", fmt::join(lines, "; "),
                    more > 0 ? fmt::format("; and {} more", more) : std::string()),
        program_.where(),
        "export it as ONNX: torch.onnx.export(torch.export.load(FILE), (), 'model.onnx', dynamo=True)");
  }

  // Weights have the names that their module gives them, unless a value of the graph has that name.
  void take_weight(const json& spec, const char* kind) {
    const std::string placeholder = spec.at("arg").at("name"), name = spec.at(kind);
    const bool taken = program_.graph().at("tensor_values").contains(name) && name != placeholder;
    const std::string value = taken ? placeholder : name;
    translation_.rename(placeholder, value);
    weights_.emplace(placeholder, std::pair(value, name));
  }

  void take_input(const json& spec) {
    if (spec.contains("parameter")) return take_weight(spec["parameter"], "parameter_name");
    if (spec.contains("buffer")) return take_weight(spec["buffer"], "buffer_name");
    if (spec.contains("tensor_constant")) return take_weight(spec["tensor_constant"], "tensor_constant_name");
    if (spec.contains("constant_input")) return;
    if (!spec.contains("user_input") || !spec["user_input"].at("arg").contains("as_tensor"))
      throw Error(ErrorCode::unsupported, "takes an input that is no tensor", program_.where());
    translation_.add_input(spec["user_input"].at("arg").at("as_tensor").at("name"));
  }

  // A weight is read when a node takes it: counters of batches are in nobody's way.
  void bring(const ExportedCall& call) {
    for (const std::string& name : call.values_taken())
      if (const auto found = weights_.find(name); found != weights_.end())
        translation_.add_weight(found->second.first, program_.weight(found->second.second));
  }

  void take_node(const ExportedCall& call) {
    // A counter that nothing else reads.
    if (call.in_place() && call.base() == "add" && call.tensor("self").ends_with("num_batches_tracked")) {
      return;
    }
    const bool of_sizes = call.op().starts_with("_operator.");
    const AtenOperator* found = find_aten(of_sizes ? call.op() : call.base());
    if (!found || (!of_sizes && !call.op().starts_with("aten."))) {
      refused_.push_back(fmt::format("{}: there is no {}", place_of(call), printable(call.op())));
      return give_names(call);
    }
    try {
      if (call.in_place()) require_alone(call.tensor("self"));
      bring(call);
      translation_.begin(call);
      found->translate(translation_, call);
    } catch (const Error& error) {
      if (error.code() == ErrorCode::bad_file)
        throw error.in(fmt::format("{}: {}", program_.where(), place_of(call)));
      refused_.push_back(fmt::format("{} ({}): {}", place_of(call), call.op(), error.message()));
    }
    give_names(call);
    if (found->is_view) {
      viewed_.insert(call.tensor("self"));
      for (const std::string& output : call.outputs()) viewed_.insert(output);
    }
    // From here on the argument has the result.
    if (call.in_place()) translation_.rename(call.tensor("self"), call.outputs().at(0));
  }

  void give_names(const ExportedCall& call) {
    for (const std::string& output : call.outputs())
      if (!output.empty()) translation_.rename(output, output);
  }

  // What is written in place is seen in every view of the same memory: such writes are not followed.
  void require_alone(const std::string& name) const {
    if (weights_.contains(name))
      throw Error(ErrorCode::unsupported,
                  fmt::format("it writes into '{}', a weight or a buffer", printable(name)));
    if (viewed_.contains(name))
      throw Error(ErrorCode::unsupported,
                  fmt::format("it writes into '{}', of which there is a view", printable(name)));
  }

  void give_output(const json& spec) {
    if (!spec.contains("user_output") || !spec["user_output"].at("arg").is_object()) {
      if (spec.contains("buffer_mutation") &&
          spec["buffer_mutation"].value("buffer_name", "").ends_with("num_batches_tracked"))
        return;
      throw Error(ErrorCode::unsupported,
                  fmt::format("changes what is kept between calls: {}", printable(spec.dump())),
                  program_.where());
    }
    const json& argument = spec["user_output"]["arg"];
    if (argument.contains("as_none")) return;
    if (!argument.contains("as_tensor"))
      throw Error(ErrorCode::unsupported, "gives something that is no tensor", program_.where());
    const std::string name = argument["as_tensor"].at("name");
    if (const auto found = weights_.find(name); found != weights_.end())
      translation_.add_weight(found->second.first, program_.weight(found->second.second));
    translation_.add_output(name);
  }

  const ExportedProgram& program_;
  Translation translation_;
  std::map<std::string, std::pair<std::string, std::string>> weights_;  // value, and name in the archive
  std::set<std::string> viewed_;
  std::vector<std::string> refused_;
};

}  // namespace

bool may_be_exported(std::span<const std::byte> bytes) {
  constexpr std::string_view mark = "PK\x03\x04";
  return bytes.size() >= mark.size() &&
         std::ranges::equal(std::as_bytes(std::span(mark)), bytes.first(mark.size()));
}

std::vector<std::byte> onnx_of_exported(std::span<const std::byte> bytes, const std::string& where) {
  try {
    const ExportedProgram program(bytes, where);
    const std::string model = Reading(program).run();
    const auto all = std::as_bytes(std::span(model));
    return {all.begin(), all.end()};
  } catch (const json::exception& error) {
    throw Error(ErrorCode::bad_file, fmt::format("its graph is damaged: {}", error.what()), where);
  } catch (const std::out_of_range&) {  // a list that is shorter than its operator has it
    throw Error(ErrorCode::bad_file, "its graph is damaged: something is missing", where);
  }
}

}  // namespace superstep::onnx
