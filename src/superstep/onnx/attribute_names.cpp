#include "superstep/onnx/attribute_names.h"

#include <algorithm>

#include "superstep/base/text.h"
#include "superstep/op/core/definition.h"

namespace superstep::onnx {
namespace {

struct Row {
  std::string_view op, attributes;
};

// Names of ONNX that are no operators of ours: they are turned into others where a file is read, or refused.
constexpr Row rows[] = {
    {"ConcatFromSequence", "axis new_axis"},
    {"If", "else_branch then_branch"},
    {"ImageDecoder", "pixel_format"},
    {"Loop", "body"},
    {"Optional", "type"},
    {"OptionalGetElement", ""},
    {"OptionalHasElement", ""},
    {"RegexFullMatch", "pattern"},
    {"Scan",
     "body directions num_scan_inputs scan_input_axes scan_input_directions scan_output_axes "
     "scan_output_directions"},
    {"Scatter", "axis"},
    {"SequenceAt", ""},
    {"SequenceConstruct", ""},
    {"SequenceEmpty", "dtype"},
    {"SequenceErase", ""},
    {"SequenceInsert", ""},
    {"SequenceLength", ""},
    {"SequenceMap", "body"},
    {"SplitToSequence", "axis keepdims"},
    {"StringConcat", ""},
    {"StringNormalizer", "case_change_action is_case_sensitive locale stopwords"},
    {"StringSplit", "delimiter maxsplit"},
};

std::vector<std::string> words(std::string_view text) {
  std::vector<std::string> result = split(text, ' ');
  std::erase(result, "");
  return result;
}

}  // namespace

std::optional<std::vector<std::string>> attribute_names(std::string_view op) {
  const op::Definition* definition = op::find(op);
  const bool of_onnx = definition && definition->since_opset > 0;
  if (of_onnx && definition->traits.domain.empty()) return words(definition->traits.attributes);
  const auto row = std::ranges::lower_bound(rows, op, {}, &Row::op);
  if (row == std::end(rows) || row->op != op) return std::nullopt;
  return words(row->attributes);
}

}  // namespace superstep::onnx
