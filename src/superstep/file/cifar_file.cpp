#include "superstep/file/cifar_file.h"

#include <fmt/format.h>

#include <cstring>

#include "superstep/base/error.h"
#include "superstep/base/system/mapped_file.h"

namespace superstep::data {

CifarFile read_cifar(const std::filesystem::path& path, int classes) {
  constexpr std::size_t pixels = 3 * 32 * 32;
  const std::size_t labels = classes > 10 ? 2 : 1, record = labels + pixels;
  const MappedFile file(path);
  const auto bytes = file.bytes();
  if (bytes.empty() || bytes.size() % record)
    throw Error(ErrorCode::bad_file,
                fmt::format("has {} bytes, no whole number of records of {}", bytes.size(), record),
                path.string(), classes > 10 ? "is it a file of 10 classes?" : "is it a file of 100 classes?");
  const auto count = static_cast<std::int64_t>(bytes.size() / record);
  CifarFile result{Tensor(ElementType::u8, {count, 3, 32, 32}), Tensor(ElementType::u8, {count}),
                   Tensor(ElementType::u8, {labels == 2 ? count : 0})};
  for (std::size_t k = 0; k < static_cast<std::size_t>(count); ++k) {
    const std::byte* at = bytes.data() + k * record;
    if (labels == 2) result.coarse.as<std::uint8_t>()[k] = static_cast<std::uint8_t>(*at);
    const auto label = static_cast<std::uint8_t>(at[labels - 1]);
    if (label >= classes)
      throw Error(ErrorCode::bad_file,
                  fmt::format("record {} has the label {} of {} classes", k, label, classes), path.string());
    result.labels.as<std::uint8_t>()[k] = label;
    std::memcpy(result.images.bytes() + k * pixels, at + labels, pixels);
  }
  return result;
}

}  // namespace superstep::data
