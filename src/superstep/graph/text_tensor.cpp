#include "superstep/graph/text_tensor.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "superstep/base/encoding/base64.h"
#include "superstep/graph/text_element.h"

namespace superstep::graph {
namespace {

std::int64_t parse_extent(TextCursor& cursor) {
  const auto mark = cursor.mark();
  std::int64_t extent = 0;
  if (!parse_integer(cursor.number(), extent) || extent < 0)
    throw cursor.error(mark, "an extent is a whole number, 0 or more");
  return extent;
}

Shape parse_shape(TextCursor& cursor) {
  const auto mark = cursor.mark();
  std::vector<std::int64_t> extents;
  cursor.expect('[', "before the extents of a shape");
  if (!cursor.take(']')) {
    do extents.push_back(parse_extent(cursor));
    while (cursor.take(','));
    cursor.expect(']', "after the extents of a shape");
  }
  try {
    return Shape(std::move(extents));
  } catch (const Error& error) {
    throw cursor.error(mark, error.message());
  }
}

template <class T>
bool parse_element(std::string_view text, T& value) {
  if constexpr (std::is_same_v<T, bool>) {
    value = text == "true";
    return value || text == "false";
  } else if constexpr (std::is_integral_v<T>) {
    return parse_integer(text, value);
  } else {
    return parse_float(text, value);
  }
}

struct Word {
  TextCursor::Mark mark;
  std::string_view text;
};

std::vector<Word> parse_words(TextCursor& cursor) {
  std::vector<Word> words;
  cursor.expect('[', "before the elements of a tensor, or base64\"...\"");
  if (cursor.take(']')) return words;
  do {
    const auto mark = cursor.mark();
    words.push_back({mark, cursor.number()});
  } while (cursor.take(','));
  cursor.expect(']', "after the elements of a tensor");
  return words;
}

Error wrong_count(const TextCursor& cursor, TextCursor::Mark mark, const ValueType& type, std::size_t have,
                  const char* unit) {
  return cursor.error(mark, fmt::format("{} {} are not a tensor of type {}", have, unit, to_string(type)));
}

Tensor parse_list(TextCursor& cursor, const ValueType& type) {
  const auto mark = cursor.mark();
  const std::vector<Word> words = parse_words(cursor);
  if (static_cast<std::int64_t>(words.size()) != type.shape.element_count())
    throw wrong_count(cursor, mark, type, words.size(), "elements");
  Tensor tensor(type.element, type.shape);
  dispatch(type.element, [&]<class T>() {
    for (std::size_t i = 0; i < words.size(); ++i)
      if (!parse_element(words[i].text, tensor.as<T>()[i]))
        throw cursor.error(words[i].mark, fmt::format("'{}' is no {}", words[i].text, name_of(type.element)));
  });
  return tensor;
}

bool holds_other_than_bools(const ValueType& type, const std::vector<std::byte>& bytes) {
  return type.element == ElementType::boolean &&
         std::ranges::any_of(bytes, [](std::byte b) { return b > std::byte{1}; });
}

Tensor parse_base64(TextCursor& cursor, const ValueType& type) {
  const auto mark = cursor.mark();
  const auto bytes = base64_decode(cursor.quoted("base64 text"));
  if (!bytes) throw cursor.error(mark, "this is not base64");
  const std::size_t size = size_in_bytes(type.element);
  if (bytes->size() % size != 0 ||
      static_cast<std::int64_t>(bytes->size() / size) != type.shape.element_count())
    throw wrong_count(cursor, mark, type, bytes->size(), "bytes");
  if (holds_other_than_bools(type, *bytes)) throw cursor.error(mark, "a bool is neither 0 nor 1");
  Tensor tensor(type.element, type.shape);
  std::ranges::copy(*bytes, tensor.bytes());
  return tensor;
}

}  // namespace

ValueType parse_type(TextCursor& cursor) {
  const auto mark = cursor.mark();
  const std::string_view word = cursor.word();
  const auto element = element_type_from_name(word);
  if (!element) throw cursor.error(mark, fmt::format("'{}' is no element type", word));
  return {*element, parse_shape(cursor)};
}

Tensor parse_elements(TextCursor& cursor, const ValueType& type) {
  return cursor.take_word("base64") ? parse_base64(cursor, type) : parse_list(cursor, type);
}

}  // namespace superstep::graph
