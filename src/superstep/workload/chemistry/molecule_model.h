// What models of molecules in packs share: their inputs, the room of a pack, means over atoms.
#pragma once

#include <string>
#include <vector>

#include "superstep/base/options.h"
#include "superstep/workload/graph_packs.h"
#include "superstep/workload/packed_graph.h"
#include "superstep/workload/workload.h"

namespace superstep::workload {

// x f32 [N, atoms, 36], edge_index i64 [N, 2, edges], edge_attr f32 [N, edges, 6] where there are bonds,
// batch i64 [N, atoms].
struct MoleculeInputs {
  op::Var x, edge_index, edge_attr, batch;
};
MoleculeInputs molecule_inputs(op::Builder& b, std::int64_t batch, const PackCapacity& pack, bool with_bonds);
// The same as a workload says them; `thing` is what a pack has several of: "polymer".
std::vector<PortSpec> molecule_ports(const PackCapacity& pack, bool with_bonds, const std::string& thing);
// Of the loss: 0 where a place of the pack is empty, the others more by as much, so that a mean over places
// is one over molecules.
PortSpec weight_port(const PackCapacity& pack);

// "atoms", "edges" and `things`, "polymers", with the room of `pack` as what they are by default.
std::vector<OptionSpec> pack_options(const PackCapacity& pack, const std::string& things);
PackCapacity pack_of(const Options& options, const std::string& things);

// One over the number of atoms of every molecule, 1 where there are none: [N, molecules, 1].
op::Var share_of_an_atom(const PackedGraph& graph, std::int64_t molecules);

}  // namespace superstep::workload
