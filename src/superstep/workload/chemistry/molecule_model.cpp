#include "superstep/workload/chemistry/molecule_model.h"

#include <fmt/format.h>

#include "superstep/op/elementwise/arithmetic.h"
#include "superstep/op/elementwise/unary.h"
#include "superstep/op/move/segment.h"
#include "superstep/physics/chemistry/molecule_features.h"

namespace superstep::workload {

MoleculeInputs molecule_inputs(op::Builder& b, std::int64_t batch, const PackCapacity& pack,
                               bool with_bonds) {
  MoleculeInputs in;
  in.x = b.input("x", ElementType::f32, {batch, pack.nodes, data::atom_feature_count});
  in.edge_index = b.input("edge_index", ElementType::i64, {batch, 2, pack.edges});
  if (with_bonds)
    in.edge_attr = b.input("edge_attr", ElementType::f32, {batch, pack.edges, data::bond_feature_count});
  in.batch = b.input("batch", ElementType::i64, {batch, pack.nodes});
  return in;
}

std::vector<PortSpec> molecule_ports(const PackCapacity& pack, bool with_bonds, const std::string& thing) {
  std::vector<PortSpec> ports{
      {"x", ElementType::f32, {pack.nodes, data::atom_feature_count}, "", "features of atoms"},
      {"edge_index", ElementType::i64, {2, pack.edges}, "", "atoms an edge joins: from, to; or -1"}};
  if (with_bonds)
    ports.push_back({"edge_attr",
                     ElementType::f32,
                     {pack.edges, data::bond_feature_count},
                     "",
                     "features of the bonds that edges are"});
  ports.push_back(
      {"batch", ElementType::i64, {pack.nodes}, "", fmt::format("an atom's {} in the pack, or -1", thing)});
  return ports;
}

PortSpec weight_port(const PackCapacity& pack) {
  return {"weight", ElementType::f32, {pack.graphs}, "", "of a place in the loss; 0 where it is empty"};
}

std::vector<OptionSpec> pack_options(const PackCapacity& pack, const std::string& things) {
  return {{"atoms", std::to_string(pack.nodes), "room for atoms in a pack"},
          {"edges", std::to_string(pack.edges), "room for edges in a pack, two a bond"},
          {things, std::to_string(pack.graphs), fmt::format("room for {} in a pack", things)}};
}

PackCapacity pack_of(const Options& options, const std::string& things) {
  return {.nodes = options.integer("atoms", 2, 65536),
          .edges = options.integer("edges", 2, 1 << 20),
          .graphs = options.integer(things, 1, 65536)};
}

op::Var share_of_an_atom(const PackedGraph& graph, std::int64_t molecules) {
  const op::Var count = op::segment_sum(graph.is_node(), graph.batch(), molecules);
  return op::reciprocal(op::max(count, count.builder().scalar(ElementType::f32, 1)));
}

}  // namespace superstep::workload
