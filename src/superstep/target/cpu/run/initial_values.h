// The elements that constants and states begin with. Of a plan that is served, states that `prepare` alone
// reads, as weights that it packs, take up room only until then.
#pragma once

#include <cstddef>
#include <vector>

#include "superstep/base/thread_pool.h"
#include "superstep/target/cpu/plan/plan.h"
#include "superstep/target/cpu/run/memory.h"

namespace superstep::target::cpu {

class InitialValues {
 public:
  // Takes the plan's list: what need not be filled in again is let go of once it is filled in.
  explicit InitialValues(Plan& plan);

  // Makes all elements straight where they are used; what is zero is zero already, and takes up no room
  // before it is written.
  void fill(ThreadPool& pool, const Memory& shared);

  // Before `prepare` runs again: those that were released are there again.
  void refill(const Memory& shared);
  // Behind a step of `prepare`: nothing reads what that one was the last to read.
  void release_behind(std::size_t step, Memory& shared);

  // The elements at this offset of shared memory where they are released; null: they are there.
  const Tensor* released(std::size_t offset) const;
  // From now on the elements at this offset are there, and are somebody else's to change.
  void keep(std::size_t offset, const Memory& shared);

 private:
  struct Value {
    std::size_t offset;
    Tensor elements;          // a recipe
    std::size_t last_reader;  // of `prepare`
    bool is_released = false;
  };

  std::vector<std::pair<std::size_t, Tensor>> all_;  // until they are filled in
  std::vector<Value> passing_;                       // those that are released
};

}  // namespace superstep::target::cpu
