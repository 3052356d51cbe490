// TFRecord of tf.train.Example (example.proto and feature.proto of TensorFlow): a feature an array, numbers
// as packed lists, pictures as PNG.
#include <fmt/format.h>

#include <cstring>

#include "superstep/base/error.h"
#include "superstep/file/convert/record_writer.h"
#include "superstep/file/records/crc32c.h"

namespace superstep::data {
namespace {

void put_varint(std::string& to, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) to += static_cast<char>(value | 0x80);
  to += static_cast<char>(value);
}

// A field of bytes: its number and kind, a length, the bytes.
std::string field(std::uint64_t number, std::string_view bytes) {
  std::string whole;
  put_varint(whole, number << 3 | 2);
  put_varint(whole, bytes.size());
  return whole.append(bytes);
}

template <class T>
std::string little_endian(T value) {
  std::string bytes;
  for (std::size_t i = 0; i < sizeof(T); ++i) bytes += static_cast<char>(value >> 8 * i);
  return bytes;
}

std::string with_sum(std::string bytes) {
  const std::uint32_t sum = masked_crc32c(std::as_bytes(std::span(bytes)));
  return bytes + little_endian(sum);
}

std::string floats(const Tensor& value) {
  std::string packed;
  const Tensor numbers = value.converted(ElementType::f32);
  for (const float number : numbers.as<float>())
    packed += little_endian(std::bit_cast<std::uint32_t>(number));
  return packed;
}

class TfRecordWriter : public RecordWriter {
 public:
  using RecordWriter::RecordWriter;

 protected:
  std::string encode(std::int64_t row, std::span<const Tensor> values) const override {
    std::string features;
    for (std::size_t i = 0; i < values.size(); ++i)
      features += field(1, field(1, arrays()[i].name) + field(2, feature(row, i, values[i])));
    const std::string example = field(1, features);
    return with_sum(little_endian(std::uint64_t{example.size()})) + with_sum(example);
  }

 private:
  // BytesList, FloatList or Int64List, each with its values as field 1.
  std::string feature(std::int64_t row, std::size_t array, const Tensor& value) const {
    if (is_of_pictures(arrays()[array])) return field(1, field(1, png_of(value)));
    if (is_floating(value.type())) return field(2, field(1, floats(value)));
    return field(3, field(1, integers(row, array, value)));
  }

  std::string integers(std::int64_t row, std::size_t array, const Tensor& value) const {
    std::string packed;
    const Tensor numbers = value.converted(ElementType::i64);
    for (const std::int64_t number : numbers.as<std::int64_t>()) {
      if (value.type() == ElementType::u64 && number < 0)
        throw Error(ErrorCode::unsupported, "is more than a whole number with a sign can be (2^63 - 1)",
                    place(row, array), "write HDF5 or npz");
      put_varint(packed, static_cast<std::uint64_t>(number));
    }
    return packed;
  }
};

}  // namespace

std::unique_ptr<SampleWriter> open_tfrecord_samples(const std::filesystem::path& path,
                                                    SampleArraysToWrite arrays, std::int64_t) {
  return std::make_unique<TfRecordWriter>(path, std::move(arrays));
}

}  // namespace superstep::data
