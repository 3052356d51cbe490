#include "superstep/file/source/scaled_source.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "superstep/base/error.h"
#include "superstep/base/option_range.h"
#include "superstep/base/text.h"
#include "superstep/file/source/named_source.h"

namespace superstep::data {
namespace {

struct Assignment {
  std::string array, value;
};

[[noreturn]] void refuse_text(const char* option, const std::string& text, const std::string& why) {
  throw Error(ErrorCode::invalid_argument, why, fmt::format("{} {}", option, text),
              "write NAME=NUMBER, or a number for each channel: image=4.4,4.5,4.4");
}

// Names of arrays may hold a '=' themselves, numbers none.
Assignment assignment_from(const char* option, const std::string& text) {
  const std::size_t at = text.rfind('=');
  if (at == std::string::npos || at == 0) refuse_text(option, text, "names no array");
  return {text.substr(0, at), text.substr(at + 1)};
}

std::vector<double> numbers_from(const char* option, const std::string& text, const std::string& value) {
  std::vector<double> numbers;
  for (const std::string& each : split(value, ',')) {
    const std::optional<double> number = finite_number(each);
    if (!number) refuse_text(option, text, fmt::format("'{}' is no number", each));
    numbers.push_back(*number);
  }
  if (numbers.empty()) refuse_text(option, text, "says no number");
  return numbers;
}

Scaling& scaling_of(std::vector<Scaling>& scalings, const std::string& array) {
  const auto found = std::ranges::find(scalings, array, &Scaling::array);
  if (found != scalings.end()) return *found;
  scalings.emplace_back().array = array;
  return scalings.back();
}

void require_once(const char* option, const std::string& text, const std::string& array,
                  std::vector<std::string>& given) {
  if (std::ranges::find(given, array) != given.end())
    refuse_text(option, text, fmt::format("'{}' is given twice", array));
  given.push_back(array);
}

std::size_t channels_of(const Scaling& scaling) {
  return std::max(scaling.scale.size(), scaling.offset.size());
}

void require_channels(const SampleSource& source, std::size_t at, const Scaling& scaling) {
  const std::size_t channels = channels_of(scaling);
  if (channels == 1) return;
  const SourceArray& array = source.arrays()[at];
  const std::int64_t has = array.row.rank() > 0 ? array.row[0] : 0;
  if (has == static_cast<std::int64_t>(channels)) return;
  throw Error(ErrorCode::bad_file,
              fmt::format("a sample is {}, and there are {} numbers to scale its channels by",
                          to_string(array.row), channels),
              source.place(at, 0), "give one number, or one for each index of the first axis of a sample");
}

class ScaledSource : public SampleSource {
 public:
  ScaledSource(std::unique_ptr<SampleSource> source, std::vector<std::optional<Scaling>> scalings)
      : source_(std::move(source)), scalings_(std::move(scalings)), arrays_(source_->arrays()) {
    for (std::size_t i = 0; i < arrays_.size(); ++i)
      if (scalings_[i]) {
        arrays_[i].type = scaled_type(arrays_[i].type);
        arrays_[i].classes.clear();
      }
  }

  const std::vector<SourceArray>& arrays() const override { return arrays_; }

  void read(std::span<const std::int64_t> rows, std::span<const RowsTo> wanted) const override {
    std::vector<RowsTo> to(wanted.begin(), wanted.end());
    std::vector<std::pair<RowsTo, Tensor>> stored;
    for (RowsTo& one : to)
      if (scalings_[one.array]) {
        const SourceArray& array = source_->arrays()[one.array];
        const auto elements = array.row.element_count() * static_cast<std::int64_t>(rows.size());
        stored.emplace_back(one, Tensor(array.type, Shape{elements}));
        one.to = stored.back().second.bytes();
      }
    source_->read(rows, to);
    for (const auto& [one, tensor] : stored) scale(one, tensor, rows);
  }

  std::string place(std::size_t array, std::int64_t row) const override { return source_->place(array, row); }
  std::vector<std::int64_t> shards() const override { return source_->shards(); }
  std::optional<std::int64_t> training_rows() const override { return source_->training_rows(); }
  std::optional<std::size_t> group() const override { return source_->group(); }
  std::vector<std::string> others() const override { return source_->others(); }
  std::vector<std::string> notes() const override {
    std::vector<std::string> notes = source_->notes();
    for (std::size_t i = 0; i < arrays_.size(); ++i)
      if (scalings_[i])
        notes.push_back(fmt::format("{}: {}", source_->place(i, 0), to_string(*scalings_[i])));
    return notes;
  }

 private:
  void scale(const RowsTo& to, const Tensor& stored, std::span<const std::int64_t> rows) const {
    const Scaling& scaling = *scalings_[to.array];
    const SourceArray& array = arrays_[to.array];
    Tensor values = stored.converted(ElementType::f64);
    const auto row = static_cast<std::size_t>(array.row.element_count());
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const std::span<double> of_row = values.as<double>().subspan(i * row, row);
      if (scaling.kind == Scaling::Kind::logarithm) require_logarithms(of_row, to.array, rows[i]);
      scale_row(scaling, of_row);
    }
    const Tensor scaled = array.type == ElementType::f64 ? values : values.converted(array.type);
    if (scaled.byte_count() > 0) std::memcpy(to.to, scaled.bytes(), scaled.byte_count());
  }

