// Exif (JEITA CP-3451): a TIFF header and a directory of entries, of which the orientation alone is wanted.
#include <optional>
#include <string_view>

#include "superstep/file/pictures/decoders.h"

namespace superstep::data::pictures {
namespace {

constexpr std::uint32_t orientation_tag = 0x0112, short_type = 3;
constexpr std::size_t entry_bytes = 12;

class Block {
 public:
  explicit Block(std::span<const std::byte> bytes) : bytes_(bytes) {
    big_ = bytes.size() > 1 && bytes[0] == std::byte{'M'};
  }
  // Of `count` bytes from `at` on; none where the block ends before.
  std::optional<std::uint32_t> number(std::size_t at, std::size_t count) const {
    if (at > bytes_.size() || count > bytes_.size() - at) return std::nullopt;
    std::uint32_t value = 0;
    for (std::size_t i = 0; i < count; ++i)
      value = value << 8 | std::to_integer<std::uint32_t>(bytes_[at + (big_ ? i : count - 1 - i)]);
    return value;
  }

 private:
  std::span<const std::byte> bytes_;
  bool big_;
};

}  // namespace

int exif_orientation(std::span<const std::byte> bytes) {
  using namespace std::string_view_literals;
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (text.starts_with("Exif\0\0"sv)) bytes = bytes.subspan(6);
  const Block block(bytes);
  if (block.number(2, 2) != 42) return 1;
  const std::uint32_t directory = block.number(4, 4).value_or(0);
  const std::uint32_t entries = block.number(directory, 2).value_or(0);
  for (std::uint32_t i = 0; i < entries; ++i) {
    const std::size_t at = std::size_t{directory} + 2 + i * entry_bytes;
    if (block.number(at, 2) != orientation_tag) continue;
    const std::uint32_t value = block.number(at + 8, 2).value_or(1);
    return block.number(at + 2, 2) == short_type && value >= 1 && value <= 8 ? static_cast<int>(value) : 1;
  }
  return 1;
}

}  // namespace superstep::data::pictures
