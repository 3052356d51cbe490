// What is behind the handles of the public headers.
#pragma once

#include <poplar/Device.hpp>
#include <poplar/Graph.hpp>
#include <poplar/Program.hpp>
#include <poplar/Tensor.hpp>

#include "superstep/bsp/graph/graph.h"
#include "superstep/poplar/codelet/codelet_class.h"

namespace poplar::core {

namespace bsp = superstep::bsp;

struct TargetData {
  bsp::Device device;
  TargetType type = TargetType::IPU_MODEL;
  std::string arch;  // "ipu1", "ipu2", "cpu"
};

struct DeviceData {
  unsigned id = 0;
  Target target;
  bool attached = false;
};

struct Replication;
class Replicas;

// What a graph, its virtual graphs and its tensors share.
struct GraphState {
  GraphState(bsp::Device device, std::uint32_t replicas) : graph(std::move(device), replicas) {}
  bsp::Graph graph;
  std::map<std::string, std::shared_ptr<const CodeletClass>, std::less<>> classes;  // by name
  std::map<std::string, PerfEstimateFunc, std::less<>> estimators;                  // by type of vertex
  std::map<std::size_t, Type> types;  // of variables that tensors of a program are of, by their numbers
  // Vectors and constants of vertices: they lie where their vertex does, which may be said later.
  struct Own {
    std::uint32_t vertex;
    bsp::Tensor tensor;
  };
  std::map<std::pair<std::uint32_t, std::string>, Own> owned;  // by vertex and field
  std::vector<std::weak_ptr<const Replication>> replications;  // of the replicated graphs in it
};

// Lets the vertices of this type, where there is one, cost what its estimator says.
void use_estimator(GraphState& state, const std::string& type, const Target& target);

struct GraphHandle {
  std::shared_ptr<GraphState> state;
  bsp::Graph graph;  // the same, or a view on some of its tiles
  Target target;     // with the tiles of this view
  // Of a graph of createReplicatedGraph, whose `graph` is that of the first replica.
  std::shared_ptr<Replicas> replicas = {};
  bool one_replica = false;  // one of those that the replicas have
};

struct TensorData {
  std::shared_ptr<GraphState> state;  // a tensor keeps its graph's variables alive
  bsp::Tensor tensor;
  Type type;
  std::shared_ptr<const Replication> replication = {};  // of a replicated graph: it stands for all replicas
};

// "weights{4,4}", for messages.
std::string describe(const Tensor& tensor);
// Throws poplar_error for a tensor that is not there.
const bsp::Tensor& machine_tensor(const Tensor& tensor);
// The same; throws graph_replication_error for one of a replicated graph, which stands for several.
const bsp::Tensor& single_tensor(const Tensor& tensor);
superstep::Shape machine_shape(ArrayRef<std::size_t> shape);

struct ProgramData {
  bsp::Program program;                   // unless it is a sequence
  std::optional<bsp::Sequence> sequence;  // grows
  struct Choice {
    bsp::Tensor control;
    std::vector<std::pair<std::int64_t, bsp::Program>> cases;
    bsp::Program otherwise;
    std::string name;
    bsp::Program check = {};  // that all replicas of a replicated graph have the same
  };
  std::optional<Choice> choice;  // of a Switch: what `program` is made of

  const bsp::Program& get() const { return sequence ? *sequence : program; }
};

}  // namespace poplar::core
