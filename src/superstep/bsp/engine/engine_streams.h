// What the host has connected to the streams, and the remote buffers.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "superstep/bsp/compile/executable_data.h"
#include "superstep/bsp/engine/stream_callback.h"

namespace superstep::bsp {

class Streams {
 public:
  Streams(std::span<const StreamData> streams, std::uint32_t replicas);

  void connect(std::string_view handle, void* begin, void* end, std::uint32_t replica);
  void connect(std::string_view handle, std::unique_ptr<StreamCallback> callback, std::uint32_t replica);

  // One transfer. Replicas of a broadcast stream get the same data: only the first of a turn fetches.
  void read(StreamId id, std::uint32_t replica, bool first_of_turn, std::byte* out);
  void write(StreamId id, std::uint32_t replica, const std::byte* in);

 private:
  struct Ring {
    std::byte *begin = nullptr, *end = nullptr, *next = nullptr;
    bool connected() const { return begin != nullptr; }
  };
  struct Endpoint {
    Ring ring;
    std::unique_ptr<StreamCallback> callback;
  };
  struct State {
    StreamData data;
    std::vector<Endpoint> replicas;
    Endpoint shared;              // one ring for all replicas
    std::vector<std::byte> last;  // of a broadcast
    std::size_t transfer_bytes() const {
      return static_cast<std::size_t>(data.elements) * size_in_bytes(data.type);
    }
  };
  State& find(std::string_view handle);
  Endpoint& endpoint(State& stream, std::uint32_t replica);
  std::byte* advance(Ring& ring, std::size_t bytes);

  std::vector<State> streams_;
  std::uint32_t replicas_;
};

class RemoteMemory {
 public:
  RemoteMemory(std::span<const RemoteBufferData> buffers, std::uint32_t replicas);
  // The bytes of a row; throws Error (invalid_argument) for a row that is not there.
  std::byte* row(RemoteBufferId id, std::uint32_t replica, std::int64_t row);
  RemoteBufferId find(std::string_view handle) const;
  std::size_t row_bytes(RemoteBufferId id) const;

 private:
  std::vector<RemoteBufferData> buffers_;
  std::vector<std::vector<std::vector<std::byte>>> data_;  // buffer, replica
};

}  // namespace superstep::bsp
