// EXPECT_TRUE(contains(text, "part")), with the whole text in the failure.
#pragma once

#include <gtest/gtest.h>

#include <string_view>

namespace superstep {

inline ::testing::AssertionResult contains(std::string_view text, std::string_view part) {
  if (text.find(part) != std::string_view::npos) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << "'" << part << "' is not in:\n" << text;
}

}  // namespace superstep
