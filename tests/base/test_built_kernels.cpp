// Which instruction sets a program was built for, and what it gives away on another processor.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "superstep/base/error.h"
#include "superstep/base/system/built_kernels.h"

namespace superstep {
namespace {

using enum InstructionSet;
using Sets = std::vector<InstructionSet>;

TEST(BuiltKernels, ThatHoldTheProcessorsWidestGiveNothingAway) {
  EXPECT_EQ(widest_given_away(Sets{scalar, avx2}, Sets{scalar, avx2, avx512, avx512_bf16, amx}),
            std::nullopt);
  EXPECT_EQ(widest_given_away(Sets{scalar, avx2, avx512}, Sets{scalar, avx512, avx512_bf16, amx}),
            std::nullopt);
  EXPECT_EQ(widest_given_away(Sets{scalar}, Sets{scalar, avx2}), std::nullopt);
}

TEST(BuiltKernels, OfAnotherMachineGiveAwayWhatThisOneIsWidestAt) {
  EXPECT_EQ(widest_given_away(Sets{scalar, avx2}, Sets{scalar, avx512, avx512_bf16, amx}), avx2);
  EXPECT_EQ(widest_given_away(Sets{scalar, avx2, avx512, avx512_bf16}, Sets{scalar, avx2}), avx512_bf16);
}

// Of a build for this machine alone, too.
TEST(BuiltKernels, OfThisProgramHoldThisMachinesWidest) {
  EXPECT_EQ(widest_given_away(), std::nullopt);
  EXPECT_EQ(available_instruction_sets().front(), scalar);
}

TEST(BuiltKernels, ThatAreNotHereAreRefused) {
  for (const InstructionSet set : {scalar, avx2, avx512, avx512_bf16, amx}) {
    if (std::ranges::find(available_instruction_sets(), set) != available_instruction_sets().end()) continue;
    EXPECT_THROW(set_instruction_set(set), Error) << name_of(set);
  }
}

}  // namespace
}  // namespace superstep