  void require_logarithms(std::span<const double> values, std::size_t array, std::int64_t row) const {
    const auto low = std::ranges::find_if(values, [](double value) { return value <= -1; });
    if (low == values.end()) return;
    throw Error(ErrorCode::bad_file, fmt::format("log(1 + value) of {} in row {} does not exist", *low, row),
                source_->place(array, row), "logarithms are of counts, from 0 on");
  }

  std::unique_ptr<SampleSource> source_;
  std::vector<std::optional<Scaling>> scalings_;  // of each array
  std::vector<SourceArray> arrays_;
};

void to_unit(std::span<double> values) {
  const auto [low, high] = std::ranges::minmax(values);
  const double range = high - low;
  for (double& value : values) value = range > 0 ? (value - low) / range : 0;
}

}  // namespace

std::vector<Scaling> scalings_from_text(std::span<const std::string> scales,
                                        std::span<const std::string> offsets) {
  std::vector<Scaling> scalings;
  std::vector<std::string> scaled, shifted;
  for (const std::string& text : scales) {
    const auto [array, value] = assignment_from("--scale", text);
    require_once("--scale", text, array, scaled);
    Scaling& scaling = scaling_of(scalings, array);
    if (value == "log" || value == "unit") {
      scaling.kind = value == "log" ? Scaling::Kind::logarithm : Scaling::Kind::unit;
      continue;
    }
    scaling.scale = numbers_from("--scale", text, value);
    if (std::ranges::find(scaling.scale, 0.0) != scaling.scale.end())
      refuse_text("--scale", text, "makes the same of every value");
  }
  for (const std::string& text : offsets) {
    const auto [array, value] = assignment_from("--offset", text);
    require_once("--offset", text, array, shifted);
    scaling_of(scalings, array).offset = numbers_from("--offset", text, value);
  }
  for (const Scaling& each : scalings)
    if (each.scale.size() > 1 && each.offset.size() > 1 && each.scale.size() != each.offset.size())
      refuse_text("--offset", each.array,
                  fmt::format("has {} numbers, --scale {}", each.offset.size(), each.scale.size()));
  return scalings;
}

std::string to_string(const Scaling& scaling) {
  std::vector<std::string> steps;
  if (scaling.kind == Scaling::Kind::logarithm) steps.emplace_back("taken as log(1 + value)");
  if (scaling.kind == Scaling::Kind::unit) steps.emplace_back("each sample brought from 0 to 1");
  const bool factor = scaling.scale.size() > 1 || scaling.scale[0] != 1;
  if (factor) steps.push_back(fmt::format("multiplied by {}", fmt::join(scaling.scale, ",")));
  if (scaling.offset.size() > 1 || scaling.offset[0] != 0)
    steps.push_back(fmt::format("{} added", fmt::join(scaling.offset, ",")));
  return steps.empty() ? "as it is" : fmt::format("{}", fmt::join(steps, ", then "));
}

void scale_row(const Scaling& scaling, std::span<double> values) {
  if (scaling.kind == Scaling::Kind::unit && !values.empty()) to_unit(values);
  if (scaling.kind == Scaling::Kind::logarithm)
    for (double& value : values) value = std::log1p(value);
  const std::size_t channels = channels_of(scaling), each = values.size() / channels;
  for (std::size_t channel = 0; channel < channels; ++channel) {
    const double scale = scaling.scale[scaling.scale.size() > 1 ? channel : 0];
    const double offset = scaling.offset[scaling.offset.size() > 1 ? channel : 0];
    for (double& value : values.subspan(channel * each, each)) value = scale * value + offset;
  }
}

std::optional<double> unscaled(const Scaling& scaling, double scaled) {
  if (channels_of(scaling) > 1 || scaling.kind == Scaling::Kind::unit) return std::nullopt;
  const double value = (scaled - scaling.offset[0]) / scaling.scale[0];
  return scaling.kind == Scaling::Kind::logarithm ? std::expm1(value) : value;
}

ElementType scaled_type(ElementType stored) {
  switch (stored) {
    case ElementType::f64:
    case ElementType::i64:
    case ElementType::u64:
    case ElementType::i32:
    case ElementType::u32: return ElementType::f64;
    default: return ElementType::f32;
  }
}

std::unique_ptr<SampleSource> scaled_source(std::unique_ptr<SampleSource> source,
                                            std::span<const Scaling> scalings) {
  if (scalings.empty()) return source;
  if (scalings.size() == 1) source = named_as(std::move(source), scalings[0].array);
  std::vector<std::optional<Scaling>> of_array(source->arrays().size());
  bool any = false;
  for (const Scaling& scaling : scalings) {
    const std::size_t at = find_array(*source, scaling.array);
    if (at == source->arrays().size()) {
      if (scaling.required) require_array(*source, scaling.array, "--scale, --offset");
      continue;
    }
    require_channels(*source, at, scaling);
    of_array[at] = scaling;
    any = true;
  }
  return any ? std::make_unique<ScaledSource>(std::move(source), std::move(of_array)) : std::move(source);
}

void require_read(std::span<const Scaling> scalings, std::span<const std::string> names,
                  const std::string& where) {
  for (const Scaling& scaling : scalings)
    if (scaling.required && std::ranges::find(names, scaling.array) == names.end())
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("'{}' of {} is not read by the model", scaling.array, where),
                  "--scale, --offset", unknown_name_hint(scaling.array, names));
}

}  // namespace superstep::data
