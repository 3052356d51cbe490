// What the handles of one graph share. Everything is appended to; nothing is taken away.
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "superstep/base/tensor.h"
#include "superstep/bsp/compile/device.h"
#include "superstep/bsp/graph/mapping.h"
#include "superstep/bsp/graph/program.h"
#include "superstep/bsp/graph/tensor.h"
#include "superstep/bsp/graph/vertex_class.h"

namespace superstep::bsp {

// What a variable's elements are when the program is loaded.
struct InitialValue {
  double splat = 0;
  std::optional<superstep::Tensor> values;  // of the whole variable; else every element is `splat`
  IntervalSet defined;                      // the elements that have one
};

struct Variable {
  std::string name;
  Type type = Type::f32;
  Shape shape;
  bool constant = false;
  bool replica_index = false;  // one element: the number of the replica that it is in
  IntervalMap mapping;
  std::optional<InitialValue> initial;

  std::int64_t count() const { return shape.element_count(); }
  std::uint64_t bytes() const { return static_cast<std::uint64_t>(count()) * size_in_bytes(type); }
};

struct FieldConnection {
  std::vector<Tensor> tensors;  // one, or one a vector of a list
  double value = 0;             // of state
  bool connected = false;
};

struct VertexData {
  const VertexClass* vertex_class = nullptr;
  ComputeSetId compute_set;
  std::optional<std::uint32_t> tile;
  std::vector<FieldConnection> fields;
  std::optional<PerfEstimate> estimate;
};

struct ComputeSetData {
  std::string name;
  std::vector<VertexId> vertices;
};

struct StreamData {
  std::string handle;
  Type type = Type::f32;
  std::int64_t elements = 0;
  bool to_device = true;
  ReplicatedStreamMode mode = ReplicatedStreamMode::replicate;
};

struct RemoteBufferData {
  std::string handle;
  Type type = Type::f32;
  std::int64_t elements = 0, repeats = 1;
};

struct HostHandle {
  Tensor tensor;
  bool write = true;
};

struct GraphData {
  Device device;  // of one replica
  std::uint32_t replicas = 1;
  std::deque<Variable> variables;
  std::map<std::string, VertexClass, std::less<>> classes;
  std::deque<VertexData> vertices;
  std::deque<ComputeSetData> compute_sets;
  std::vector<StreamData> streams;
  std::vector<RemoteBufferData> buffers;
  std::map<std::string, HostHandle, std::less<>> writes, reads;
  std::vector<Program> functions;

  const Variable& variable(VariableId id) const { return variables[id.index()]; }
  // "compute set 'step', vertex 12 (ScaledAdd<float>) on tile 3"
  std::string describe(VertexId id) const;
};

}  // namespace superstep::bsp
