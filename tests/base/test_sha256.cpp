// SHA-256 against the examples of FIPS 180-4 and of RFC 6234, in pieces of every size.
#include <gtest/gtest.h>

#include <string>

#include "superstep/base/encoding/sha256.h"

namespace superstep {
namespace {

std::string digest(const std::string& text, std::size_t piece = SIZE_MAX, bool plain = false) {
  Sha256 hash(plain);
  auto bytes = std::as_bytes(std::span(text));
  while (!bytes.empty()) {
    const std::size_t size = std::min(piece, bytes.size());
    hash.add(bytes.first(size));
    bytes = bytes.subspan(size);
  }
  return hash.hexadecimal();
}

TEST(Sha256, GivesThePublishedDigests) {
  EXPECT_EQ(digest(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(digest("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(digest("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(digest(std::string(1000000, 'a')),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256, DoesNotDependOnThePieces) {
  std::string text;
  for (int i = 0; i < 200; ++i) text += static_cast<char>(i);
  for (std::size_t size = 0; size <= text.size(); ++size)
    for (const std::size_t piece : {1U, 7U, 63U, 64U, 65U})
      ASSERT_EQ(digest(text.substr(0, size), piece), digest(text.substr(0, size))) << size << ' ' << piece;
}

TEST(Sha256, IsTheSameByTheProcessorsInstructions) {
  std::string text;
  for (int i = 0; i < 1000; ++i) text += static_cast<char>(i * i >> 3);
  for (std::size_t size = 0; size <= text.size(); size += 7)
    ASSERT_EQ(digest(text.substr(0, size)), digest(text.substr(0, size), SIZE_MAX, true)) << size;
}

TEST(Sha256, GoesOnFromWhereItWasKept) {
  std::string text;
  for (int i = 0; i < 200; ++i) text += static_cast<char>(3 * i);
  for (std::size_t size = 0; size <= text.size(); ++size) {
    const auto bytes = std::as_bytes(std::span(text));
    Sha256 first;
    first.add(bytes.first(size));
    auto next = Sha256::from_kept(first.kept());
    ASSERT_TRUE(next.has_value());
    next->add(bytes.subspan(size));
    EXPECT_EQ(next->hexadecimal(), digest(text)) << size;
  }
  const std::string kept = Sha256().kept();
  EXPECT_FALSE(Sha256::from_kept(kept.substr(1)));
  EXPECT_FALSE(Sha256::from_kept("x" + kept.substr(1)));
}

}  // namespace
}  // namespace superstep
