// github.com/apache/arrow, format/Schema.fbs, by whose numbers fields and types are named here;
// docs/source/format/Columnar.rst says which buffers each type has.
#include "superstep/file/columns/arrow_schema.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "superstep/base/error.h"
#include "superstep/base/json.h"

namespace superstep::data::columns {
namespace {

enum ArrowType : int {
  null = 1,
  whole = 2,
  floating = 3,
  binary = 4,
  utf8 = 5,
  boolean = 6,
  decimal = 7,
  date = 8,
  time = 9,
  timestamp = 10,
  interval = 11,
  list = 12,
  structure = 13,
  union_of = 14,
  fixed_binary = 15,
  fixed_list = 16,
  map = 17,
  duration = 18,
  large_binary = 19,
  large_utf8 = 20,
  large_list = 21,
  run_ends = 22,
  binary_view = 23,
  utf8_view = 24,
  list_view = 25,
  large_list_view = 26
};

constexpr int deepest = 32;                   // fields in one another: chosen
constexpr std::size_t most_fields = 1 << 20;  // chosen; a small message can name one field many times

std::optional<ElementType> whole_type(const FlatTable& type) {
  const bool is_signed = type.number<std::uint8_t>(1, 0) != 0;
  switch (type.number<std::int32_t>(0, 0)) {
    case 8: return is_signed ? ElementType::i8 : ElementType::u8;
    case 16: return is_signed ? ElementType::i16 : ElementType::u16;
    case 32: return is_signed ? ElementType::i32 : ElementType::u32;
    case 64: return is_signed ? ElementType::i64 : ElementType::u64;
    default: return std::nullopt;
  }
}

std::optional<ElementType> floating_type(const FlatTable& type) {
  constexpr ElementType types[] = {ElementType::f16, ElementType::f32, ElementType::f64};
  const auto precision = type.number<std::int16_t>(0, 0);
  if (precision < 0 || precision > 2) return std::nullopt;
  return types[precision];
}

const char* words_of(int type) {
  switch (type) {
    case null: return "nothing but missing values";
    case decimal: return "decimal numbers";
    case date:
    case time:
    case timestamp:
    case interval:
    case duration: return "times";
    case map: return "maps";
    case union_of: return "values of several types";
    case fixed_binary: return "bytes of a fixed length";
    case run_ends: return "runs of values";
    case binary_view:
    case utf8_view: return "views of texts";
    case list_view:
    case large_list_view: return "views of lists";
    default: return "a kind of values that is not read";
  }
}

std::map<std::string, std::string> properties_of(const FlatTable& table, int field) {
  std::map<std::string, std::string> properties;
  const FlatTable::List pairs = table.elements(field, 4);
  for (std::size_t i = 0; i < pairs.count; ++i) {
    const FlatTable pair = table.element(pairs, i);
    properties.emplace(pair.text(0), pair.text(1));
  }
  return properties;
}

// The shape of a tensor in a list of a fixed length (docs/source/format/CanonicalExtensions.rst, "Fixed shape
// tensor"); one whose axes are in another order in memory has none here.
std::vector<std::int64_t> tensor_shape(const FlatTable& field, std::string& why_not) {
  const auto said = properties_of(field, 6);
  const auto name = said.find("ARROW:extension:name"), text = said.find("ARROW:extension:metadata");
  if (name == said.end() || text == said.end() || name->second != "arrow.fixed_shape_tensor") return {};
  const nlohmann::json json = parse_json(text->second);
  if (json.is_discarded() || !json.is_object() || !json.contains("shape") || !json["shape"].is_array())
    return {};
  std::vector<std::int64_t> shape;
  for (const nlohmann::json& extent : json["shape"])
    if (extent.is_number_integer()) shape.push_back(extent.get<std::int64_t>());
  if (json.contains("permutation") && !std::ranges::is_sorted(json["permutation"]))
    why_not = "tensors whose axes are in another order";
  return shape;
}

class SchemaReader {
 public:
  explicit SchemaReader(const std::string& where) : where_(where) {}

  ArrowSchema read(const FlatTable& schema) {
    if (schema.number<std::int16_t>(0, 0) != 0)
      throw Error(ErrorCode::unsupported, "holds numbers in the byte order of other machines", where_,
                  "write it on a little-endian machine");
    const FlatTable::List fields = schema.elements(1, 4);
    for (std::size_t i = 0; i < fields.count; ++i) add(schema.element(fields, i), {}, 0);
    schema_.properties = properties_of(schema, 2);
    return std::move(schema_);
  }

