#include "superstep/poplar/replicas/replicas.h"

#include "superstep/bsp/graph/graph_data.h"
#include "superstep/poplar/core/guard.h"

namespace poplar::core {
namespace {

const std::vector<std::size_t>& found(const Replication::Numbers& numbers, std::uint32_t id,
                                      const std::string& what) {
  const auto place = numbers.find(id);
  if (place == numbers.end())
    throw control_program_error(
        what + " is not of this replicated graph: add it to the graph that the tensor is of");
  return place->second;
}

void note_numbers(Replication::Numbers& numbers, std::size_t first, std::size_t begin, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) numbers[first + i].push_back(begin + i);
}

std::unique_ptr<GraphHandle> on_tiles(const GraphHandle& whole, bsp::Graph graph) {
  TargetData target = whole.target.data();
  target.device = graph.device();
  return std::make_unique<GraphHandle>(GraphHandle{
      whole.state, std::move(graph), Target(std::make_shared<const TargetData>(std::move(target)))});
}

std::unique_ptr<GraphHandle> on_replicas(const GraphHandle& around, std::shared_ptr<Replication> replication,
                                         const std::vector<bsp::Graph>& tiles) {
  std::unique_ptr<GraphHandle> handle = on_tiles(around, tiles[0]);
  handle->replicas = std::make_shared<Replicas>(around, std::move(replication), tiles);
  return handle;
}

// The tiles of each of `factor` replicas: whole chips, or equal parts of a chip. Throws
// graph_replication_error.
std::vector<bsp::Graph> shares(const bsp::Graph& graph, unsigned factor) {
  const bsp::Device& device = graph.device();
  const bool of_chips = factor != 0 && device.ipus % factor == 0;
  const bool of_a_chip =
      factor != 0 && factor % device.ipus == 0 && device.tiles_per_ipu % (factor / device.ipus) == 0;
  if (!of_chips && !of_a_chip)
    throw graph_replication_error(
        fmt::format("createReplicatedGraph({}): {} chips of {} tiles are not shared evenly: take a number of "
                    "replicas that divides the chips, or each chip's tiles",
                    factor, device.ipus, device.tiles_per_ipu));
  const std::uint32_t share = graph.num_tiles() / factor;
  std::vector<bsp::Graph> result;
  for (std::uint32_t replica = 0; replica < factor; ++replica)
    result.push_back(graph.create_virtual_graph(replica * share, (replica + 1) * share));
  return result;
}

[[noreturn]] void refuse_vertex(const GraphState& state, std::uint32_t id) {
  const bool there = id < state.graph.data().vertices.size();
  throw graph_replication_error(
      (there ? state.graph.data().describe(bsp::VertexId(id)) : std::string("a vertex that is not there")) +
      ": it is not of this replicated graph");
}

}  // namespace

const std::vector<std::size_t>& Replication::streams_of(std::uint32_t id, const std::string& handle) const {
  return found(streams, id, "stream '" + handle + "'");
}
const std::vector<std::size_t>& Replication::buffers_of(std::uint32_t id, const std::string& handle) const {
  return found(buffers, id, "remote buffer '" + handle + "'");
}

Tensor part_of(const Tensor& tensor, std::size_t replica) {
  const TensorData& data = tensor.data();
  std::map<bsp::VariableId, bsp::VariableId> variables;
  for (const bsp::Region& region : data.tensor.view().regions())
    variables.emplace(region.variable, data.replication->variables.at(region.variable.index()).at(replica));
  return Tensor(std::make_shared<const TensorData>(
      TensorData{data.state, data.state->graph.in_variables(data.tensor, variables), data.type, nullptr}));
}

Tensor all_parts(const Tensor& tensor) {
  std::vector<Tensor> parts;
  for (std::size_t replica = 0; replica < tensor.data().replication->factor(); ++replica)
    parts.push_back(part_of(tensor, replica).expand({0}));
  return concat(parts);
}

bsp::Tensor whole_tensor(const Tensor& tensor) {
  return machine_tensor(tensor.data().replication ? all_parts(tensor) : tensor);
}

std::string name_in_replica(const std::string& name, std::size_t replica) {
  return replica == 0 ? name : fmt::format("{}/replica{}", name, replica);
}

