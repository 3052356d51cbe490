#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <string>

#include "superstep/base/system/late_library.h"
#include "tests/expect_error.h"

namespace superstep {
namespace late {

constinit const LateLibrary mathematics("mathematics", "libm.so.6", "/nowhere/libm.so");
SUPERSTEP_LATE(mathematics, hypot);
SUPERSTEP_LATE(mathematics, lgamma);
SUPERSTEP_LATE_VALUE(mathematics, signgam);

constinit const LateLibrary system("system", "libc.so.6", "/nowhere/libc.so");
SUPERSTEP_LATE(system, snprintf);

double of_pair(double (*function)(double, double)) { return function(3, 4); }

TEST(LateLibrary, CallsAndHandsOnItsFunctions) {
  EXPECT_EQ(hypot(3, 4), 5);
  EXPECT_EQ(hypot(6, 8), 10);
  EXPECT_EQ(of_pair(hypot), 5);
}

TEST(LateLibrary, CallsFunctionsOfAnyNumberOfArguments) {
  char text[32];
  EXPECT_EQ(snprintf(text, sizeof text, "%d-%s", 7, "x"), 3);
  EXPECT_STREQ(text, "7-x");
}

TEST(LateLibrary, ReadsItsVariablesAsTheyAreThen) {
  EXPECT_NEAR(lgamma(-0.5), std::log(3.5449077018110318), 1e-12);
  EXPECT_EQ(static_cast<int>(signgam), -1);
  EXPECT_NEAR(lgamma(1.5), std::log(0.8862269254527580), 1e-12);
  EXPECT_EQ(static_cast<int>(signgam), 1);
}

TEST(LateLibrary, IsFoundWhereItLayWhenTheLoaderDoesNotKnowItsName) {
  const LateLibrary elsewhere("mathematics", "libno-such-name.so.1", "libm.so.6");
  EXPECT_EQ(elsewhere.find("hypot"), mathematics.find("hypot"));
}

TEST(LateLibrary, SaysWhatIsMissingAndWhatToInstall) {
  const LateLibrary missing("Molecules", "libno-such-name.so.1", "/nowhere/libno-such-name.so");
  const LateFunction<int()> none(missing, "none");
  for (int time = 0; time < 2; ++time)
    expect_error(ErrorCode::unsupported,
                 {"Molecules", "cannot be opened", "No such file",
                  "install the package that holds libno-such-name.so.1"},
                 [&] { none(); });
}

TEST(LateLibrary, SaysWhichNameItDoesNotHave) {
  const LateFunction<int()> none(mathematics, "no_such_function");
  expect_error(ErrorCode::unsupported, {"mathematics", "another version", "no_such_function"},
               [&] { none(); });
}

}  // namespace late
}  // namespace superstep
