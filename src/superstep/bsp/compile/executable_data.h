// What compiling leaves: all that engines need, apart from the graph.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "superstep/bsp/graph/graph_data.h"
#include "superstep/bsp/profile/profile.h"

namespace superstep::bsp {

// `count` runs of `length` elements, at places and elements that go on by the same steps.
struct RunBlock {
  VariableId variable;
  std::int64_t place = 0, place_step = 0, element = 0, element_step = 0, count = 1;
  std::int64_t length = 1, stride = 1;  // of a run: consecutive places
};

// One vector of a vertex's field.
struct LoweredPiece {
  static constexpr std::uint32_t none = 0xffffffffu;
  VariableId variable;  // where it lies in one piece: bound without a copy
  std::int64_t element = 0;
  std::int64_t size = 0;
  std::uint32_t first_block = 0;  // otherwise gathered before and scattered after, block by block
  std::uint32_t blocks = 0;
  std::uint32_t same_as =
      none;  // gathered already: the number among the vertex's pieces of one of the same elements
};

struct LoweredField {
  std::uint16_t field = 0;  // in the class
  std::uint32_t first_piece = 0, pieces = 0;
};

struct LoweredVertex {
  const VertexClass* vertex_class = nullptr;
  std::uint32_t first_field = 0, fields = 0;
  std::uint32_t first_value = 0;  // of state fields, in the order of the class
};

struct LoweredComputeSet {
  std::vector<LoweredVertex> vertices;
  std::vector<LoweredField> fields;
  std::vector<LoweredPiece> pieces;
  std::vector<RunBlock> blocks;
  std::vector<double> values;
};

// `length` elements from source to destination.
struct Segment {
  VariableId source, destination;
  std::int64_t source_element = 0, source_stride = 1;
  std::int64_t destination_element = 0, destination_stride = 1;
  std::int64_t length = 0;
};

struct LoweredNode {
  static constexpr std::uint32_t none = 0xffffffffu;
  ProgramKind kind = ProgramKind::sequence;
  std::string name;
  std::uint32_t step = none;            // of a leaf or a decision: its number in the profile's steps
  std::vector<std::uint32_t> children;  // numbers of nodes
  std::uint32_t compute_set = none;
  std::vector<Segment> segments;  // of a copy between tensors
  bool staged = false;            // source and destination overlap: go through a buffer
  Type type = Type::f32;          // of the tensor
  Shape shape;
  std::vector<Run> runs;     // the tensor's elements, or the predicate's
  std::vector<Run> offsets;  // of a remote copy
  Type offset_type = Type::u32;
  std::vector<std::int64_t> cases;
  std::vector<std::uint32_t> replica_map;
  std::uint64_t count = 0;
  bool wanted = true;
  StreamId stream;
  RemoteBufferId buffer;
  std::string message;
  TensorPrinter printer;
};

struct VariableInfo {
  std::string name;
  Type type = Type::f32;
  std::int64_t count = 0;
  std::optional<InitialValue> initial;
  bool replica_index = false;
  std::size_t bytes() const { return static_cast<std::size_t>(count) * size_in_bytes(type); }
};

struct LoweredHandle {
  Type type = Type::f32;
  std::int64_t count = 0;
  std::vector<Run> runs;
};

struct ExecutableData {
  std::map<std::string, VertexClass, std::less<>> classes;  // vertices point into it
  std::vector<VariableInfo> variables;
  std::vector<LoweredComputeSet> compute_sets;
  std::vector<LoweredNode> nodes;
  std::vector<std::uint32_t> programs;  // numbers of nodes
  std::vector<StreamData> streams;
  std::vector<RemoteBufferData> buffers;
  std::map<std::string, LoweredHandle, std::less<>> writes, reads;
  bool timing_only = false;
  CompilationProfile profile;
};

}  // namespace superstep::bsp
