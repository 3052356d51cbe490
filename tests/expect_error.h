// Expects `action` to throw an Error of `code` whose whole text contains every one of `parts`.
#pragma once

#include <gtest/gtest.h>

#include <initializer_list>
#include <string>

#include "superstep/base/error.h"

namespace superstep {

template <class Action>
void expect_error(ErrorCode code, std::initializer_list<std::string> parts, Action&& action) {
  try {
    action();
    ADD_FAILURE() << "no Error was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    for (const std::string& part : parts)
      EXPECT_NE(std::string(error.what()).find(part), std::string::npos)
          << "'" << part << "' is not in: " << error.what();
  }
}

}  // namespace superstep
