// What the graph, the cost model and the engine know about a vertex class: its fields, what it costs, how to
// run it. bsp/graph/vertex.h makes one from a C++ class.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "superstep/bsp/compile/device.h"
#include "superstep/bsp/graph/type.h"

#pragma GCC visibility push(default)  // installed: what is declared here is exported

namespace superstep::bsp {

enum class VertexKind : std::uint8_t { worker, multi, supervisor };
const char* name_of(VertexKind kind);

enum class FieldDirection : std::uint8_t { input, output, in_out };
enum class FieldShape : std::uint8_t { state, scalar, vector, vector_list };

// How a vector's pointer and size lie in the vertex state. Bytes: span 8, short_span 4, one_ptr 4,
// scaled_ptr* and compact_ptr 2; unpacking a scaled pointer takes 1 or 2 cycles, a short span 2.
enum class VectorLayout : std::uint8_t {
  span,
  short_span,
  one_ptr,
  scaled_ptr32,
  scaled_ptr64,
  scaled_ptr128,
  compact_ptr
};
std::uint64_t state_bytes(VectorLayout layout);
std::uint64_t unpack_cycles(VectorLayout layout);

struct Piece {
  void* data = nullptr;
  std::int64_t size = 0;  // elements
};

struct FieldInfo {
  std::string name;
  FieldShape shape = FieldShape::vector;
  FieldDirection direction = FieldDirection::input;
  Type type = Type::f32;
  VectorLayout layout = VectorLayout::span;
  unsigned minimum_alignment = 0;  // bytes; 0: the element's own
  bool interleaved = false;        // must lie in interleaved memory
  std::size_t offset = 0;          // within the vertex object
  double initial = 0;              // of state for which no vertex says anything else
  void (*bind)(void* field, std::span<const Piece> pieces) = nullptr;  // null for state
};

// The sizes and initial values of one vertex, as a cost function sees them. Also made by hand, without a
// graph.
class VertexFields {
 public:
  VertexFields& add(std::string_view name, Type type, std::vector<std::int64_t> sizes);  // a field's vectors
  VertexFields& add_value(std::string_view name, Type type, double value);               // state

  std::int64_t size(std::string_view field) const;                 // elements, all vectors together
  std::int64_t size(std::string_view field, std::size_t i) const;  // of vector i of a list
  std::size_t count(std::string_view field) const;                 // vectors of a list
  double value(std::string_view field) const;                      // a state field's initial value
  Type type(std::string_view field) const;
  bool has(std::string_view field) const { return find(field) != nullptr; }
  std::int64_t total_elements() const;  // of all connected fields
  std::int64_t most_elements() const;   // of one field
  std::size_t most_vectors() const;     // of one field

 private:
  struct Entry {
    std::string_view name;
    Type type;
    std::vector<std::int64_t> sizes;
    double value = 0;
  };
  const Entry* find(std::string_view name) const;
  const Entry& get(std::string_view name) const;  // throws Error (invalid_argument) naming the field
  std::vector<Entry> entries_;
};

// Cycles: of a worker's thread for a worker vertex, of the tile for the others.
struct PerfEstimate {
  std::uint64_t cycles = 0;
  std::uint64_t flops = 0;
  PerfEstimate() = default;
  template <class Integer>
  PerfEstimate(Integer cycle_count, std::uint64_t flop_count = 0)  // NOLINT(google-explicit-constructor)
      : cycles(static_cast<std::uint64_t>(cycle_count)), flops(flop_count) {}
};
// What code shows of a vertex, in cycles of a thread: once, for each vector of the longest list, for each
// element of the largest field.
struct CountedInstructions {
  double fixed = 0, outer = 0, element = 0;
};
struct VertexData;
using PerfEstimateFunction = std::function<PerfEstimate(const VertexFields& fields, const Device& device)>;

struct VertexClass {
  std::string name;  // "ScaledAdd<float>"; what follows a '#' tells variants apart and stays out of reports
  VertexKind kind = VertexKind::worker;
  std::vector<FieldInfo> fields;
  std::size_t object_bytes = 0, object_alignment = 1;
  void (*construct)(void* memory, const void* context) = nullptr;
  void (*destroy)(void* memory) = nullptr;
  void (*compute)(void* object, unsigned worker) = nullptr;
  bool (*status)(const void* object) = nullptr;  // what it said of its last run; null: true
  std::shared_ptr<const void> context;  // handed to construct: data that all vertices of the class share
  PerfEstimateFunction cycles;          // empty: default_estimate, and the profile says so
  std::optional<CountedInstructions> counted;  // what default_estimate goes by
  std::function<PerfEstimate(const VertexData& vertex)>
      vertex_cycles;             // in place of `cycles`, by the graph's own data
  std::uint64_t code_bytes = 0;  // 0: the device's open constant

  int field_index(std::string_view field) const;  // -1 when there is none
  std::string reported_name() const { return name.substr(0, name.find('#')); }
};

void check_vertex_class(const VertexClass& description);  // throws Error (invalid_argument)

// Stands in for a class without a cost function: what its instructions say; where they are not counted 20
// cycles and 6 an element (a guess: load, work, store, address arithmetic). Of a multi-vertex and a
// supervisor the same work shared by the workers, or not.
PerfEstimate default_estimate(const VertexClass& description, const VertexFields& fields,
                              const Device& device);

}  // namespace superstep::bsp

#pragma GCC visibility pop
