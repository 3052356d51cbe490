#include "superstep/file/records/record_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "superstep/base/error.h"
#include "superstep/base/printable.h"
#include "superstep/file/pictures/picture.h"
#include "superstep/file/pictures/picture_rows.h"

namespace superstep::data {
namespace {

constexpr std::string_view class_names[] = {"cls", "label", "class", "image/class/label"};

bool is_wanted(const SourceRequest& request, std::string_view name) {
  return std::ranges::any_of(request.wanted, [&](const SourceArray& wanted) { return wanted.name == name; });
}

bool is_single_integer(const SourceArray& array) {
  return array.row.element_count() == 1 && !is_floating(array.type);
}

void require_whole(double value, ElementType type) {
  if (is_floating(type) || value == std::floor(value)) return;
  throw Error(ErrorCode::bad_file, fmt::format("is {}, and the first record has whole numbers there", value),
              {}, "write whole numbers with a decimal point in the first record where others are none");
}

}  // namespace

const RecordValue* find_value(const Record& record, std::string_view name) {
  const auto found = std::ranges::find(record, name, &RecordValue::name);
  return found == record.end() ? nullptr : &*found;
}

void RecordSource::settle(std::int64_t records, const SourceRequest& request) {
  if (request.skip_broken)
    sound_ = pictures::readable(
        records,
        [&](std::int64_t row) {
          for (const RecordValue& value : record(row))
            if (const auto* bytes = std::get_if<EncodedBytes>(&value.value);
                bytes && picture_form_of(*bytes) != PictureForm::none)
              decode_picture(*bytes, fmt::format("{}, '{}'", place_of(row), printable(value.name)));
        },
        notes_);
  const auto rows = request.skip_broken ? static_cast<std::int64_t>(sound_.size()) : records;
  if (rows == 0) throw Error(ErrorCode::bad_file, "holds no record that can be read", place_of(0));
  for (const RecordValue& value : record(number_of(0))) add(value, request);
  rename_number(request);
  if (arrays_.empty())
    throw Error(ErrorCode::bad_file, "holds no numbers and no picture", place_of(number_of(0)));
  for (SourceArray& array : arrays_) array.rows = rows;
}

std::int64_t RecordSource::number_of(std::int64_t row) const {
  return sound_.empty() ? row : sound_[static_cast<std::size_t>(row)];
}

void RecordSource::add(const RecordValue& value, const SourceRequest& request) {
  const auto* bytes = std::get_if<EncodedBytes>(&value.value);
  if (!bytes) return add_numbers(value, request);
  if (picture_form_of(*bytes) != PictureForm::none) return add_picture(value, request);
  others_.push_back(fmt::format("'{}' ({} bytes)", printable(value.name), bytes->size()));
}

void RecordSource::add_picture(const RecordValue& value, const SourceRequest& request) {
  SourceArray array{.name = value.name, .type = ElementType::u8, .row = Shape{}};
  const bool as_it_is = request.wanted.empty();
  if (as_it_is) {
    const Picture picture = decode_picture(std::get<EncodedBytes>(value.value), place_of(number_of(0)));
    array.row = Shape{picture.channels, picture.height, picture.width};
  } else {
    array = pictures::picture_array(request, value.name);
    if (std::ranges::any_of(arrays_, [&](const SourceArray& other) { return other.name == array.name; }))
      return;
  }
  arrays_.push_back(std::move(array));
  columns_.push_back({value.name, true, as_it_is});
}

void RecordSource::add_numbers(const RecordValue& value, const SourceRequest& request) {
  const Tensor& numbers = std::get<Tensor>(value.value);
  SourceArray array{.name = value.name, .type = numbers.type(), .row = numbers.shape()};
  for (const SourceArray& wanted : request.wanted)
    if (wanted.name == value.name && wanted.row.element_count() == numbers.element_count())
      array.row = wanted.row;
  arrays_.push_back(std::move(array));
  columns_.push_back({value.name});
}

// A wanted whole number that no value has the name of is the one that says the class.
void RecordSource::rename_number(const SourceRequest& request) {
  for (const SourceArray& wanted : request.wanted) {
    const auto named = [&](const SourceArray& array) { return array.name == wanted.name; };
    if (!is_single_integer(wanted) || std::ranges::any_of(arrays_, named)) continue;
    std::vector<std::size_t> singles, classes;
    for (std::size_t i = 0; i < arrays_.size(); ++i) {
      if (!is_single_integer(arrays_[i]) || is_wanted(request, arrays_[i].name)) continue;
      singles.push_back(i);
      if (std::ranges::find(class_names, arrays_[i].name) != std::end(class_names)) classes.push_back(i);
    }
    const auto& chosen = classes.size() == 1 ? classes : singles;
    if (chosen.size() == 1) arrays_[chosen[0]].name = wanted.name;
  }
}

std::string RecordSource::place(std::size_t array, std::int64_t row) const {
  return fmt::format("{}, '{}'", place_of(number_of(row)), printable(columns_[array].name));
}

void RecordSource::read(std::span<const std::int64_t> rows, std::span<const RowsTo> wanted) const {
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const Record whole = record(number_of(rows[i]));
    for (const RowsTo& to : wanted) put(whole, rows[i], to.array, to.to + i * arrays_[to.array].row_bytes());
  }
  require_unchanged();
}

void RecordSource::put(const Record& record, std::int64_t row, std::size_t array, std::byte* to) const {
  const Column& column = columns_[array];
  const RecordValue* value = find_value(record, column.name);
  const auto* bytes = value ? std::get_if<EncodedBytes>(&value->value) : nullptr;
  if (!value || (bytes != nullptr) != column.picture)
    throw Error(ErrorCode::bad_file, value ? "is of another kind than in the first record" : "is not there",
                place(array, row), "the first record has it; --skip-broken does not leave such ones out");
  if (!bytes) return put_numbers(std::get<Tensor>(value->value), row, array, to);
  put_picture(*bytes, row, array, to);
}

void RecordSource::put_picture(std::span<const std::byte> bytes, std::int64_t row, std::size_t array,
                               std::byte* to) const {
  const Column& column = columns_[array];
  const Picture picture = decode_picture(bytes, place(array, row));
  const auto& extents = arrays_[array].row.extents();
  if (column.as_it_is && (picture.height != extents[1] || picture.width != extents[2]))
    throw Error(ErrorCode::unsupported,
                fmt::format("has {} x {} pixels, the first picture {} x {}", picture.width, picture.height,
                            extents[2], extents[1]),
                place(array, row), "a model brings them to its own size; others need pictures of one size");
  pictures::put_picture(picture, arrays_[array], to);
}

void RecordSource::put_numbers(const Tensor& numbers, std::int64_t row, std::size_t array,
                               std::byte* to) const {
  const SourceArray& own = arrays_[array];
  if (numbers.element_count() != own.row.element_count())
    throw Error(ErrorCode::bad_file,
                fmt::format("has the shape {}, in the first record {}", to_string(numbers.shape()),
                            to_string(own.row)),
                place(array, row));
  if (numbers.type() == own.type) return numbers.copy_to(to);
  try {
    for (std::int64_t i = 0; i < numbers.element_count(); ++i) require_whole(numbers.at(i), own.type);
  } catch (const Error& error) {
    throw Error(error.code(), error.message(), place(array, row), error.hint());
  }
  numbers.converted(own.type).copy_to(to);
}

}  // namespace superstep::data
