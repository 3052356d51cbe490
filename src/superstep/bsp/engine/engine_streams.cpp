#include "superstep/bsp/engine/engine_streams.h"

#include <fmt/format.h>

#include <cstring>

#include "superstep/base/text.h"
#include "superstep/bsp/graph/rule_error.h"

namespace superstep::bsp {

Streams::Streams(std::span<const StreamData> streams, std::uint32_t replicas) : replicas_(replicas) {
  for (const StreamData& stream : streams) {
    State& state = streams_.emplace_back();
    state.data = stream;
    state.replicas.resize(replicas);
  }
}

Streams::State& Streams::find(std::string_view handle) {
  std::vector<std::string> names;
  for (State& stream : streams_) {
    if (stream.data.handle == handle) return stream;
    names.push_back(stream.data.handle);
  }
  throw Error(ErrorCode::invalid_argument, "there is no such stream", std::string(handle),
              unknown_name_hint(handle, names));
}

void Streams::connect(std::string_view handle, void* begin, void* end, std::uint32_t replica) {
  State& stream = find(handle);
  auto *first = static_cast<std::byte*>(begin), *last = static_cast<std::byte*>(end);
  const auto size = static_cast<std::size_t>(last - first);
  const std::size_t transfer = stream.transfer_bytes();  // of nothing any buffer holds
  if (transfer != 0 && (size == 0 || size % transfer != 0))
    throw Error(ErrorCode::invalid_argument,
                fmt::format("a buffer of {} B does not hold whole transfers of {} B", size, transfer),
                "stream " + stream.data.handle);
  if (replica != all_replicas && replica >= replicas_)
    throw Error(ErrorCode::invalid_argument, fmt::format("there is no replica {}", replica),
                "stream " + stream.data.handle);
  Endpoint& target = replica == all_replicas ? stream.shared : stream.replicas[replica];
  target.ring = {first, last, first};
  target.callback.reset();
}

void Streams::connect(std::string_view handle, std::unique_ptr<StreamCallback> callback,
                      std::uint32_t replica) {
  State& stream = find(handle);
  if (replica >= replicas_)
    throw Error(ErrorCode::invalid_argument, fmt::format("there is no replica {}", replica),
                "stream " + stream.data.handle);
  stream.replicas[replica].callback = std::move(callback);
  stream.replicas[replica].ring = {};
}

Streams::Endpoint& Streams::endpoint(State& stream, std::uint32_t replica) {
  Endpoint& own = stream.replicas[replica];
  if (own.callback || own.ring.connected()) return own;
  if (stream.shared.ring.connected()) return stream.shared;
  throw RuleError(Rule::stream_connected, ErrorCode::invalid_argument,
                  fmt::format("the stream is not connected for replica {}", replica),
                  "stream " + stream.data.handle, "call connect_stream before run");
}

std::byte* Streams::advance(Ring& ring, std::size_t bytes) {
  std::byte* here = ring.next;
  ring.next += bytes;
  if (ring.next == ring.end) ring.next = ring.begin;
  return here;
}

void Streams::read(StreamId id, std::uint32_t replica, bool first_of_turn, std::byte* out) {
  State& stream = streams_[id.index()];
  const std::size_t bytes = stream.transfer_bytes();
  if (bytes == 0) return;
  const bool broadcast = stream.data.mode == ReplicatedStreamMode::broadcast;
  if (broadcast && !first_of_turn) {
    std::memcpy(out, stream.last.data(), bytes);
    return;
  }
  Endpoint& from = endpoint(stream, broadcast ? 0 : replica);
  if (from.callback) {
    if (from.callback->prefetch(out) != StreamCallback::Result::success) from.callback->fetch(out);
    from.callback->complete();
  } else {
    std::memcpy(out, advance(from.ring, bytes), bytes);
  }
  if (broadcast) stream.last.assign(out, out + bytes);
}

void Streams::write(StreamId id, std::uint32_t replica, const std::byte* in) {
  State& stream = streams_[id.index()];
  const std::size_t bytes = stream.transfer_bytes();
  if (bytes == 0) return;
  Endpoint& to = endpoint(stream, replica);
  if (!to.callback) {
    std::memcpy(advance(to.ring, bytes), in, bytes);
    return;
  }
  std::vector<std::byte> copy(in, in + bytes);
  to.callback->fetch(copy.data());
  to.callback->complete();
}

RemoteMemory::RemoteMemory(std::span<const RemoteBufferData> buffers, std::uint32_t replicas)
    : buffers_(buffers.begin(), buffers.end()), data_(buffers.size()) {
  for (std::size_t i = 0; i < buffers.size(); ++i)
    data_[i].assign(replicas, std::vector<std::byte>(row_bytes(RemoteBufferId(i)) *
                                                     static_cast<std::size_t>(buffers[i].repeats)));
}

std::size_t RemoteMemory::row_bytes(RemoteBufferId id) const {
  const RemoteBufferData& buffer = buffers_[id.index()];
  return static_cast<std::size_t>(buffer.elements) * size_in_bytes(buffer.type);
}

std::byte* RemoteMemory::row(RemoteBufferId id, std::uint32_t replica, std::int64_t row) {
  const RemoteBufferData& buffer = buffers_[id.index()];
  if (row < 0 || row >= buffer.repeats)
    throw Error(ErrorCode::invalid_argument, fmt::format("row {} of {}", row, buffer.repeats),
                "remote buffer " + buffer.handle, "make the offset smaller or the buffer longer");
  if (replica >= data_[id.index()].size())
    throw Error(ErrorCode::invalid_argument, fmt::format("there is no replica {}", replica),
                "remote buffer " + buffer.handle);
  return data_[id.index()][replica].data() + static_cast<std::size_t>(row) * row_bytes(id);
}

RemoteBufferId RemoteMemory::find(std::string_view handle) const {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < buffers_.size(); ++i) {
    if (buffers_[i].handle == handle) return RemoteBufferId(i);
    names.push_back(buffers_[i].handle);
  }
  throw Error(ErrorCode::invalid_argument, "there is no such remote buffer", std::string(handle),
              unknown_name_hint(handle, names));
}

}  // namespace superstep::bsp
