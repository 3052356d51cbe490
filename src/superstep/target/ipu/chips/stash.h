// Values of several micro-batches in flight: a stage of a training pipeline stores what its backward turn
// will need and takes it back, in the same order, some turns later.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "superstep/bsp/graph/graph.h"
#include "superstep/machine/ipu/hardware.h"

namespace superstep::target::ipu {

class Stash {
 public:
  // Of `depth` micro-batches at most, on the tiles of `device`.
  Stash(bsp::Graph& device, const machine::ipu::Hardware& hardware, std::size_t depth,
        const std::string& name);

  // `value` has its place; the stash of its elements is on the same tiles.
  void add(const bsp::Tensor& value, const std::string& name);

  bsp::Execute store() const;    // the values as they are, behind those that are there
  bsp::Execute restore() const;  // the oldest that was not taken back yet, to where it came from

 private:
  const std::string& codelet(bsp::Type type, bool store);

  bsp::Graph& device_;
  const machine::ipu::Hardware& hardware_;
  std::size_t depth_;
  std::string name_;
  bsp::ComputeSet store_, restore_;
  std::map<std::pair<bsp::Type, bool>, std::string> codelets_;
};

}  // namespace superstep::target::ipu
