// A device graph: variables with their tiles, compute sets of vertices, streams, buffers and functions.
//
// A Graph is a handle: copies, and the virtual graphs made from it, share one set of variables. Names are for
// messages and profiles. Everything is checked as it is added where one call can tell, and the rest when the
// graph is compiled (compile_graph): unmapped elements, unconnected fields, races, reads of what was never
// written.
#pragma once

#include <initializer_list>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "superstep/base/function_ref.h"
#include "superstep/base/tensor.h"
#include "superstep/bsp/compile/device.h"
#include "superstep/bsp/graph/program.h"
#include "superstep/bsp/graph/tensor.h"
#include "superstep/bsp/graph/vertex_class.h"

#pragma GCC visibility push(default)  // installed: what is declared here is exported

namespace superstep::bsp {

struct VertexRef {
  VertexId id;
};

// A field of a vertex, or one vector of a list field.
struct FieldRef {
  VertexRef vertex;
  std::string name;
  int index = -1;
  FieldRef operator[](int i) const { return {vertex, name, i}; }
};
inline FieldRef field(VertexRef vertex, std::string name) { return {vertex, std::move(name)}; }

struct Connection {
  std::string field;
  std::vector<Tensor> tensors;
  Connection(std::string name, Tensor tensor) : field(std::move(name)), tensors{std::move(tensor)} {}
  Connection(std::string name, std::vector<Tensor> list) : field(std::move(name)), tensors(std::move(list)) {}
};

// Intervals of the flattened tensor, a list a tile.
using TileMapping = std::vector<std::vector<Interval>>;

enum class VariableMappingMethod { none, linear };

enum class CloneMethod {
  preserve_order_and_aliases,     // the same expression over new variables
  create_new_order,               // one new variable, row-major
  preserve_order_unless_aliases,  // as the first when no element stands at two places, else as the second
  gather_and_preserve_tile_order_and_aliases
};

class Graph {
 public:
  // The replicas share the chips of the device evenly; throws Error (invalid_argument) when they cannot.
  explicit Graph(Device device, std::uint32_t replication_factor = 1);

  const Device& device() const;  // of this (virtual) graph: of one replica, with its number of tiles
  std::uint32_t num_tiles() const;
  std::uint32_t replication_factor() const;

  // Variables and constants.
  Tensor add_variable(Type type, Shape shape, std::string name = {});
  Tensor add_variable(Type type, Shape shape, VariableMappingMethod method, std::string name = {});
  Tensor add_constant(Type type, Shape shape, double value, std::string name = {});
  Tensor add_constant(const superstep::Tensor& values, std::string name = {});
  Tensor variable(VariableId id) const;  // all of it; it must be there
  // The same expression over other variables of this graph, of the same types and sizes.
  Tensor in_variables(const Tensor& tensor, const std::map<VariableId, VariableId>& table) const;
  Tensor add_replica_index(std::string name = {});  // a constant, one unsigned number: which replica it is in
  Tensor clone(const Tensor& tensor, std::string name = {},
               CloneMethod method = CloneMethod::preserve_order_unless_aliases);
  Tensor clone(Type type, const Tensor& tensor, std::string name = {},
               CloneMethod method = CloneMethod::preserve_order_unless_aliases);
  void set_initial_value(const Tensor& tensor, double value);
  void set_initial_value(const Tensor& tensor, const superstep::Tensor& values);

  void set_tile_mapping(const Tensor& tensor, std::uint32_t tile);
  void set_tile_mapping(const Tensor& tensor, const TileMapping& mapping);
  // The same of some of the places: those in no interval keep what they have.
  void map_intervals(const Tensor& tensor, const TileMapping& mapping);
  // Elements in equal shares, `grain` at a time, at least `minimum` a tile, from tile 0 up.
  void map_linearly(const Tensor& tensor, std::int64_t minimum = 1, std::int64_t grain = 1);
  TileMapping tile_mapping(const Tensor& tensor) const;  // of the places; throws Error where unmapped
  // The same of what lies on tiles of this (virtual) graph; `complete` becomes false where that is not all.
  TileMapping tile_mapping(const Tensor& tensor, bool& complete) const;

  // Compute sets and vertices.
  void add_codelets(std::span<const VertexClass> classes);  // throws Error on a name with two meanings
  void add_codelets(std::initializer_list<VertexClass> classes);
  bool has_codelet(std::string_view name) const;
  ComputeSet add_compute_set(std::string name = {});
  VertexRef add_vertex(ComputeSet set, std::string_view class_name);
  VertexRef add_vertex(ComputeSet set, std::string_view class_name,
                       std::initializer_list<Connection> connections);
  VertexRef add_vertex(ComputeSet set, std::string_view class_name, std::span<const Connection> connections);
  void connect(const FieldRef& field, const Tensor& tensor);
  void connect(const FieldRef& field, std::span<const Tensor> tensors);
  void set_field_size(const FieldRef& field, std::size_t size);  // of a list field, before connecting [i]
  void set_initial_value(const FieldRef& field, double value);
  void set_tile_mapping(VertexRef vertex, std::uint32_t tile);
  void set_perf_estimate(VertexRef vertex, std::uint64_t cycles, std::uint64_t flops = 0);
  void set_perf_estimate(std::string_view class_name, PerfEstimateFunction cycles);
  void set_vertex_estimate(std::string_view class_name,
                           std::function<PerfEstimate(const VertexData& vertex)> cycles);

  // Host and remote memory.
  DataStream add_host_to_device_fifo(std::string handle, Type type, std::int64_t elements,
                                     ReplicatedStreamMode mode = ReplicatedStreamMode::replicate);
  DataStream add_device_to_host_fifo(std::string handle, Type type, std::int64_t elements);
  RemoteBuffer add_remote_buffer(std::string handle, Type type, std::int64_t elements,
                                 std::int64_t repeats = 1);
  void create_host_write(std::string handle, const Tensor& tensor);
  void create_host_read(std::string handle, const Tensor& tensor);

  Function add_function(const Program& program);

  // Views of this graph on some of its tiles: variables are shared, tile numbers count within the view.
  Graph create_virtual_graph(std::uint32_t tiles_per_ipu) const;  // the first tiles of every chip
  Graph create_virtual_graph(std::uint32_t first_tile, std::uint32_t end_tile) const;
  Graph create_virtual_graph(std::vector<std::uint32_t> tiles) const;
  std::uint32_t physical_tile(std::uint32_t tile) const;  // in the graph of one replica

  const GraphData& data() const { return *data_; }

 private:
  Graph(std::shared_ptr<GraphData> data, std::vector<std::uint32_t> tiles);
  void map_as_far_as(const Tensor& copy, const Tensor& tensor);
  // `what` is asked for its name where the tile is not there.
  std::uint32_t checked_tile(std::uint32_t tile, FunctionRef<std::string()> what) const;

  std::shared_ptr<GraphData> data_;
  std::shared_ptr<const std::vector<std::uint32_t>> tiles_;  // null: all of them
  Device device_;                                            // with the tiles of this view
};

}  // namespace superstep::bsp

#pragma GCC visibility pop
