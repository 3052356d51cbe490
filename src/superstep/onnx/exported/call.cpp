#include "superstep/onnx/exported/call.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "superstep/base/error.h"

namespace superstep::onnx {
namespace {

using nlohmann::json;

[[noreturn]] void not_that(const std::string& argument, const char* wanted) {
  throw Error(ErrorCode::unsupported, fmt::format("its argument '{}' is not {}", argument, wanted));
}

ExportedCall::Size size_of(const json& value, const std::string& argument) {
  if (value.is_number_integer()) return {value.get<std::int64_t>(), {}};
  if (value.is_object() && value.contains("as_int")) return {value["as_int"].get<std::int64_t>(), {}};
  if (value.is_object() && value.contains("as_name")) return {0, value["as_name"].get<std::string>()};
  not_that(argument, "a size");
}

}  // namespace

ExportedCall::ExportedCall(const json& node) {
  op_ = node.at("target").get<std::string>();
  if (op_.starts_with("torch.ops.")) op_ = op_.substr(10);
  const std::size_t first = op_.find('.') + 1, end = op_.find('.', first);
  base_ = op_.substr(first, end == op_.npos ? op_.npos : end - first);
  in_place_ = op_.starts_with("aten.") && base_.ends_with('_') && !base_.ends_with("__");
  if (in_place_) base_.pop_back();
  name_ = node.value("name", "");
  for (const json& each : node.at("inputs")) arguments_.emplace_back(each.at("name"), each.at("arg"));
  const auto add = [&](const json& value) {
    outputs_.push_back(value.contains("name")      ? value["name"].get<std::string>()
                       : value.contains("as_name") ? value["as_name"].get<std::string>()
                                                   : std::string());
  };
  for (const json& output : node.at("outputs"))
    for (const auto& [kind, value] : output.items())
      if (value.is_array())
        for (const json& each : value) add(each);
      else if (value.is_object())
        add(value);
      else
        outputs_.emplace_back();
  if (name_.empty() && !outputs_.empty()) name_ = outputs_.front();
  const json metadata = node.value("metadata", json::object());
  const std::string stack = metadata.value("nn_module_stack", "");
  if (const std::size_t last = stack.rfind(';'); last != stack.npos) module_ = stack.substr(last + 1);
  if (const std::size_t comma = module_.find(','); comma != module_.npos) module_ = module_.substr(comma + 1);
  module_.resize(std::min(module_.find(','), module_.size()));
}

const json* ExportedCall::find(const std::string& argument) const {
  for (const auto& [name, value] : arguments_)
    if (name == argument && value.is_object() && !value.empty() && !value.contains("as_none")) return &value;
  return nullptr;
}

const json& ExportedCall::get(const std::string& argument) const {
  if (const json* found = find(argument)) return *found;
  throw Error(ErrorCode::bad_file, fmt::format("its argument '{}' is missing", argument));
}

std::vector<std::string> ExportedCall::values_taken() const {
  std::vector<std::string> names;
  for (const auto& [argument, value] : arguments_) {
    if (is_tensor(argument)) names.push_back(tensor(argument));
    if (value.is_object() && value.contains("as_tensors"))
      for (const json& each : value["as_tensors"]) names.push_back(each.at("name"));
  }
  return names;
}

bool ExportedCall::is_tensor(const std::string& argument) const {
  const json* found = find(argument);
  return found && (found->contains("as_tensor") || found->contains("as_optional_tensor"));
}

bool ExportedCall::is_number(const std::string& argument) const {
  const json* found = find(argument);
  return found && (found->contains("as_int") || found->contains("as_float") || found->contains("as_bool"));
}

std::string ExportedCall::tensor(const std::string& argument) const {
  const json* found = find(argument);
  if (!found) return {};
  if (found->contains("as_tensor")) return found->at("as_tensor").at("name");
  if (found->contains("as_optional_tensor")) {
    const json& inner = found->at("as_optional_tensor");
    return inner.contains("as_tensor") ? inner.at("as_tensor").at("name").get<std::string>() : std::string();
  }
  not_that(argument, "a tensor");
}

std::vector<std::string> ExportedCall::tensors(const std::string& argument) const {
  const json& found = get(argument);
  if (!found.contains("as_tensors")) not_that(argument, "a list of tensors");
  std::vector<std::string> names;
  for (const json& each : found.at("as_tensors")) names.push_back(each.at("name"));
  return names;
}

std::int64_t ExportedCall::integer(const std::string& argument, std::optional<std::int64_t> otherwise) const {
  const json* found = find(argument);
  if (!found && otherwise) return *otherwise;
  const Size known = size(argument);
  if (!known.symbol.empty()) not_that(argument, "a number that is known before the model runs");
  return known.value;
}

double ExportedCall::real(const std::string& argument, std::optional<double> otherwise) const {
  const json* found = find(argument);
  if (!found && otherwise) return *otherwise;
  const json& value = get(argument);
  if (value.contains("as_float")) {
    const json& number = value["as_float"];
    if (number.is_number()) return number.get<double>();
    if (number == "Infinity") return HUGE_VAL;
    if (number == "-Infinity") return -HUGE_VAL;
  }
  if (value.contains("as_int")) return value["as_int"].get<double>();
  if (value.contains("as_bool")) return value["as_bool"].get<bool>() ? 1 : 0;
  not_that(argument, "a number that is known before the model runs");
}

bool ExportedCall::yes(const std::string& argument, bool otherwise) const {
  const json* found = find(argument);
  if (!found) return otherwise;
  if (!found->contains("as_bool")) not_that(argument, "true or false");
  return found->at("as_bool");
}

std::string ExportedCall::text(const std::string& argument, const std::string& otherwise) const {
  const json* found = find(argument);
  if (!found) return otherwise;
  if (!found->contains("as_string")) not_that(argument, "a text");
  return found->at("as_string");
}

std::vector<std::int64_t> ExportedCall::integers(const std::string& argument,
                                                 std::optional<std::vector<std::int64_t>> otherwise) const {
  if (!has(argument) && otherwise) return *otherwise;
  std::vector<std::int64_t> values;
  for (const Size& each : sizes(argument)) {
    if (!each.symbol.empty()) not_that(argument, "known before the model runs");
    values.push_back(each.value);
  }
  return values;
}

ExportedCall::Size ExportedCall::size(const std::string& argument) const {
  const json& found = get(argument);
  if (found.contains("as_int")) return size_of(found["as_int"], argument);
  if (found.contains("as_sym_int")) return size_of(found["as_sym_int"], argument);
  not_that(argument, "a whole number");
}

std::vector<ExportedCall::Size> ExportedCall::sizes(const std::string& argument) const {
  const json& found = get(argument);
  std::vector<Size> values;
  for (const char* kind : {"as_ints", "as_sym_ints"})
    if (found.contains(kind)) {
      for (const json& each : found.at(kind)) values.push_back(size_of(each, argument));
      return values;
    }
  if (found.contains("as_int") || found.contains("as_sym_int")) return {size(argument)};
  not_that(argument, "a list of whole numbers");
}

}  // namespace superstep::onnx