Replicas::Replicas(const GraphHandle& around, std::shared_ptr<Replication> replication,
                   std::vector<bsp::Graph> tiles)
    : state_(around.state), replication_(std::move(replication)) {
  for (bsp::Graph& graph : tiles) {
    std::unique_ptr<GraphHandle> handle = on_tiles(around, std::move(graph));
    handle->one_replica = true;
    graphs_.push_back(Graph(std::move(handle)));
  }
}

Tensor Replicas::replicated(const Tensor& first) const {
  TensorData data = first.data();
  data.replication = replication_;
  return Tensor(std::make_shared<const TensorData>(std::move(data)));
}

Tensor Replicas::part(const Tensor& tensor, std::size_t replica) const {
  if (tensor.data().replication != replication_)
    throw graph_replication_error("tensor " + describe(tensor) +
                                  " is not of this replicated graph: make it by the replicated graph's "
                                  "addVariable");
  return part_of(tensor, replica);
}

VertexRef Replicas::part(VertexRef vertex, std::size_t replica) const {
  const auto place = replication_->vertices.find(vertex.getId());
  if (place == replication_->vertices.end()) refuse_vertex(*state_, vertex.getId());
  return VertexRef(static_cast<std::uint32_t>(place->second.at(replica)));
}

FieldRef Replicas::part(const FieldRef& field, std::size_t replica) const {
  const FieldRef moved(part(field.getVertex(), replica), field.getName());
  return field.isIndexed() ? moved[field.getIndex()] : moved;
}

Replicas::Counts Replicas::Counts::operator-(const Counts& other) const {
  return {variables - other.variables, vertices - other.vertices, streams - other.streams,
          buffers - other.buffers};
}

Replicas::Counts Replicas::counts() const {
  const bsp::GraphData& data = state_->graph.data();
  return {data.variables.size(), data.vertices.size(), data.streams.size(), data.buffers.size()};
}

void Replicas::note(const Counts& first, const Counts& begin, const Counts& added) {
  note_numbers(replication_->variables, first.variables, begin.variables, added.variables);
  note_numbers(replication_->vertices, first.vertices, begin.vertices, added.vertices);
  note_numbers(replication_->streams, first.streams, begin.streams, added.streams);
  note_numbers(replication_->buffers, first.buffers, begin.buffers, added.buffers);
}

void check_is_of(const GraphHandle& graph, VertexRef vertex) {
  if (graph.replicas || graph.one_replica) return;
  for (const auto& known : graph.state->replications)
    if (const auto replication = known.lock(); replication && replication->vertices.contains(vertex.getId()))
      throw graph_replication_error(graph.state->graph.data().describe(bsp::VertexId(vertex.getId())) +
                                    ": it is of a replicated graph, not of the graph around it");
}

std::unique_ptr<GraphHandle> view_of(const GraphHandle& whole,
                                     superstep::FunctionRef<bsp::Graph(const bsp::Graph&)> make) {
  return guarded([&] {
    if (!whole.replicas) {
      std::unique_ptr<GraphHandle> view = on_tiles(whole, make(whole.graph));
      view->one_replica = whole.one_replica;
      return view;
    }
    std::vector<bsp::Graph> tiles;
    for (const Graph& graph : whole.replicas->graphs()) tiles.push_back(make(graph.handle().graph));
    return on_replicas(whole, whole.replicas->replication(), tiles);
  });
}

}  // namespace poplar::core

namespace poplar {

Graph Graph::createReplicatedGraph(unsigned factor) const {
  if (factor == 1) return Graph(core::view_of(handle(), [](const core::bsp::Graph& graph) { return graph; }));
  if (getReplicationFactor() > 1)
    throw graph_replication_error(
        fmt::format("createReplicatedGraph({}): the graph is replicated already, {} times", factor,
                    getReplicationFactor()));
  return core::guarded([&] {
    auto replication = std::make_shared<core::Replication>();
    replication->wholes = core::shares(handle().graph, factor);
    handle().state->replications.push_back(replication);
    return Graph(core::on_replicas(handle(), replication, replication->wholes));
  });
}

Tensor Graph::getNonReplicatedTensor(const Tensor& tensor) const {
  return tensor.data().replication ? core::all_parts(tensor) : tensor.expand({0});
}

}  // namespace poplar
