#include "superstep/bsp/graph/graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "superstep/base/error.h"
#include "superstep/base/integers.h"
#include "superstep/bsp/graph/fill.h"
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

// Of how many chips the tiles are, where each has as many of them; else 1.
std::uint32_t even_chips(const std::vector<std::uint32_t>& tiles, std::uint32_t tiles_per_chip) {
  std::map<std::uint32_t, std::size_t> tiles_of;
  for (const std::uint32_t tile : tiles) ++tiles_of[tile / tiles_per_chip];
  for (const auto& [chip, count] : tiles_of)
    if (count * tiles_of.size() != tiles.size()) return 1;
  return static_cast<std::uint32_t>(tiles_of.size());
}

std::string place_of(const Tensor& tensor) {
  return fmt::format("tensor {}{}", tensor.name(), tensor.shape_to_string());
}

// Maps the places of the interval: runs are in their order and have all of them.
void map_places(GraphData& data, const std::vector<Run>& runs, const Interval& interval, std::uint32_t tile) {
  auto run = std::upper_bound(runs.begin(), runs.end(), interval.begin,
                              [](std::int64_t place, const Run& r) { return place < r.place + r.length; });
  for (; run != runs.end() && run->place < interval.end; ++run) {
    IntervalMap& mapping = data.variables[run->variable.index()].mapping;
    const std::int64_t from = std::max(interval.begin, run->place) - run->place;
    const std::int64_t to = std::min(interval.end, run->place + run->length) - run->place;
    if (run->stride == 1) {
      mapping.set(run->element + from, run->element + to, tile);
      continue;
    }
    for (std::int64_t i = from; i < to; ++i) {
      const std::int64_t element = run->element + i * run->stride;
      mapping.set(element, element + 1, tile);
    }
  }
}

// The variable's initial value, to be changed.
InitialValue& initial_of(GraphData& data, VariableId id, const Tensor& tensor) {
  Variable& variable = data.variables[id.index()];
  if (variable.constant) refuse("a constant has its value already", place_of(tensor));
  if (!variable.initial) variable.initial.emplace();
  return *variable.initial;
}

superstep::Tensor& values_of(InitialValue& initial, const Variable& variable) {
  if (!initial.values) initial.values = superstep::Tensor::full(variable.type, variable.shape, initial.splat);
  return *initial.values;
}

// Elements that have an initial value now, noted all at once: a set of many is dear to add to.
using DefinedElements = std::map<VariableId, std::vector<Interval>>;

