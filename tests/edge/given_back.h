// All memory of a budget comes back.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "superstep/edge/service/memory_budget.h"

namespace superstep::edge {

// Once what was asked has been let go of, which is a moment after its answer.
inline void expect_all_given_back(const MemoryBudget& budget) {
  for (int i = 0; i < 500 && budget.left() < budget.all(); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_EQ(budget.left(), budget.all());
}

}  // namespace superstep::edge
