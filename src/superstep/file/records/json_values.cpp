#include "superstep/file/records/json_values.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "superstep/base/error.h"
#include "superstep/base/json.h"
#include "superstep/base/printable.h"

namespace superstep::data {
namespace {

using nlohmann::json;

bool is_number(const json& value) { return value.is_number() || value.is_boolean(); }

bool fits_integer(const json& value) {
  return value.is_boolean() ||
         (value.is_number_unsigned() ? value.get<std::uint64_t>() >> 63 == 0 : value.is_number_integer());
}

struct Numbers {
  std::vector<double> values;
  std::vector<std::int64_t> whole_values;  // the same, as long as all are: a double does not hold each
  std::vector<std::int64_t> extents;
  bool whole = true, ragged = false;
};

// False where there is something else than numbers in it.
bool gather(const json& value, std::size_t depth, Numbers& numbers) {
  if (is_number(value)) {
    numbers.ragged |= depth != numbers.extents.size();
    numbers.whole &= fits_integer(value);
    if (numbers.whole)
      numbers.whole_values.push_back(value.is_boolean() ? value.get<bool>() : value.get<std::int64_t>());
    numbers.values.push_back(value.is_boolean() ? static_cast<double>(value.get<bool>())
                                                : value.get<double>());
    return true;
  }
  if (!value.is_array()) return false;
  const auto count = static_cast<std::int64_t>(value.size());
  if (depth == numbers.extents.size() && numbers.values.empty()) numbers.extents.push_back(count);
  numbers.ragged |= depth >= numbers.extents.size() || numbers.extents[depth] != count;
  return std::ranges::all_of(value, [&](const json& each) { return gather(each, depth + 1, numbers); });
}

std::optional<Tensor> tensor_of(const json& value, const std::string& name, const std::string& where) {
  Numbers numbers;
  if (!gather(value, 0, numbers)) return std::nullopt;
  const Shape shape(numbers.extents);
  if (numbers.ragged || shape.element_count() != static_cast<std::int64_t>(numbers.values.size()))
    throw Error(ErrorCode::bad_file, fmt::format("'{}' has rows of several lengths", printable(name)), where);
  return numbers.whole ? Tensor::from(shape, numbers.whole_values) : Tensor::from(shape, numbers.values);
}

void add_members(Record& record, const json& object, const std::string& prefix, const std::string& where) {
  for (const auto& [key, value] : object.items()) {
    const std::string name = prefix + key;
    if (value.is_object()) {
      add_members(record, value, name + ".", where);
    } else if (value.is_string()) {
      const auto& text = value.get_ref<const std::string&>();
      const auto* bytes = reinterpret_cast<const std::byte*>(text.data());
      record.push_back({name, EncodedBytes(bytes, bytes + text.size())});
    } else if (auto tensor = tensor_of(value, name, where)) {
      record.push_back({name, std::move(*tensor)});
    }
  }
}

}  // namespace

void add_json_values(Record& record, std::string_view text, const std::string& where) {
  const json object = parse_json(text);
  if (object.is_discarded() || !object.is_object())
    throw Error(ErrorCode::bad_file, "is no JSON object", where);
  add_members(record, object, "", where);
}

}  // namespace superstep::data
