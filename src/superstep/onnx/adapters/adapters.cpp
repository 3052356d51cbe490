#include "superstep/onnx/adapters/adapters.h"

#include <fmt/format.h>

#include <algorithm>

#include "superstep/base/text.h"
#include "superstep/onnx/own_functions.h"
#include "superstep/op/core/definition.h"
#include "superstep/op/custom/operator_library.h"

namespace superstep::onnx {
namespace {

using Family = std::span<const Adapter> (*)();

struct Domain {
  std::string_view name;
  std::span<const Family> families;
  bool takes_over;  // its operators in room op/ that have no line here are taken as they are
};

constexpr Family default_families[] = {elementwise_adapters, shape_adapters,  reduction_adapters,
                                       network_adapters,     random_adapters, control_flow_adapters,
                                       sequence_adapters};
// What files of ours carry as functions is taken as what it is.
std::vector<Var> kept_boxes(NodeImport& node) {
  return node.emitter.emit("superstep.KeptBoxes", node.inputs, node.attributes, 2);
}
constexpr Adapter own_table[] = {{"KeptBoxes", 1, any_later, kept_boxes}};
std::span<const Adapter> own_adapters() { return own_table; }
constexpr Family own_families[] = {own_adapters};

constexpr Family microsoft_families[] = {microsoft_adapters};

constexpr Domain domains[] = {
    {"", default_families, true},
    {own_domain, own_families, false},
    {"com.microsoft", microsoft_families, false},
    {"ai.onnx.ml", {}, true},
    {"ai.onnx.preview", {}, true},
    {"ai.onnx.preview.training", {}, true},
};

std::vector<Var> take_over(NodeImport& node) { return node.pass(); }

// An operator of a user's library, with the attributes that it says it has.
std::vector<Var> take_custom(NodeImport& node) {
  const std::string name = op::custom_name(node.domain, node.op);
  const std::vector<std::string> known = split(op::traits_of(name).attributes, ' ');
  for (const auto& [attribute, value] : node.attributes)
    if (std::ranges::find(known, attribute) == known.end())
      refuse_node(fmt::format("has an attribute '{}', which {} does not take", attribute, name),
                  unknown_name_hint(attribute, known));
  return node.pass(name);
}

struct Reason {
  std::string_view op, why;
};

constexpr std::string_view strings = "works on strings, and a graph holds numbers alone";
constexpr std::string_view sequences = "works on sequences, and a graph holds tensors alone";
constexpr std::string_view maps = "works on maps, and a graph holds tensors alone";

constexpr Reason reasons[] = {
    {"StringNormalizer", strings},
    {"StringConcat", strings},
    {"StringSplit", strings},
    {"RegexFullMatch", strings},
    {"LabelEncoder", strings},
    {"CategoryMapper", strings},
    {"SequenceMap", sequences},
    {"ZipMap", maps},
    {"CastMap", maps},
    {"DictVectorizer", maps},
    {"ImageDecoder", "reads files of pictures, which is not arithmetic"},
    {"Gradient", "differentiates at run time: derivatives are taken of the graph instead"},
};

Adapt find_in(const Domain& domain, std::string_view op, std::int64_t opset) {
  for (Family family : domain.families)
    for (const Adapter& adapter : family())
      if (adapter.op == op && adapter.first <= opset && opset <= adapter.last) return adapter.adapt;
  const bool known = domain.takes_over && op.find('.') == std::string_view::npos && op::find(op) &&
                     op::traits_of(op).domain == domain.name;
  return known ? take_over : nullptr;
}

std::string misspelt(std::string_view op) {
  std::vector<std::string> names;
  for (const op::Definition& definition : op::all()) names.emplace_back(definition.name);
  const auto nearest = nearest_name(op, names);
  return nearest ? fmt::format(" (there is '{}')", *nearest) : "";
}

}  // namespace

Adapt find_adapter(std::string_view domain, std::string_view op, std::int64_t opset) {
  for (const Domain& candidate : domains)
    if (candidate.name == domain) return find_in(candidate, op, opset);
  const op::Definition* custom = op::find(op::custom_name(domain, op));
  return custom && custom->traits.domain == domain ? take_custom : nullptr;
}

bool takes_sequences(std::string_view domain, std::string_view op) {
  if (!domain.empty()) return false;
  if (op == "Identity" || op == "Loop" || op == "If") return true;
  return std::ranges::any_of(sequence_adapters(), [&](const Adapter& adapter) { return adapter.op == op; });
}

std::string reason_without_adapter(std::string_view domain, std::string_view op) {
  for (const Reason& reason : reasons)
    if (reason.op == op) return std::string(reason.why);
  const bool known_domain =
      std::ranges::any_of(domains, [&](const Domain& candidate) { return candidate.name == domain; });
  if (!known_domain)
    return fmt::format(
        "domain '{}' is not known, and the model has no function of this name: a library of "
        "yours may have it (--operators)",
        domain);
  return fmt::format("there is no such operator here{}", domain.empty() ? misspelt(op) : "");
}

}  // namespace superstep::onnx
