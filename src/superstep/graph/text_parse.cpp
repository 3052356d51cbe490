// Parsing by recursive descent. The text may be hostile: nothing is allocated that the text itself does not
// account for, nesting is bounded, and a graph that comes out has unique names and no reference forward.
#include <fmt/format.h>

#include <optional>
#include <unordered_map>

#include "superstep/graph/text.h"
#include "superstep/graph/text_cursor.h"
#include "superstep/graph/text_element.h"
#include "superstep/graph/text_tensor.h"

namespace superstep::graph {
namespace {

constexpr int deepest_nesting = 32;

std::shared_ptr<const Graph> parse_subgraph(TextCursor& cursor, int depth);

// --- attributes

double parse_bits(TextCursor& cursor) {
  cursor.expect('(', "after bits");
  const auto mark = cursor.mark();
  const std::string_view digits = cursor.word();
  std::uint64_t bits = 0;
  const char* end = digits.data() + digits.size();
  const auto [stopped, code] = std::from_chars(digits.data(), end, bits, 16);
  if (code != std::errc() || stopped != end) throw cursor.error(mark, "expected hexadecimal digits");
  cursor.expect(')', "after the digits");
  return std::bit_cast<double>(bits);
}

bool looks_floating(std::string_view text) { return text.find_first_of(".enb") != std::string_view::npos; }

double parse_number(TextCursor& cursor) {
  const auto mark = cursor.mark();
  const std::string_view text = cursor.number();
  if (text == "bits") return parse_bits(cursor);
  double value = 0;
  if (!looks_floating(text) || !parse_float(text, value))
    throw cursor.error(mark, fmt::format("'{}' is no floating-point number", text));
  return value;
}

std::int64_t parse_whole(TextCursor& cursor) {
  const auto mark = cursor.mark();
  const std::string_view text = cursor.number();
  std::int64_t value = 0;
  if (!parse_integer(text, value)) throw cursor.error(mark, fmt::format("'{}' is no integer", text));
  return value;
}

bool next_looks_floating(TextCursor cursor) { return looks_floating(cursor.number()); }

template <class T>
std::vector<T> parse_items(TextCursor& cursor, T (*parse_item)(TextCursor&)) {
  std::vector<T> items;
  do items.push_back(parse_item(cursor));
  while (cursor.take(','));
  cursor.expect(']', "after a list");
  return items;
}

std::string parse_string(TextCursor& cursor) { return cursor.quoted("a string"); }

Attribute parse_list_attribute(TextCursor& cursor) {
  cursor.expect('[', "before a list");
  if (cursor.take(']')) return std::vector<std::int64_t>();
  if (cursor.at('"')) return parse_items<std::string>(cursor, parse_string);
  if (next_looks_floating(cursor)) return parse_items<double>(cursor, parse_number);
  return parse_items<std::int64_t>(cursor, parse_whole);
}

template <class T>
std::vector<T> parse_empty_list(TextCursor& cursor) {
  cursor.expect('[', "before an empty list");
  cursor.expect(']', "after an empty list");
  return {};
}

Tensor parse_tensor_attribute(TextCursor& cursor) {
  const ValueType type = parse_type(cursor);
  cursor.expect('=', "before the elements of a tensor");
  return parse_elements(cursor, type);
}

bool next_is_graph(TextCursor cursor) { return cursor.take_word("graph"); }

Attribute parse_attribute(TextCursor& cursor, int depth) {
  if (cursor.at('"')) return cursor.quoted("a string");
  if (cursor.at('[')) return parse_list_attribute(cursor);
  if (cursor.take_word("floats")) return parse_empty_list<double>(cursor);
  if (cursor.take_word("strings")) return parse_empty_list<std::string>(cursor);
  if (cursor.take_word("tensor")) return parse_tensor_attribute(cursor);
  if (next_is_graph(cursor)) return parse_subgraph(cursor, depth + 1);
  if (next_looks_floating(cursor)) return parse_number(cursor);
  return parse_whole(cursor);
}

Attributes parse_attributes(TextCursor& cursor, int depth) {
  Attributes attributes;
  if (!cursor.take('{')) return attributes;
  do {
    const auto mark = cursor.mark();
    std::string name = cursor.name("the name of an attribute");
    if (attributes.has(name)) throw cursor.error(mark, fmt::format("attribute '{}' is given twice", name));
    cursor.expect('=', "after the name of an attribute");
    attributes.set(std::move(name), parse_attribute(cursor, depth));
  } while (cursor.take(','));
  cursor.expect('}', "after the attributes");
  return attributes;
}

// --- graphs

class GraphParser {
 public:
  GraphParser(TextCursor& cursor, int depth) : cursor_(cursor), depth_(depth) {}

  Graph run() {
    if (depth_ > deepest_nesting) throw cursor_.error("graphs are nested too deep");
    cursor_.expect_word("graph", "at the start of a graph");
    graph_.set_name(cursor_.quoted("the name of the graph"));
    cursor_.expect('{', "after the name of the graph");
    while (!cursor_.take('}')) parse_statement();
    return std::move(graph_);
  }

 private:
  struct Declared {
    std::string name;
    ValueType type;
  };

  void parse_statement() {
    if (cursor_.at('%')) return parse_node();
    const auto mark = cursor_.mark();
    const std::string_view word = cursor_.word();
    if (word == "input")
      parse_input();
    else if (word == "constant")
      parse_data(&Graph::add_constant);
    else if (word == "state")
      parse_data(&Graph::add_state);
    else if (word == "output")
      parse_output();
    else if (word == "update")
      parse_update();
    else if (word == "doc")
      graph_.set_doc(cursor_.quoted("the documentation of the graph"));
    else if (word == "_")
      parse_node_after_first({});
    else
      throw cursor_.error(mark, "expected a value, a node, an output, an update or '}'");
  }

