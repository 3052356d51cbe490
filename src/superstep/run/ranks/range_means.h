// Means over ranks of the ranges of one array, each made as soon as all ranks have it, beside other work:
// gradients while the backward pass still runs.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "superstep/target/target.h"

namespace superstep::run {

// A round: begin(); ready(r) once for every range r, in any order, by any thread; progress() as often as one
// likes; finish(). All but ready() are called by one thread. Every rank makes the same rounds.
class RangeMeans {
 public:
  virtual ~RangeMeans() = default;
  virtual std::span<float> values() = 0;  // zeroed at first; on a 64-byte boundary
  virtual void begin() = 0;
  // This rank's values of the range are in place; they are not to be touched until finish() has returned.
  virtual void ready(std::size_t range) = 0;
  // Does what can be done without waiting for another rank; was there anything?
  virtual bool progress() = 0;
  // Every range holds its mean over ranks: added in the order of ranks, then times 1 / ranks.
  virtual void finish() = 0;
  // Of the last finish(), in s: how long this rank had nothing to do because another had not its values yet.
  // Always 0 where that cannot be told from the exchange itself.
  virtual double seconds_waited() const = 0;
};

}  // namespace superstep::run