void note(GraphData& data, DefinedElements defined) {
  for (auto& [id, intervals] : defined)
    data.variables[id.index()].initial->defined.add(IntervalSet(std::move(intervals)));
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
  const std::uint32_t chips = even_chips(*tiles_, device_.tiles_per_ipu);
  device_.ipus = chips;
  device_.tiles_per_ipu = static_cast<std::uint32_t>(tiles_->size()) / chips;
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

Tensor Graph::variable(VariableId id) const {
  const Variable& variable = data_->variable(id);
  return Tensor(data_.get(), variable.type, variable.shape, View::whole(id, variable.count()));
}

Tensor Graph::in_variables(const Tensor& tensor, const std::map<VariableId, VariableId>& table) const {
  View view = tensor.view();
  view.rename(table);
  return Tensor(data_.get(), tensor.element_type(), tensor.shape(), std::move(view));
}

Tensor Graph::add_replica_index(std::string name) {
  const Tensor tensor = add_constant(Type::u32, {}, 0, std::move(name));
  data_->variables.back().replica_index = true;
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
  DefinedElements defined;
  const superstep::Tensor one = superstep::Tensor::full(tensor.element_type(), {1}, value);
  const std::size_t size = size_in_bytes(one.type());
  tensor.view().for_each_interval([&](VariableId id, std::int64_t begin, std::int64_t end) {
    const Variable& variable = data_->variables[id.index()];
    InitialValue& initial = initial_of(*data_, id, tensor);
    if (begin == 0 && end == variable.count() && !initial.values) {
      initial.splat = value;
    } else {
      fill_elements(values_of(initial, variable).bytes() + static_cast<std::size_t>(begin) * size,
                    static_cast<std::size_t>(end - begin), one.bytes(), size);
    }
    defined[id].push_back({begin, end});
  });
  note(*data_, std::move(defined));
}

void Graph::set_initial_value(const Tensor& tensor, const superstep::Tensor& values) {
  if (values.type() != tensor.element_type() || values.element_count() != tensor.num_elements())
    refuse(fmt::format("initial values are {}{}", name_of(values.type()), to_string(values.shape())),
           place_of(tensor), "as many values, of the same type");
  const std::size_t size = size_in_bytes(values.type());
  DefinedElements defined;
  for (const Run& run : tensor.view().runs()) {
    superstep::Tensor& all =
        values_of(initial_of(*data_, run.variable, tensor), data_->variables[run.variable.index()]);
    std::vector<Interval>& list = defined[run.variable];
    for (std::int64_t i = 0; i < run.length; ++i) {
      const std::int64_t element = run.element + i * run.stride;
      std::copy_n(values.bytes() + static_cast<std::size_t>(run.place + i) * size, size,
                  all.bytes() + static_cast<std::size_t>(element) * size);
      if (run.stride != 1) list.push_back({element, element + 1});
    }
    if (run.stride == 1) list.push_back({run.element, run.element + run.length});
  }
  note(*data_, std::move(defined));
}

std::uint32_t Graph::checked_tile(std::uint32_t tile, FunctionRef<std::string()> what) const {
  if (tile >= num_tiles())
    refuse(fmt::format("there is no tile {}: the graph has {}", tile, num_tiles()), what());
  return tiles_ ? (*tiles_)[tile] : tile;
}

std::uint32_t Graph::physical_tile(std::uint32_t tile) const {
  return checked_tile(tile, [] { return std::string("virtual graph"); });
}

void Graph::set_tile_mapping(const Tensor& tensor, std::uint32_t tile) {
  if (!tensor.valid() || tensor.graph() != data_.get()) refuse("a tensor of another graph", place_of(tensor));
  const std::uint32_t physical = checked_tile(tile, [&] { return place_of(tensor); });
  tensor.view().for_each_interval([&](VariableId id, std::int64_t begin, std::int64_t end) {
    data_->variables[id.index()].mapping.set(begin, end, physical);
  });
}

void Graph::map_intervals(const Tensor& tensor, const TileMapping& mapping) {
  if (!tensor.valid() || tensor.graph() != data_.get()) refuse("a tensor of another graph", place_of(tensor));
  const Tensor flat = tensor.flatten();
  for (const std::vector<Interval>& list : mapping)
    for (const Interval& interval : list)
      if (interval.begin < 0 || interval.begin > interval.end || interval.end > flat.num_elements())
        refuse(fmt::format("[{}, {}) lies outside", interval.begin, interval.end), place_of(tensor));
  if (!flat.view().is_lines()) {
    for (std::size_t tile = 0; tile < mapping.size(); ++tile)
      for (const Interval& interval : mapping[tile])
        if (interval.size() > 0) set_tile_mapping(flat.slice(interval), static_cast<std::uint32_t>(tile));
    return;
  }
  const std::vector<Run> runs = flat.view().runs();
  for (std::size_t tile = 0; tile < mapping.size(); ++tile) {
    if (mapping[tile].empty()) continue;
    const std::uint32_t physical =
        checked_tile(static_cast<std::uint32_t>(tile), [&] { return place_of(tensor); });
    for (const Interval& interval : mapping[tile]) map_places(*data_, runs, interval, physical);
  }
}

void Graph::set_tile_mapping(const Tensor& tensor, const TileMapping& mapping) {
  std::int64_t mapped = 0;
  for (const std::vector<Interval>& list : mapping) mapped += total_size(list);
  map_intervals(tensor, mapping);
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
  for (std::uint32_t& tile : tiles) tile = physical_tile(tile);
  std::vector<std::uint32_t> sorted = tiles;
  std::sort(sorted.begin(), sorted.end());
  if (std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end())
    refuse("a tile stands twice", "virtual graph");
  return Graph(data_, std::move(tiles));
}

}  // namespace superstep::bsp
