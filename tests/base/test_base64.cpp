#include <gtest/gtest.h>

#include "superstep/base/encoding/base64.h"

namespace superstep {
namespace {

std::string encode(std::string_view text) { return base64_encode(std::as_bytes(std::span(text))); }

std::string decode(std::string_view text) {
  const auto bytes = base64_decode(text);
  if (!bytes) return "refused";
  return {reinterpret_cast<const char*>(bytes->data()), bytes->size()};
}

// The test vectors of RFC 4648, section 10.
TEST(Base64, MatchesPublishedVectors) {
  static constexpr std::pair<const char*, const char*> vectors[] = {{"", ""},
                                                                    {"f", "Zg=="},
                                                                    {"fo", "Zm8="},
                                                                    {"foo", "Zm9v"},
                                                                    {"foob", "Zm9vYg=="},
                                                                    {"fooba", "Zm9vYmE="},
                                                                    {"foobar", "Zm9vYmFy"}};
  for (const auto& [plain, text] : vectors) {
    EXPECT_EQ(encode(plain), text);
    EXPECT_EQ(decode(text), plain);
  }
}

TEST(Base64, RefusesEverythingElse) {
  for (const char* text : {"Zg", "Zg=", "Z===", "====", "Zg==Zg==", "Zm9*", "Zh==", "Zm9=", "Zm 9"})
    EXPECT_EQ(decode(text), "refused") << text;
}

}  // namespace
}  // namespace superstep