  // `%name : type` of a value that is new.
  Declared parse_declared() {
    const auto mark = cursor_.mark();
    cursor_.expect('%', "before the name of a value");
    std::string name = cursor_.name("the name of a value");
    if (name.empty()) throw cursor_.error(mark, "a value must have a name");
    if (values_.contains(name)) throw cursor_.error(mark, fmt::format("%{} is there already", name));
    values_.emplace(name, ValueId());
    cursor_.expect(':', "between a value and its type, with a space before it");
    return {std::move(name), parse_type(cursor_)};
  }

  // Gives a new value the name the text says, also when a left-out output had got it by chance.
  void settle(const std::string& name, ValueId id) {
    values_[name] = id;
    if (graph_.value(id).name == name) return;
    graph_.rename(graph_.find_value(name), name + ".left-out");
    graph_.rename(id, name);
  }

  void parse_input() {
    Declared declared = parse_declared();
    settle(declared.name, graph_.add_input(declared.name, std::move(declared.type)));
  }

  void parse_data(ValueId (Graph::*add)(std::string, Tensor)) {
    const Declared declared = parse_declared();
    cursor_.expect('=', "before the elements of a tensor");
    settle(declared.name, (graph_.*add)(declared.name, parse_elements(cursor_, declared.type)));
  }

  ValueId parse_reference() {
    const auto mark = cursor_.mark();
    cursor_.expect('%', "before the name of a value");
    const std::string name = cursor_.name("the name of a value");
    const auto found = values_.find(name);
    if (found == values_.end() || !found->second.valid())
      throw cursor_.error(mark, fmt::format("there is no value %{} before this place", name));
    return found->second;
  }

  void parse_output() {
    std::string name = cursor_.quoted("the name of an output");
    cursor_.expect('=', "after the name of an output");
    graph_.add_output(std::move(name), parse_reference());
  }

  void parse_update() {
    const auto mark = cursor_.mark();
    const ValueId state = parse_reference();
    if (graph_.value(state).kind != ValueKind::state) throw cursor_.error(mark, "only state is updated");
    if (graph_.update_of(state).valid()) throw cursor_.error(mark, "this state is updated already");
    cursor_.expect('=', "after the state");
    graph_.set_update(state, parse_reference());
  }

  using MaybeDeclared = std::optional<Declared>;  // nothing: an output left out

  MaybeDeclared parse_output_slot() {
    if (cursor_.at('%')) return parse_declared();
    cursor_.expect_word("_", "or a value");
    return {};
  }

  void parse_node() { parse_node_after_first(parse_declared()); }

  void parse_node_after_first(MaybeDeclared first) {
    std::vector<MaybeDeclared> outputs{std::move(first)};
    while (cursor_.take(',')) outputs.push_back(parse_output_slot());
    while (!outputs.empty() && !outputs.back()) outputs.pop_back();
    cursor_.expect('=', "between the outputs of a node and its operator");
    const auto mark = cursor_.mark();
    std::string op = cursor_.name("an operator");
    if (op.empty()) throw cursor_.error(mark, "an operator must have a name");
    std::vector<ValueId> inputs = parse_inputs();
    Attributes attributes = parse_attributes(cursor_, depth_);
    std::string name = cursor_.at('"') ? cursor_.quoted("the name of a node") : std::string();
    const Phase phase = parse_phase();
    add_node(outputs, std::move(op), std::move(inputs), std::move(attributes), std::move(name), phase);
  }

  std::vector<ValueId> parse_inputs() {
    std::vector<ValueId> inputs;
    cursor_.expect('(', "before the inputs of a node");
    if (cursor_.take(')')) return inputs;
    do inputs.push_back(cursor_.take_word("_") ? ValueId() : parse_reference());
    while (cursor_.take(','));
    cursor_.expect(')', "after the inputs of a node");
    return inputs;
  }

  Phase parse_phase() {
    if (!cursor_.take('@')) return Phase::forward;
    for (Phase phase : {Phase::forward, Phase::backward, Phase::update})
      if (cursor_.take_word(name_of(phase))) return phase;
    throw cursor_.error("expected forward, backward or update after '@'");
  }

  void add_node(const std::vector<MaybeDeclared>& outputs, std::string op, std::vector<ValueId> inputs,
                Attributes attributes, std::string name, Phase phase) {
    std::vector<ValueType> types;
    std::vector<std::string> names;
    for (const MaybeDeclared& output : outputs) {
      types.push_back(output ? output->type : ValueType{ElementType::f32, Shape{0}});
      names.push_back(output ? output->name : std::string());
    }
    const NodeId node = graph_.add_node(std::move(op), std::move(inputs), types, std::move(attributes),
                                        std::move(name), phase, names);
    for (std::size_t i = outputs.size(); i-- > 0;)
      if (outputs[i])
        settle(outputs[i]->name, graph_.node(node).outputs[i]);
      else
        graph_.drop_output(node, static_cast<int>(i));
  }

  TextCursor& cursor_;
  int depth_;
  Graph graph_;
  std::unordered_map<std::string, ValueId> values_;  // what the text has named; invalid: being declared
};

std::shared_ptr<const Graph> parse_subgraph(TextCursor& cursor, int depth) {
  return std::make_shared<const Graph>(GraphParser(cursor, depth).run());
}

}  // namespace

Result<Graph> parse(std::string_view text) {
  TextCursor cursor(text);
  try {
    Graph graph = GraphParser(cursor, 0).run();
    if (!cursor.at_end()) throw cursor.error("text after the end of the graph");
    return graph;
  } catch (const Error& error) {
    return std::unexpected(error);
  }
}

}  // namespace superstep::graph
