// TFRecord of tf.train.Example (example.proto and feature.proto of TensorFlow): a feature an array, numbers
// as packed lists, pictures as PNG.
#include <fmt/format.h>

#include <cstring>

#include "superstep/base/error.h"
#include "superstep/file/convert/record_writer.h"
#include "superstep/file/records/wire_format.h"

namespace superstep::data {
namespace {

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
      features +=
          bytes_field(1, bytes_field(1, arrays()[i].name) + bytes_field(2, feature(row, i, values[i])));
    const std::string example = bytes_field(1, features);
    return tf_record(example);
  }

 private:
  // BytesList, FloatList or Int64List, each with its values as field 1.
  std::string feature(std::int64_t row, std::size_t array, const Tensor& value) const {
    if (is_of_pictures(arrays()[array])) return bytes_field(1, bytes_field(1, png_of(value)));
    if (is_floating(value.type())) return bytes_field(2, bytes_field(1, floats(value)));
    return bytes_field(3, bytes_field(1, integers(row, array, value)));
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

std::unique_ptr<SampleWriter> open_tfrecord_samples(const WriterPlace& place, SampleArraysToWrite arrays,
                                                    std::int64_t) {
  return std::make_unique<TfRecordWriter>(place, std::move(arrays));
}

}  // namespace superstep::data
