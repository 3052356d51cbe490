// The elements that constants and states begin with. Of a plan that is served, states that `prepare` alone
// reads, as weights that it packs, have no place of their own: they pass through a block of memory that
// `prepare` has for them while it runs.
#pragma once

#include <cstddef>
#include <vector>

#include "superstep/base/thread_pool.h"
#include "superstep/target/cpu/plan/arena.h"
#include "superstep/target/cpu/plan/plan.h"
#include "superstep/target/cpu/run/memory.h"

namespace superstep::target::cpu {

class InitialValues {
 public:
  // Takes the plan's list: what need not be filled in again is let go of once it is filled in.
  InitialValues(Plan& plan, int threads);

  // Makes all elements but those that pass straight where they are used; what is zero is zero already, and
  // takes up no room before it is written.
  void fill(ThreadPool& pool, const Memory& shared);

  // What those that pass need at a time.
  std::size_t passing_bytes() const { return passing_bytes_; }
  // Before a step of `prepare`: makes what it is the first to read, or what the next few do, as many as give
  // all threads something to make.
  void fill_passing(std::size_t step, ThreadPool& pool, const Memory& passing) const;
  // Where an operand of `prepare` at this offset of shared memory is; null: there.
  std::byte* place_of(std::size_t offset, const Memory& passing) const;

  // The elements at this offset of shared memory where they pass; null: they are there.
  const Tensor* passing(std::size_t offset) const;
  // From now on the elements at this offset are there, and are somebody else's to change.
  void keep(std::size_t offset, const Memory& shared);

 private:
  struct Value {
    std::size_t offset;
    Tensor elements;  // a recipe
    int first, last;  // steps of `prepare` that read it; it is made before `first`, with its neighbours
    std::size_t place = 0;
  };
  void choose_places(std::size_t together);

  std::vector<std::pair<std::size_t, Tensor>> all_;  // until they are filled in
  std::vector<Value> passing_;                       // by offset
  std::size_t passing_bytes_ = 0;
};

}  // namespace superstep::target::cpu
