// Variables, constants, streams and handles of the host. Where things lie: graph_mapping.cpp.
#include <poplar/Graph.hpp>

#include "superstep/poplar/core/convert.h"
#include "superstep/poplar/core/guard.h"
#include "superstep/poplar/core/handles.h"
#include "superstep/poplar/core/types.h"
#include "superstep/poplar/replicas/replicas.h"

namespace poplar {
namespace {

using core::guarded;
using core::machine_shape;
using core::machine_type;
using core::single_tensor;

Tensor tensor_of(const core::GraphHandle& handle, core::bsp::Tensor tensor, const Type& type) {
  for (const core::bsp::Region& region : tensor.view().regions())
    handle.state->types[region.variable.index()] = type;
  return Tensor(
      std::make_shared<const core::TensorData>(core::TensorData{handle.state, std::move(tensor), type}));
}

std::string constant_name(const DebugContext& context) {
  return context.getPathName().empty() ? std::string("<const>") : context.getPathName();
}

}  // namespace

Graph::Graph() = default;
Graph::Graph(const Target& target, replication_factor replicas) {
  try {
    auto state = std::make_shared<core::GraphState>(target.data().device, replicas);
    core::TargetData own = target.data();
    own.device = state->graph.device();
    core::bsp::Graph machine = state->graph;
    handle_ = std::make_unique<core::GraphHandle>(
        core::GraphHandle{std::move(state), std::move(machine),
                          Target(std::make_shared<const core::TargetData>(std::move(own)))});
  } catch (const superstep::Error& error) {
    throw graph_replication_error(error.what());
  }
}
Graph::Graph(const Device& device, replication_factor replicas) : Graph(device.getTarget(), replicas) {}
Graph::Graph(std::unique_ptr<core::GraphHandle> handle) : handle_(std::move(handle)) {}
Graph::~Graph() = default;
Graph::Graph(Graph&&) noexcept = default;
Graph& Graph::operator=(Graph&&) noexcept = default;

core::GraphHandle& Graph::handle() const {
  if (!handle_) throw poplar_error("a graph without a target: make it of a Target or a Device");
  return *handle_;
}

const Target& Graph::getTarget() const { return handle().target; }
unsigned Graph::getReplicationFactor() const {
  return handle().replicas ? static_cast<unsigned>(handle().replicas->graphs().size())
                           : handle().graph.replication_factor();
}

Tensor Graph::addVariable(const Type& type, ArrayRef<std::size_t> shape, const DebugContext& context) {
  return addVariable(type, shape, VariableMappingMethod::NONE, context);
}

Tensor Graph::addVariable(const Type& type, ArrayRef<std::size_t> shape, VariableMappingMethod method,
                          const DebugContext& context) {
  if (core::Replicas* replicas = handle().replicas.get())
    return replicas->tensor(
        [&](Graph& graph, std::size_t) { return graph.addVariable(type, shape, method, context); });
  return guarded([&] {
    core::bsp::Tensor tensor =
        handle().graph.add_variable(machine_type(type), machine_shape(shape), context.getPathName());
    if (method == VariableMappingMethod::LINEAR) handle().graph.map_linearly(tensor);
    return tensor_of(handle(), std::move(tensor), type);
  });
}

void Graph::checkNumberOfValues(ArrayRef<std::size_t> shape, std::size_t count) {
  std::size_t wanted = 1;
  for (const std::size_t extent : shape) wanted *= extent;
  if (count < wanted)
    throw tensor_creation_error(fmt::format("{} values for a tensor of shape {{{}}}, which takes {}", count,
                                            fmt::join(shape, ","), wanted));
}

Tensor Graph::addConstant(const Type& type, ArrayRef<std::size_t> shape, const void* values,
                          const TypeTraits& traits, bool broadcast, const DebugContext& context) {
  if (core::Replicas* replicas = handle().replicas.get())
    return replicas->tensor([&](Graph& graph, std::size_t) {
      return graph.addConstant(type, shape, values, traits, broadcast, context);
    });
  return guarded([&] {
    const std::string name = constant_name(context);
    const std::string who = fmt::format("constant '{}' of type {}", name, type.toString());
    if (broadcast)
      if (const auto splat = core::device_splat(type, values, traits, who))
        return tensor_of(handle(),
                         handle().graph.add_constant(machine_type(type), machine_shape(shape), *splat, name),
                         type);
    return tensor_of(
        handle(),
        handle().graph.add_constant(
            core::device_values(type, machine_shape(shape), values, traits, broadcast, who), name),
        type);
  });
}

Tensor Graph::addReplicationIndexConstant(const DebugContext& context) {
  if (core::Replicas* replicas = handle().replicas.get())
    return replicas->tensor([&](Graph& graph, std::size_t replica) {
      return graph.addConstant(UNSIGNED_INT, {}, static_cast<unsigned>(replica), context);
    });
  return guarded([&] {
    return tensor_of(handle(), handle().graph.add_replica_index(constant_name(context)), UNSIGNED_INT);
  });
}

Tensor Graph::constantOfBits(const Type& type, ArrayRef<std::size_t> shape, const std::uint16_t* bits,
                             bool broadcast, const DebugContext& context) {
  std::size_t count = 1;
  if (!broadcast)
    for (const std::size_t extent : shape) count *= extent;
  std::vector<float> values(count);
  copyDeviceHalfToFloat(getTarget(), bits, values.data(), count);
  return addConstant(type, shape, values.data(), TypeTraits::make<float>(), broadcast, context);
}

Tensor Graph::addConstantHalf(const Type& type, ArrayRef<std::size_t> shape, const std::uint16_t* bits,
                              const DebugContext& context) {
  return constantOfBits(type, shape, bits, false, context);
}
Tensor Graph::addConstantHalf(const Type& type, ArrayRef<std::size_t> shape, std::uint16_t bits,
                              const DebugContext& context) {
  return constantOfBits(type, shape, &bits, true, context);
}

Tensor Graph::clone(const Type& type, const Tensor& tensor, const DebugContext& context,
                    TensorCloneMethod method) {
  if (core::Replicas* replicas = handle().replicas.get())
    return replicas->tensor([&](Graph& graph, std::size_t replica) {
      return graph.clone(type, replicas->part(tensor, replica), context, method);
    });
  using From = TensorCloneMethod;
  using To = core::bsp::CloneMethod;
  const To how = method == From::PRESERVE_ORDER_AND_ALIASES ? To::preserve_order_and_aliases
                 : method == From::CREATE_NEW_ORDER         ? To::create_new_order
                 : method == From::PRESERVE_ORDER_UNLESS_ALIASES
                     ? To::preserve_order_unless_aliases
                     : To::gather_and_preserve_tile_order_and_aliases;
  return guarded([&] {
    return tensor_of(
        handle(), handle().graph.clone(machine_type(type), single_tensor(tensor), context.getPathName(), how),
        type);
  });
}

Tensor Graph::clone(const Tensor& tensor, const DebugContext& context, TensorCloneMethod method) {
  return clone(tensor.elementType(), tensor, context, method);
}

void Graph::setInitialValue(const Tensor& tensor, const void* values, const TypeTraits& traits,
                            bool broadcast) {
  if (core::Replicas* replicas = handle().replicas.get())
    return replicas->each([&](Graph& graph, std::size_t replica) {
      graph.setInitialValue(replicas->part(tensor, replica), values, traits, broadcast);
    });
  guarded([&] {
    const core::bsp::Tensor& view = single_tensor(tensor);
    const std::string who = "initial value of " + core::describe(tensor);
    if (broadcast)
      if (const auto splat = core::device_splat(tensor.elementType(), values, traits, who))
        return handle().graph.set_initial_value(view, *splat);
    handle().graph.set_initial_value(
        view, core::device_values(tensor.elementType(), view.shape(), values, traits, broadcast, who));
  });
}

void Graph::setInitialValueHalf(const Tensor& tensor, ArrayRef<std::uint16_t> bits) {
  checkNumberOfValues(ArrayRef<std::size_t>(tensor.numElements()), bits.size());
  std::vector<float> values(bits.size());
  copyDeviceHalfToFloat(getTarget(), bits.data(), values.data(), bits.size());
  setInitialValue(tensor, values.data(), TypeTraits::make<float>(), false);
}

// The host sees the parts of all replicas of a replicated graph, one after the other.
void Graph::createHostWrite(StringRef name, const Tensor& tensor, bool) {
  const Tensor seen = handle().replicas ? getNonReplicatedTensor(tensor) : tensor;
  guarded([&] { handle().graph.create_host_write(name, single_tensor(seen)); });
}
void Graph::createHostRead(StringRef name, const Tensor& tensor, bool) {
  const Tensor seen = handle().replicas ? getNonReplicatedTensor(tensor) : tensor;
  guarded([&] { handle().graph.create_host_read(name, single_tensor(seen)); });
}

DataStream Graph::addHostToDeviceFIFO(StringRef name, const Type& type, std::size_t elements,
                                      ReplicatedStreamMode mode, const OptionFlags& options) {
  if (core::Replicas* replicas = handle().replicas.get())
    return replicas->each([&](Graph& graph, std::size_t replica) {
      return graph.addHostToDeviceFIFO(core::name_in_replica(name, replica), type, elements, mode, options);
    });
  return guarded([&] {
    const auto how = mode == ReplicatedStreamMode::BROADCAST ? core::bsp::ReplicatedStreamMode::broadcast
                                                             : core::bsp::ReplicatedStreamMode::replicate;
    const core::bsp::DataStream stream = handle().graph.add_host_to_device_fifo(
        name, machine_type(type), static_cast<std::int64_t>(elements), how);
    return DataStream(static_cast<std::uint32_t>(stream.id.index()), name);
  });
}

DataStream Graph::addDeviceToHostFIFO(StringRef name, const Type& type, std::size_t elements,
                                      const OptionFlags& options) {
  if (core::Replicas* replicas = handle().replicas.get())
    return replicas->each([&](Graph& graph, std::size_t replica) {
      return graph.addDeviceToHostFIFO(core::name_in_replica(name, replica), type, elements, options);
    });
  return guarded([&] {
    const core::bsp::DataStream stream =
        handle().graph.add_device_to_host_fifo(name, machine_type(type), static_cast<std::int64_t>(elements));
    return DataStream(static_cast<std::uint32_t>(stream.id.index()), name);
  });
}

RemoteBuffer Graph::addRemoteBuffer(StringRef name, const Type& type, std::size_t elements,
                                    std::size_t repeats, bool rearrange, bool optimise) {
  if (core::Replicas* replicas = handle().replicas.get())
    return replicas->each([&](Graph& graph, std::size_t replica) {
      return graph.addRemoteBuffer(core::name_in_replica(name, replica), type, elements, repeats, rearrange,
                                   optimise);
    });
  return guarded([&] {
    const core::bsp::RemoteBuffer buffer = handle().graph.add_remote_buffer(
        name, machine_type(type), static_cast<std::int64_t>(elements), static_cast<std::int64_t>(repeats));
    return RemoteBuffer(static_cast<std::uint32_t>(buffer.id.index()), name, elements, repeats);
  });
}

Function Graph::addFunction(const program::Program& program) {
  return Function(static_cast<std::uint32_t>(handle().graph.add_function(program.data().get()).id.index()));
}

}  // namespace poplar
