#include "superstep/poplar/replicas/program_parts.h"

#include <poplar/exceptions.hpp>

namespace poplar::core {
namespace {

void check_same(const Tensor& a, const Tensor& b, const char* what) {
  if (a.data().replication != b.data().replication)
    throw control_program_error(
        fmt::format("{}: one of {} and {} is of a replicated graph: take getNonReplicatedTensor of it", what,
                    describe(a), describe(b)));
}

// A stream of a replicated graph has no meaning for a tensor of the graph around it.
void check_single(const GraphState& state, std::uint32_t id, Replication::Numbers Replication::*numbers,
                  const std::string& what) {
  for (const auto& known : state.replications)
    if (const auto replication = known.lock(); replication && ((*replication).*numbers).contains(id))
      throw control_program_error(what + " is of a replicated graph, and the tensor is not");
}

bsp::DataStream stream_of(const DataStream& stream, const Tensor& tensor, std::size_t replica) {
  if (stream.getId() == NO_ELEMENT) throw control_program_error("a copy of a stream that is not there");
  std::size_t id = stream.getId();
  if (const auto& replication = tensor.data().replication)
    id = replication->streams_of(stream.getId(), stream.handle())[replica];
  else
    check_single(*tensor.data().state, stream.getId(), &Replication::streams,
                 "stream '" + stream.handle() + "'");
  return {bsp::StreamId(id)};
}

bsp::RemoteBuffer buffer_of(const RemoteBuffer& buffer, const Tensor& tensor, std::size_t replica) {
  if (buffer.getId() == NO_ELEMENT)
    throw control_program_error("a copy of a remote buffer that is not there");
  std::size_t id = buffer.getId();
  if (const auto& replication = tensor.data().replication)
    id = replication->buffers_of(buffer.getId(), buffer.handle())[replica];
  else
    check_single(*tensor.data().state, buffer.getId(), &Replication::buffers,
                 "remote buffer '" + buffer.handle() + "'");
  return {bsp::RemoteBufferId(id)};
}

bsp::Tensor offset_of(const Tensor& offset, std::size_t replica) {
  return machine_tensor(offset.data().replication ? part_of(offset, replica) : offset);
}

}  // namespace

bsp::Program copy(const Tensor& source, const Tensor& destination, const std::string& name) {
  check_same(source, destination, "Copy");
  return bsp::Copy(whole_tensor(source), whole_tensor(destination), name);
}

bsp::Program copy_in(const DataStream& stream, const Tensor& destination, const std::string& name) {
  return each_part(destination, name, [&](const Tensor& part, std::size_t replica) {
    return bsp::Copy(stream_of(stream, destination, replica), machine_tensor(part), name);
  });
}

bsp::Program copy_out(const Tensor& source, const DataStream& stream, const std::string& name) {
  return each_part(source, name, [&](const Tensor& part, std::size_t replica) {
    return bsp::Copy(machine_tensor(part), stream_of(stream, source, replica), name);
  });
}

bsp::Program copy_in(const RemoteBuffer& buffer, const Tensor& destination, const Tensor* offset,
                     const std::string& name) {
  if (offset) check_same(destination, *offset, "Copy from a remote buffer");
  return each_part(destination, name, [&](const Tensor& part, std::size_t replica) {
    const bsp::RemoteBuffer from = buffer_of(buffer, destination, replica);
    return offset ? bsp::Copy(from, machine_tensor(part), offset_of(*offset, replica), name)
                  : bsp::Copy(from, machine_tensor(part), name);
  });
}

bsp::Program copy_out(const Tensor& source, const RemoteBuffer& buffer, const Tensor* offset,
                      const std::string& name) {
  if (offset) check_same(source, *offset, "Copy to a remote buffer");
  return each_part(source, name, [&](const Tensor& part, std::size_t replica) {
    const bsp::RemoteBuffer to = buffer_of(buffer, source, replica);
    return offset ? bsp::Copy(machine_tensor(part), to, offset_of(*offset, replica), name)
                  : bsp::Copy(machine_tensor(part), to, name);
  });
}

bsp::Program copy_across(const Tensor& source, const Tensor& destination, std::vector<std::uint32_t> map,
                         const std::string& name) {
  check_same(source, destination, "CrossReplicaCopy");
  if (!source.data().replication)
    return bsp::CrossReplicaCopy(machine_tensor(source), machine_tensor(destination), std::move(map), name);
  const std::size_t replicas = source.data().replication->factor();
  if (map.size() != replicas)
    throw control_program_error(
        fmt::format("CrossReplicaCopy: the map has {} replicas, the graph {}", map.size(), replicas));
  std::vector<bsp::Tensor> from;
  for (const std::uint32_t replica : map) {
    if (replica >= replicas)
      throw control_program_error(fmt::format("CrossReplicaCopy: there is no replica {}", replica));
    from.push_back(machine_tensor(part_of(source, replica)).flatten());
  }
  return bsp::Copy(bsp::concat(from), whole_tensor(destination).flatten(), name);
}

bsp::Program assume_equal(const Tensor& tensor, const std::string& name) {
  const auto& replication = tensor.data().replication;
  return bsp::AssumeEqualAcrossReplicas(whole_tensor(tensor), replication ? replication->factor() : 1, name);
}

bsp::Program Decision::after_check(const bsp::Program& decides) const {
  if (check.empty()) return decides;
  return bsp::Sequence({check, decides});
}

Decision decision(const Tensor& tensor, const std::string& name) {
  if (!tensor.data().replication) return {machine_tensor(tensor), {}};
  return {machine_tensor(part_of(tensor, 0)), assume_equal(tensor, name)};
}

}  // namespace poplar::core