 private:
  // What a field is in: its name, structures and lists, and why nothing of it is read.
  struct Above {
    std::string name = {};
    std::vector<ArrowNode> parents = {};
    std::vector<ArrowList> lists = {};
    std::string why_not = {};
    std::vector<std::int64_t> said = {};
  };

  void add(const FlatTable& field, Above above, int depth) {
    if (depth > deepest || ++fields_ > most_fields) field.refuse();
    const bool in_list = !above.lists.empty();
    const std::string own(field.text(0));
    if (!in_list) above.name += above.name.empty() ? own : "." + own;
    const auto type = static_cast<int>(field.number<std::uint8_t>(2, 0));
    const ArrowNode own_node{schema_.nodes++, schema_.buffers};
    if (field.table(4)) {  // numbers of words that are told apart elsewhere
      schema_.buffers += 2;
      return add_leaf(above, "words by their numbers (dictionary)");
    }
    switch (type) {
      case list:
      case large_list:
        schema_.buffers += 2;
        above.lists.push_back({.own = own_node, .wide = type == large_list});
        return add_children(field, above, depth);
      case fixed_list: return add_fixed_list(field, above, own_node, depth);
      case structure:
        schema_.buffers += 1;
        above.parents.push_back(own_node);
        if (in_list) above.why_not = "lists of structures";
        return add_children(field, above, depth);
      case map:
        schema_.buffers += 2;
        above.why_not = words_of(type);
        return add_children(field, above, depth);
      default: return add_values(field, above, type, own_node, depth);
    }
  }

  void add_fixed_list(const FlatTable& field, Above& above, ArrowNode own, int depth) {
    schema_.buffers += 1;
    const auto type = field.table(3);
    const std::int64_t length = type ? type->number<std::int32_t>(0, 0) : 0;
    if (length < 1) above.why_not = "empty lists";
    above.lists.push_back({.fixed = std::max<std::int64_t>(1, length), .own = own});
    if (above.lists.size() == 1) above.said = tensor_shape(field, above.why_not);
    add_children(field, above, depth);
  }

  void add_children(const FlatTable& field, const Above& above, int depth) {
    const FlatTable::List children = field.elements(5, 4);
    for (std::size_t i = 0; i < children.count; ++i) add(field.element(children, i), above, depth + 1);
  }

  void add_values(const FlatTable& field, const Above& above, int type, ArrowNode own, int depth) {
    const auto kind = field.table(3);
    ArrowLeaf leaf{.parents = above.parents, .lists = above.lists, .own = own, .said = above.said};
    std::optional<ElementType> element;
    if (type == whole && kind) element = whole_type(*kind);
    if (type == floating && kind) element = floating_type(*kind);
    if (type == boolean) element = ElementType::boolean;
    leaf.column = {.name = above.name, .why_not = above.why_not};
    const bool bytes = type == binary || type == utf8 || type == large_binary || type == large_utf8;
    leaf.wide = type == large_binary || type == large_utf8;
    schema_.buffers += buffers_of(field, type);
    if (type == binary_view || type == utf8_view) schema_.views.push_back(schema_.buffers);
    if (type == union_of || type == run_ends || type == list_view || type == large_list_view)
      add_children(field, {.name = above.name, .why_not = words_of(type)}, depth);
    leaf.column.is_bytes = bytes;
    leaf.column.type = element.value_or(ElementType::u8);
    if (leaf.column.why_not.empty() && bytes && !above.lists.empty()) leaf.column.why_not = "lists of texts";
    if (leaf.column.why_not.empty() && !bytes && !element) leaf.column.why_not = words_of(type);
    schema_.leaves.push_back(std::move(leaf));
  }

  static std::size_t buffers_of(const FlatTable& field, int type) {
    switch (type) {
      case null:
      case run_ends: return 0;
      case binary:
      case utf8:
      case large_binary:
      case large_utf8:
      case list_view:
      case large_list_view: return 3;
      case union_of: {
        const auto kind = field.table(3);
        return kind && kind->number<std::int16_t>(0, 0) == 1 ? 2 : 1;  // dense: also where each value is
      }
      default: return 2;
    }
  }

  void add_leaf(const Above& above, const char* why_not) {
    ArrowLeaf leaf;
    leaf.column = {.name = above.name, .why_not = why_not};
    schema_.leaves.push_back(std::move(leaf));
  }

  const std::string& where_;
  ArrowSchema schema_;
  std::size_t fields_ = 0;
};

}  // namespace

ArrowSchema read_arrow_schema(const FlatTable& schema, const std::string& where) {
  return SchemaReader(where).read(schema);
}

}  // namespace superstep::data::columns
