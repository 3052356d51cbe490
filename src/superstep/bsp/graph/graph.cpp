#include "superstep/bsp/graph/graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "superstep/base/error.h"
#include "superstep/base/integers.h"
#include "superstep/bsp/graph/graph_data.h"
#include "superstep/bsp/graph/rule_error.h"

namespace superstep::bsp {
namespace {

[[noreturn]] void refuse(const std::string& message, const std::string& where = {},
                         const std::string& hint = {}) {
  throw Error(ErrorCode::invalid_argument, message, where, hint);
}

Device replica_device(Device device, std::uint32_t replicas) {
  check_device(device);
  if (replicas == 0 || device.ipus % replicas != 0)
    refuse(fmt::format("{} replicas cannot share {} chips evenly", replicas, device.ipus), "graph",
           "take a number of replicas that divides the number of chips");
  device.ipus /= replicas;
  return device;
}

std::string place_of(const Tensor& tensor) {
  return fmt::format("tensor {}{}", tensor.name(), tensor.shape_to_string());
}

}  // namespace

Graph::Graph(Device device, std::uint32_t replication_factor)
    : data_(std::make_shared<GraphData>()), device_(replica_device(device, replication_factor)) {
  data_->device = device_;
  data_->replicas = replication_factor;
}

Graph::Graph(std::shared_ptr<GraphData> data, std::vector<std::uint32_t> tiles)
    : data_(std::move(data)),
      tiles_(std::make_shared<std::vector<std::uint32_t>>(std::move(tiles))),
      device_(data_->device) {
  const auto count = static_cast<std::uint32_t>(tiles_->size());
  if (count % device_.ipus == 0) {
    device_.tiles_per_ipu = count / device_.ipus;
  } else {
    device_.ipus = 1;
    device_.tiles_per_ipu = count;
  }
}

const Device& Graph::device() const { return device_; }
std::uint32_t Graph::num_tiles() const {
  return tiles_ ? static_cast<std::uint32_t>(tiles_->size()) : data_->device.num_tiles();
}
std::uint32_t Graph::replication_factor() const { return data_->replicas; }

Tensor Graph::add_variable(Type type, Shape shape, std::string name) {
  if (!is_device_type(type))
    refuse(fmt::format("a tile does not have {}", name_of(type)), "variable " + name, "use float or half");
  const VariableId id(data_->variables.size());
  Variable& variable = data_->variables.emplace_back();
  variable.name = name.empty() ? fmt::format("v{}", id.index()) : std::move(name);
  variable.type = type;
  variable.shape = shape;
  const std::int64_t count = shape.element_count();
  return Tensor(data_.get(), type, std::move(shape), View::whole(id, count));
}

Tensor Graph::add_variable(Type type, Shape shape, VariableMappingMethod method, std::string name) {
  const Tensor tensor = add_variable(type, std::move(shape), std::move(name));
  if (method == VariableMappingMethod::linear) map_linearly(tensor);
  return tensor;
}

Tensor Graph::add_constant(Type type, Shape shape, double value, std::string name) {
  const Tensor tensor = add_variable(type, std::move(shape), std::move(name));
  set_initial_value(tensor, value);
  data_->variables.back().constant = true;
  return tensor;
}

Tensor Graph::add_constant(const superstep::Tensor& values, std::string name) {
  const Tensor tensor = add_variable(values.type(), values.shape(), std::move(name));
  set_initial_value(tensor, values);
  data_->variables.back().constant = true;
  return tensor;
}

// What has no tile of this graph stays without.
void Graph::map_as_far_as(const Tensor& copy, const Tensor& tensor) {
  bool complete = true;
  const TileMapping mapping = tile_mapping(tensor, complete);
  const Tensor flat = copy.flatten();
  for (std::size_t tile = 0; tile < mapping.size(); ++tile)
    for (const Interval& interval : mapping[tile])
      set_tile_mapping(flat.slice(interval), static_cast<std::uint32_t>(tile));
}

Tensor Graph::clone(const Tensor& tensor, std::string name, CloneMethod method) {
  return clone(tensor.element_type(), tensor, std::move(name), method);
}

Tensor Graph::clone(Type type, const Tensor& tensor, std::string name, CloneMethod method) {
  if (name.empty()) name = tensor.name() + "/clone";
  const bool aliases = tensor.contains_aliases();
  if (method == CloneMethod::create_new_order ||
      (method == CloneMethod::preserve_order_unless_aliases && aliases) ||
      (method == CloneMethod::gather_and_preserve_tile_order_and_aliases && !aliases)) {
    const Tensor copy = add_variable(type, tensor.shape(), std::move(name));
    map_as_far_as(copy, tensor);
    return copy;
  }
  // The same expression: every variable that it uses has its counterpart, mapped alike where it is used.
  std::map<VariableId, VariableId> counterpart;
  View view = tensor.view();
  for (const Region& region : tensor.view().regions()) {
    if (counterpart.contains(region.variable)) continue;
    const Variable old = data_->variable(region.variable);
    const VariableId id(data_->variables.size());
    add_variable(type, old.shape, name);
    data_->variables[id.index()].mapping = old.mapping;
    counterpart[region.variable] = id;
  }
  view.rename(counterpart);
  return Tensor(data_.get(), type, tensor.shape(), std::move(view));
}

void Graph::set_initial_value(const Tensor& tensor, double value) {
  tensor.view().for_each_interval([&](VariableId id, std::int64_t begin, std::int64_t end) {
    Variable& variable = data_->variables[id.index()];
    if (variable.constant) refuse("a constant has its value already", place_of(tensor));
    if (!variable.initial) variable.initial.emplace();
    InitialValue& initial = *variable.initial;
    if (begin == 0 && end == variable.count() && !initial.values) {
      initial.splat = value;
    } else {
      if (!initial.values)
        initial.values = superstep::Tensor::full(variable.type, variable.shape, initial.splat);
      for (std::int64_t i = begin; i < end; ++i) initial.values->set(i, value);
    }
    initial.defined.add(IntervalSet({{begin, end}}));
  });
}

void Graph::set_initial_value(const Tensor& tensor, const superstep::Tensor& values) {
  if (values.type() != tensor.element_type() || values.element_count() != tensor.num_elements())
    refuse(fmt::format("initial values are {}{}", name_of(values.type()), to_string(values.shape())),
           place_of(tensor), "as many values, of the same type");
  const std::size_t size = size_in_bytes(values.type());
  for (const Run& run : tensor.view().runs()) {
    Variable& variable = data_->variables[run.variable.index()];
    if (variable.constant) refuse("a constant has its value already", place_of(tensor));
    if (!variable.initial) variable.initial.emplace();
    InitialValue& initial = *variable.initial;
    if (!initial.values)
      initial.values = superstep::Tensor::full(variable.type, variable.shape, initial.splat);
    std::vector<Interval> defined;
    for (std::int64_t i = 0; i < run.length; ++i) {
      const std::int64_t element = run.element + i * run.stride;
      std::copy_n(values.bytes() + static_cast<std::size_t>(run.place + i) * size, size,
                  initial.values->bytes() + static_cast<std::size_t>(element) * size);
      if (run.stride != 1) defined.push_back({element, element + 1});
    }
    if (run.stride == 1) defined.push_back({run.element, run.element + run.length});
    initial.defined.add(IntervalSet(std::move(defined)));
  }
}

std::uint32_t Graph::checked_tile(std::uint32_t tile, const std::string& what) const {
  if (tile >= num_tiles())
    refuse(fmt::format("there is no tile {}: the graph has {}", tile, num_tiles()), what);
  return tiles_ ? (*tiles_)[tile] : tile;
}

std::uint32_t Graph::physical_tile(std::uint32_t tile) const { return checked_tile(tile, "virtual graph"); }

void Graph::set_tile_mapping(const Tensor& tensor, std::uint32_t tile) {
  if (!tensor.valid() || tensor.graph() != data_.get()) refuse("a tensor of another graph", place_of(tensor));
  const std::uint32_t physical = checked_tile(tile, place_of(tensor));
  tensor.view().for_each_interval([&](VariableId id, std::int64_t begin, std::int64_t end) {
    data_->variables[id.index()].mapping.set(begin, end, physical);
  });
}

void Graph::set_tile_mapping(const Tensor& tensor, const TileMapping& mapping) {
  const Tensor flat = tensor.flatten();
  std::int64_t mapped = 0;
  for (std::size_t tile = 0; tile < mapping.size(); ++tile)
    for (const Interval& interval : mapping[tile]) {
      set_tile_mapping(flat.slice(interval), static_cast<std::uint32_t>(tile));
      mapped += interval.size();
    }
  if (mapped != tensor.num_elements())
    refuse(fmt::format("the mapping has {} elements, the tensor {}", mapped, tensor.num_elements()),
           place_of(tensor), "map every element once");
}

void Graph::map_linearly(const Tensor& tensor, std::int64_t minimum, std::int64_t grain) {
  const std::int64_t count = tensor.num_elements(), tiles = num_tiles();
  minimum = std::max<std::int64_t>(minimum, 1);
  grain = std::max<std::int64_t>(grain, 1);
  const std::int64_t share = round_up(std::max(ceil_div(count, tiles), minimum), grain);
  const Tensor flat = tensor.flatten();
  std::uint32_t tile = 0;
  for (std::int64_t begin = 0; begin < count; begin += share)
    set_tile_mapping(flat.slice(begin, std::min(count, begin + share)), tile++);
}

TileMapping Graph::tile_mapping(const Tensor& tensor) const {
  bool complete = true;
  TileMapping mapping = tile_mapping(tensor, complete);
  if (!complete)
    throw RuleError(Rule::mapped, ErrorCode::bad_graph, "some elements have no tile of this graph",
                    place_of(tensor), "call set_tile_mapping");
  return mapping;
}

TileMapping Graph::tile_mapping(const Tensor& tensor, bool& complete) const {
  TileMapping mapping(num_tiles());
  std::vector<std::uint32_t> virtual_tile;
  if (tiles_) {
    virtual_tile.assign(data_->device.num_tiles(), 0xffffffffu);
    for (std::size_t i = 0; i < tiles_->size(); ++i)
      virtual_tile[(*tiles_)[i]] = static_cast<std::uint32_t>(i);
  }
  std::int64_t found = 0;
  const auto put = [&](std::uint32_t tile, Interval interval) {
    if (tiles_) tile = virtual_tile[tile];
    if (tile >= mapping.size()) return;
    found += interval.size();
    std::vector<Interval>& list = mapping[tile];
    if (!list.empty() && list.back().end == interval.begin)
      list.back().end = interval.end;
    else
      list.push_back(interval);
  };
  for (const Run& run : tensor.view().runs()) {
    const IntervalMap& tiles = data_->variable(run.variable).mapping;
    const std::int64_t pieces = run.stride == 1 ? 1 : run.length, length = run.length / pieces;
    for (std::int64_t i = 0; i < pieces; ++i) {
      const std::int64_t element = run.element + i * run.stride;
      for (const MappedInterval& part : tiles.intervals(element, element + length)) {
        const std::int64_t place = run.place + i * length + part.begin - element;
        put(part.tile, {place, place + part.end - part.begin});
      }
    }
  }
  complete = found == tensor.num_elements();
  return mapping;
}

DataStream Graph::add_host_to_device_fifo(std::string handle, Type type, std::int64_t elements,
                                          ReplicatedStreamMode mode) {
  for (const StreamData& stream : data_->streams)
    if (stream.handle == handle) refuse("there is a stream of this name already", "stream " + handle);
  if (!is_device_type(type) || elements < 0)
    refuse("a stream needs a device type and a size", "stream " + handle);
  data_->streams.push_back({std::move(handle), type, elements, true, mode});
  return {StreamId(data_->streams.size() - 1)};
}

DataStream Graph::add_device_to_host_fifo(std::string handle, Type type, std::int64_t elements) {
  const DataStream stream = add_host_to_device_fifo(std::move(handle), type, elements);
  data_->streams.back().to_device = false;
  return stream;
}

RemoteBuffer Graph::add_remote_buffer(std::string handle, Type type, std::int64_t elements,
                                      std::int64_t repeats) {
  for (const RemoteBufferData& buffer : data_->buffers)
    if (buffer.handle == handle) refuse("there is a buffer of this name already", "remote buffer " + handle);
  if (!is_device_type(type) || elements < 1 || repeats < 1)
    refuse("a remote buffer needs a device type, elements and rows", "remote buffer " + handle);
  data_->buffers.push_back({std::move(handle), type, elements, repeats});
  return {RemoteBufferId(data_->buffers.size() - 1)};
}

void Graph::create_host_write(std::string handle, const Tensor& tensor) {
  if (!tensor.is_parallel_writeable())
    throw RuleError(Rule::writeable, ErrorCode::invalid_argument,
                    "the host cannot write a tensor with constants, or with an element at two places",
                    place_of(tensor));
  if (!data_->writes.emplace(handle, HostHandle{tensor, true}).second)
    refuse("there is a host write of this name already", "handle " + handle);
}

void Graph::create_host_read(std::string handle, const Tensor& tensor) {
  if (!data_->reads.emplace(handle, HostHandle{tensor, false}).second)
    refuse("there is a host read of this name already", "handle " + handle);
}

Function Graph::add_function(const Program& program) {
  data_->functions.push_back(program);
  return {FunctionId(data_->functions.size() - 1)};
}

Graph Graph::create_virtual_graph(std::uint32_t tiles_per_ipu) const {
  std::vector<std::uint32_t> tiles;
  if (tiles_per_ipu == 0 || tiles_per_ipu > device_.tiles_per_ipu)
    refuse(fmt::format("{} tiles of each chip's {}", tiles_per_ipu, device_.tiles_per_ipu), "virtual graph");
  for (std::uint32_t ipu = 0; ipu < device_.ipus; ++ipu)
    for (std::uint32_t i = 0; i < tiles_per_ipu; ++i) tiles.push_back(ipu * device_.tiles_per_ipu + i);
  return create_virtual_graph(std::move(tiles));
}

Graph Graph::create_virtual_graph(std::uint32_t first_tile, std::uint32_t end_tile) const {
  if (first_tile >= end_tile || end_tile > num_tiles())
    refuse(fmt::format("tiles [{}, {}) of {}", first_tile, end_tile, num_tiles()), "virtual graph");
  std::vector<std::uint32_t> tiles(end_tile - first_tile);
  std::iota(tiles.begin(), tiles.end(), first_tile);
  return create_virtual_graph(std::move(tiles));
}

Graph Graph::create_virtual_graph(std::vector<std::uint32_t> tiles) const {
  if (tiles.empty()) refuse("no tiles", "virtual graph");
  for (std::uint32_t& tile : tiles) tile = checked_tile(tile, "virtual graph");
  std::vector<std::uint32_t> sorted = tiles;
  std::sort(sorted.begin(), sorted.end());
  if (std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end())
    refuse("a tile stands twice", "virtual graph");
  return Graph(data_, std::move(tiles));
}

}  // namespace superstep::bsp
