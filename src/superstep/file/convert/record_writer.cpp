#include "superstep/file/convert/record_writer.h"

#include <fmt/format.h>
#include <png.h>

#include <cstring>
#include <utility>

#include "superstep/base/error.h"
#include "superstep/base/printable.h"

namespace superstep::data {
namespace {

Tensor row_of(const Tensor& rows, std::int64_t row, const SourceArray& array) {
  Tensor one(array.type, array.row);
  if (one.byte_count() > 0)
    std::memcpy(one.bytes(), rows.bytes() + static_cast<std::size_t>(row) * one.byte_count(),
                one.byte_count());
  return one;
}

}  // namespace

RecordWriter::RecordWriter(const WriterPlace& place, SampleArraysToWrite arrays)
    : shown_(place.shown),
      file_(place.path, place.shown,
            place.mark.empty() ? 0 : read_mark(place).value("bytes", std::uint64_t{0})),
      arrays_(std::move(arrays)),
      rows_(place.mark.empty() ? 0 : read_mark(place).value("rows", std::int64_t{0})) {}

std::string RecordWriter::mark() {
  file_.sync();
  return nlohmann::json{{"bytes", file_.length()}, {"rows", rows_}}.dump();
}

void RecordWriter::write(std::span<const Tensor> samples, ThreadPool& pool) {
  const std::int64_t count = samples.front().shape()[0];
  std::vector<std::string> records(static_cast<std::size_t>(count));
  pool.parallel_for(count, [&](std::int64_t row, int) {
    std::vector<Tensor> values;
    for (std::size_t i = 0; i < arrays_.size(); ++i) values.push_back(row_of(samples[i], row, arrays_[i]));
    records[static_cast<std::size_t>(row)] = encode(rows_ + row, values);
  });
  constexpr std::size_t together = 1 << 20;  // bytes of small records a call: chosen
  std::string several;
  for (const std::string& record : records) {
    several += record;
    if (several.size() >= together) file_.write(std::exchange(several, {}));
  }
  file_.write(several);
  rows_ += count;
}

void RecordWriter::close() { file_.write(end()); }

std::string RecordWriter::place(std::int64_t row, std::size_t array) const {
  return fmt::format("{}: sample {}, array '{}'", shown_, row + 1, printable(arrays_[array].name));
}

std::string png_of(const Tensor& picture) {
  const Shape& shape = picture.shape();
  const std::int64_t channels = shape[0], pixels = shape[1] * shape[2];
  const auto from = picture.as<std::uint8_t>();
  std::vector<std::uint8_t> interleaved(from.size());
  for (std::int64_t c = 0; c < channels; ++c)
    for (std::int64_t i = 0; i < pixels; ++i)
      interleaved[static_cast<std::size_t>(i * channels + c)] =
          from[static_cast<std::size_t>(c * pixels + i)];
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.height = static_cast<png_uint_32>(shape[1]);
  image.width = static_cast<png_uint_32>(shape[2]);
  image.format = channels == 3 ? PNG_FORMAT_RGB : PNG_FORMAT_GRAY;
  std::string bytes;
  png_alloc_size_t size = PNG_IMAGE_PNG_SIZE_MAX(image);
  bytes.resize(size);
  if (png_image_write_to_memory(&image, bytes.data(), &size, 0, interleaved.data(), 0, nullptr) == 0)
    throw Error(ErrorCode::internal, fmt::format("a picture could not be packed: {}", image.message));
  bytes.resize(size);
  return bytes;
}

}  // namespace superstep::data
