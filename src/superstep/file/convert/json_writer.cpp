// JSON lines: an object a sample, arrays as lists of lists.
#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "superstep/base/error.h"
#include "superstep/file/convert/record_writer.h"

namespace superstep::data {
namespace {

// The shortest text that is this number again, with a point or an exponent: what has none is a whole number
// to those who read it.
template <class T>
std::string text_of(T value) {
  std::string text = fmt::format("{}", value);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

class JsonWriter : public RecordWriter {
 public:
  using RecordWriter::RecordWriter;

 protected:
  std::string encode(std::int64_t row, std::span<const Tensor> values) const override {
    std::string line;
    for (std::size_t i = 0; i < values.size(); ++i) {
      line += fmt::format("{}{}:", i == 0 ? "{" : ",", nlohmann::json(arrays()[i].name).dump());
      std::int64_t at = 0;
      add(line, values[i], 0, at, row, i);
    }
    return line + "}\n";
  }

 private:
  void add(std::string& line, const Tensor& value, int axis, std::int64_t& at, std::int64_t row,
           std::size_t array) const {
    if (axis == value.shape().rank()) {
      line += number(value, at++, row, array);
      return;
    }
    line += '[';
    for (std::int64_t i = 0; i < value.shape()[axis]; ++i) {
      if (i > 0) line += ',';
      add(line, value, axis + 1, at, row, array);
    }
    line += ']';
  }

  std::string number(const Tensor& value, std::int64_t at, std::int64_t row, std::size_t array) const {
    const auto index = static_cast<std::size_t>(at);
    switch (value.type()) {
      case ElementType::i64: return std::to_string(value.as<std::int64_t>()[index]);
      case ElementType::u64: return unsigned_number(value.as<std::uint64_t>()[index], row, array);
      case ElementType::boolean: return value.as<bool>()[index] ? "true" : "false";
      default: break;
    }
    const double number = value.at(at);
    if (!std::isfinite(number))
      throw Error(ErrorCode::unsupported, fmt::format("holds {}, which JSON does not have", number),
                  place(row, array), "write HDF5, npz or tar");
    if (is_integer(value.type())) return std::to_string(static_cast<std::int64_t>(number));
    return value.type() == ElementType::f64 ? text_of(number) : text_of(static_cast<float>(number));
  }

  std::string unsigned_number(std::uint64_t number, std::int64_t row, std::size_t array) const {
    if (number >> 63)
      throw Error(ErrorCode::unsupported, "is more than is read from JSON again (2^63 - 1)",
                  place(row, array), "write HDF5 or npz");
    return std::to_string(number);
  }
};

}  // namespace

std::unique_ptr<SampleWriter> open_json_samples(const WriterPlace& place, SampleArraysToWrite arrays,
                                                std::int64_t) {
  return std::make_unique<JsonWriter>(place, std::move(arrays));
}

}  // namespace superstep::data
