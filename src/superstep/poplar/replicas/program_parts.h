// Programs over tensors that may be of a replicated graph, as what the machine does: all replicas in one.
#pragma once

#include <poplar/Program.hpp>

#include "superstep/poplar/replicas/replicas.h"

namespace poplar::core {

// make(part, replica) for each part of the tensor, which is one where no replicated graph made it.
template <class F>
bsp::Program each_part(const Tensor& tensor, const std::string& name, F&& make) {
  if (!tensor.data().replication) return make(tensor, std::size_t{0});
  bsp::Sequence all(name);
  for (std::size_t replica = 0; replica < tensor.data().replication->factor(); ++replica)
    all.add(make(part_of(tensor, replica), replica));
  return all;
}

// Of all replicas. Throws control_program_error where one of the two is of another graph.
bsp::Program copy(const Tensor& source, const Tensor& destination, const std::string& name);
// The replicas' one after the other: each has a stream, a remote buffer, of its own.
bsp::Program copy_in(const DataStream& stream, const Tensor& destination, const std::string& name);
bsp::Program copy_out(const Tensor& source, const DataStream& stream, const std::string& name);
// Of the row that `offset` says; where it is null, of row 0.
bsp::Program copy_in(const RemoteBuffer& buffer, const Tensor& destination, const Tensor* offset,
                     const std::string& name);
bsp::Program copy_out(const Tensor& source, const RemoteBuffer& buffer, const Tensor* offset,
                      const std::string& name);
// From replica map[r] to replica r.
bsp::Program copy_across(const Tensor& source, const Tensor& destination, std::vector<std::uint32_t> map,
                         const std::string& name);
bsp::Program assume_equal(const Tensor& tensor, const std::string& name);

// A tensor that decides: of a replicated graph the first replica's, once `check` has found that all agree.
struct Decision {
  bsp::Tensor tensor;
  bsp::Program check;  // empty: there is nothing to check
  // The program that decides, after the check.
  bsp::Program after_check(const bsp::Program& decides) const;
};
Decision decision(const Tensor& tensor, const std::string& name);

}  // namespace poplar::core
