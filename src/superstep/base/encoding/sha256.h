// SHA-256 (FIPS 180-4): names that only equal contents share.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace superstep {

class Sha256 {
 public:
  // `plain`: by no instructions that only some processors have. The digest is the same.
  explicit Sha256(bool plain = false) : plain_(plain) {}
  void add(std::span<const std::byte> bytes);
  // The digest of all that was added, as 64 hexadecimal figures. Nothing is added after it.
  std::string hexadecimal();

  // Where it stands, as hexadecimal figures, and one that goes on from there; nothing where `kept` is no such
  // text.
  std::string kept() const;
  static std::optional<Sha256> from_kept(std::string_view kept);

 private:
  static constexpr std::size_t block_bytes = 64;
  void take(const std::byte* block);

  std::array<std::uint32_t, 8> state_{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                      0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<std::byte, block_bytes> rest_{};  // of the last block that is not whole
  std::uint64_t bytes_ = 0;
  bool plain_;
};

}  // namespace superstep
