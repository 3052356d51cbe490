// Printing: the inverse of text_parse.cpp.
#include <fmt/format.h>

#include "superstep/base/encoding/base64.h"
#include "superstep/graph/text.h"
#include "superstep/graph/text_element.h"
#include "superstep/graph/text_name.h"

namespace superstep::graph {
namespace {

constexpr std::int64_t longest_list = 16;

template <class T>
std::string element_text(T value) {
  if constexpr (std::is_same_v<T, bool>)
    return value ? "true" : "false";
  else if constexpr (std::is_integral_v<T>)
    return fmt::format("{}", +value);
  else
    return float_text(value);
}

// Whether the words of a list say every bit: a NaN with a payload, or a bool that is neither 0 nor 1, is
// only told by its bytes.
template <class T>
bool words_say_all(const Tensor& tensor) {
  if constexpr (std::is_same_v<T, bool>) {
    const std::byte* bytes = tensor.bytes();
    return std::all_of(bytes, bytes + tensor.byte_count(), [](std::byte b) { return b <= std::byte{1}; });
  } else if constexpr (!std::is_integral_v<T>) {
    const T usual_nan = T(std::numeric_limits<float>::quiet_NaN());
    return std::ranges::all_of(tensor.as<T>(), [&](T value) {
      return !std::isnan(static_cast<double>(static_cast<float>(value))) || same_bits(value, usual_nan);
    });
  }
  return true;
}

template <class T>
std::string list_text(std::span<const T> values) {
  std::string text;
  for (const T& value : values) text += (text.empty() ? "" : ", ") + element_text(value);
  return "[" + text + "]";
}

std::string elements_text(const Tensor& tensor, bool data) {
  if (tensor.element_count() <= longest_list)
    if (std::string list = dispatch(
            tensor.type(),
            [&]<class T>() { return words_say_all<T>(tensor) ? list_text(tensor.as<T>()) : std::string(); });
        !list.empty())
      return list;
  if (!data) return "...";
  return "base64\"" + base64_encode({tensor.bytes(), tensor.byte_count()}) + "\"";
}

std::string type_text(const Tensor& tensor) { return to_string(ValueType{tensor.type(), tensor.shape()}); }

class Printer {
 public:
  Printer(const Graph& graph, PrintOptions options, std::string indent)
      : graph_(graph), options_(options), indent_(std::move(indent)) {}

  std::string run() {
    text_ = "graph " + quoted(graph_.name()) + " {\n";
    if (!graph_.doc().empty()) line("doc " + quoted(graph_.doc()));
    print_values_and_nodes();
    for (const Output& output : graph_.outputs())
      line(fmt::format("output {} = {}", quoted(output.name), reference(output.value)));
    for (const Update& update : graph_.updates())
      line(fmt::format("update {} = {}", reference(update.state), reference(update.next)));
    return text_ + indent_ + "}";
  }

 private:
  void line(const std::string& text) { text_ += indent_ + "  " + text + "\n"; }

  std::string reference(ValueId id) const {
    return id.valid() ? "%" + name_text(graph_.value(id).name) : "_";
  }

  // In the order of the ids. A node that has no output left stands right before the next node.
  void print_values_and_nodes() {
    std::size_t next_node = 0;
    for (const Value& value : graph_.values())
      if (value.kind != ValueKind::computed)
        line(declaration(value));
      else if (!is_left_out(value))
        for (; next_node <= value.producer.index(); ++next_node) line(statement(graph_.nodes()[next_node]));
    for (; next_node < graph_.node_count(); ++next_node) line(statement(graph_.nodes()[next_node]));
  }

  bool is_left_out(const Value& value) const {
    const auto& outputs = graph_.node(value.producer).outputs;
    const auto index = static_cast<std::size_t>(value.output_index);
    return index >= outputs.size() || !outputs[index].valid();
  }

  std::string declaration(const Value& value) const {
    static constexpr const char* words[] = {"input", "constant", "state"};
    std::string text = fmt::format("{} %{} : {}", words[static_cast<int>(value.kind)], name_text(value.name),
                                   to_string(value.type));
    if (value.kind != ValueKind::input) text += " = " + elements_text(value.data, options_.data);
    return text;
  }

  std::string statement(const Node& node) const {
    std::string text = outputs_text(node) + " = " + name_text(node.op) + "(";
    for (std::size_t i = 0; i < node.inputs.size(); ++i) text += (i ? ", " : "") + reference(node.inputs[i]);
    text += ")" + attributes_text(node.attributes);
    if (!node.name.empty()) text += " " + quoted(node.name);
    if (node.phase != Phase::forward) text += fmt::format(" @{}", name_of(node.phase));
    return text;
  }

  std::string outputs_text(const Node& node) const {
    std::string text;
    for (ValueId id : node.outputs) {
      text += (text.empty() ? "" : ", ") + reference(id);
      if (id.valid()) text += " : " + to_string(graph_.type(id));
    }
    return text.empty() ? "_" : text;
  }

  std::string attributes_text(const Attributes& attributes) const {
    std::string text;
    for (const auto& [name, value] : attributes)
      text += (text.empty() ? "" : ", ") + name_text(name) + " = " +
              std::visit([&](const auto& item) { return attribute_text(item); }, value);
    return text.empty() ? "" : " {" + text + "}";
  }

  std::string attribute_text(std::int64_t value) const { return element_text(value); }
  std::string attribute_text(double value) const {
    const bool odd = std::isnan(value) && !same_bits(value, std::numeric_limits<double>::quiet_NaN());
    return odd ? fmt::format("bits({:x})", std::bit_cast<std::uint64_t>(value)) : float_text(value);
  }
  std::string attribute_text(const std::string& value) const { return quoted(value); }
  std::string attribute_text(const std::vector<std::int64_t>& values) const { return list("", values); }
  std::string attribute_text(const std::vector<double>& values) const { return list("floats", values); }
  std::string attribute_text(const std::vector<std::string>& values) const { return list("strings", values); }
  std::string attribute_text(const Tensor& value) const {
    return fmt::format("tensor {} = {}", type_text(value), elements_text(value, options_.data));
  }
  std::string attribute_text(const std::shared_ptr<const Graph>& value) const {
    return Printer(*value, options_, indent_ + "    ").run();
  }

  // An empty list says its kind in front; others show it by their elements.
  template <class T>
  std::string list(const char* kind, const std::vector<T>& values) const {
    if (values.empty()) return fmt::format("{}[]", kind);
    std::string text;
    for (const T& value : values) text += (text.empty() ? "" : ", ") + attribute_text(value);
    return "[" + text + "]";
  }

  const Graph& graph_;
  PrintOptions options_;
  std::string indent_, text_;
};

}  // namespace

std::string to_text(const Graph& graph, PrintOptions options) {
  return Printer(graph, options, "").run() + "\n";
}

}  // namespace superstep::graph
