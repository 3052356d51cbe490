// What the host and a running program hand to each other.
#include <poplar/Engine.hpp>
#include <poplar/exceptions.hpp>

#include "superstep/bsp/compile/executable_data.h"
#include "superstep/poplar/core/engine_data.h"
#include "superstep/poplar/core/guard.h"
#include "superstep/poplar/replicas/replicas.h"

namespace poplar {

StreamCallback::~StreamCallback() = default;

namespace {

namespace bsp = superstep::bsp;

class Adapter : public bsp::StreamCallback {
 public:
  explicit Adapter(std::unique_ptr<poplar::StreamCallback> callback) : callback_(std::move(callback)) {}
  Result prefetch(void* data) override {
    return callback_->prefetch(data) == poplar::StreamCallback::Result::Success ? Result::success
                                                                                : Result::not_available;
  }
  void fetch(void* data) override { callback_->fetch(data); }
  void complete() override { callback_->complete(); }
  void invalidate_prefetched() override { callback_->invalidatePrefetched(); }

 private:
  std::unique_ptr<poplar::StreamCallback> callback_;
};

template <class F>
void connecting(F&& connect) {
  try {
    connect();
  } catch (const superstep::Error& error) {
    throw stream_connection_error(error.what());
  }
}

// The machine's data of the stream of this name; throws stream_connection_error when there is none.
const bsp::StreamData& stream_named(const core::EngineData& data, const std::string& handle) {
  for (const bsp::StreamData& stream : data.executable->executable.data().streams)
    if (stream.handle == handle) return stream;
  throw stream_connection_error("there is no stream '" + handle + "'");
}

// Bytes that all transfers of one step take, of so many replicas.
std::size_t bytes_of_step(const bsp::StreamData& stream, std::size_t replicas) {
  return static_cast<std::size_t>(stream.elements) * size_in_bytes(stream.type) *
         (stream.mode == bsp::ReplicatedStreamMode::broadcast ? 1 : replicas);
}

std::size_t bytes_between(const void* begin, const void* end) {
  return static_cast<std::size_t>(static_cast<const std::byte*>(end) - static_cast<const std::byte*>(begin));
}

// Of all replicas; none where there is no such handle, which is refused where it is used.
std::size_t bytes_of_handle(const core::EngineData& data,
                            const std::map<std::string, bsp::LoweredHandle, std::less<>>& handles,
                            const std::string& name) {
  const auto found = handles.find(name);
  if (found == handles.end()) return 0;
  return static_cast<std::size_t>(found->second.count) * size_in_bytes(found->second.type) *
         data.executable->executable.profile().replicas;
}

// What of the caller's memory is moved: it may be larger than the handle's tensor, where that is known.
std::size_t bytes_moved(std::size_t given, std::size_t of_handle) {
  return of_handle == 0 ? given : std::min(given, of_handle);
}

// Of how many replicas of a replicated graph there is a stream of this name: 1 where none made it.
std::size_t replicas_of_stream(const core::EngineData& data, const std::string& handle) {
  const auto& streams = data.executable->executable.data().streams;
  std::size_t replicas = 1;
  while (std::ranges::any_of(streams, [&](const bsp::StreamData& stream) {
    return stream.handle == core::name_in_replica(handle, replicas);
  }))
    ++replicas;
  return replicas;
}

// The stream of one replica, and its number among those of the machine.
std::pair<std::string, unsigned> stream_of_replica(const core::EngineData& data, const std::string& handle,
                                                   unsigned replica) {
  const std::size_t replicas = replicas_of_stream(data, handle);
  if (replicas == 1) return {handle, replica};
  if (replica >= replicas)
    throw stream_connection_error(
        fmt::format("there is no replica {}: stream '{}' has {}", replica, handle, replicas));
  return {core::name_in_replica(handle, replica), 0};
}

// A buffer that the replicas' transfers go through in turn.
struct SharedRing {
  std::byte *begin, *end, *next;
  bool to_device;
  std::size_t bytes;

  void transfer(void* data, bool goes_on) {
    if (to_device)
      std::memcpy(data, next, bytes);
    else
      std::memcpy(next, data, bytes);
    if (!goes_on) return;
    next += bytes;
    if (next == end) next = begin;
  }
};

void need_loaded(const core::EngineData& data, const char* what, const std::string& handle) {
  if (!data.loaded)
    throw application_runtime_error(fmt::format("{} of '{}' before load: call load(device)", what, handle));
}

}  // namespace

void Engine::readTensor(StringRef handle, void* begin, void* end) {
  need_loaded(*data_, "readTensor", handle);
  const std::size_t bytes = bytes_moved(
      bytes_between(begin, end), bytes_of_handle(*data_, data_->executable->executable.data().reads, handle));
  core::guarded_running([&] { data_->engine.read_tensor(handle.cloneAsString(), begin, bytes); });
}

void Engine::writeTensor(StringRef handle, const void* begin, const void* end) {
  need_loaded(*data_, "writeTensor", handle);
  const std::size_t bytes =
      bytes_moved(bytes_between(begin, end),
                  bytes_of_handle(*data_, data_->executable->executable.data().writes, handle));
  core::guarded_running([&] { data_->engine.write_tensor(handle.cloneAsString(), begin, bytes); });
}

void Engine::readTensor(StringRef handle, void* begin) {
  const std::size_t bytes = bytes_of_handle(*data_, data_->executable->executable.data().reads, handle);
  readTensor(handle, begin, static_cast<std::byte*>(begin) + bytes);
}

void Engine::writeTensor(StringRef handle, const void* begin) {
  const std::size_t bytes = bytes_of_handle(*data_, data_->executable->executable.data().writes, handle);
  writeTensor(handle, begin, static_cast<const std::byte*>(begin) + bytes);
}

void Engine::connectStream(StringRef handle, void* begin, void* end) {
  const std::size_t replicas = replicas_of_stream(*data_, handle);
  if (replicas == 1)
    return connecting([&] { data_->engine.connect_stream(handle.cloneAsString(), begin, end); });
  const bsp::StreamData& stream = stream_named(*data_, handle);
  const bool shared = stream.mode == bsp::ReplicatedStreamMode::broadcast;
  auto* first = static_cast<std::byte*>(begin);
  auto ring = std::make_shared<SharedRing>(
      SharedRing{first, static_cast<std::byte*>(end), first, stream.to_device, bytes_of_step(stream, 1)});
  const std::size_t size = bytes_between(begin, end), turn = ring->bytes * (shared ? 1 : replicas);
  if (size == 0 || size % turn != 0)
    throw stream_connection_error(
        fmt::format("stream '{}': a buffer of {} B does not hold whole transfers of {} B, of {} replicas",
                    handle.cloneAsString(), size, turn, replicas));
  for (std::size_t replica = 0; replica < replicas; ++replica)
    connectStreamToCallback(
        handle, static_cast<unsigned>(replica),
        [ring, goes_on = !shared || replica + 1 == replicas](void* data) { ring->transfer(data, goes_on); });
}

void Engine::connectStream(StringRef handle, void* begin) {
  const std::size_t replicas =
      data_->executable->executable.profile().replicas * replicas_of_stream(*data_, handle);
  const std::size_t bytes = bytes_of_step(stream_named(*data_, handle), replicas);
  connectStream(handle, begin, static_cast<std::byte*>(begin) + bytes);
}

void Engine::connectStream(StringRef handle, unsigned replica, void* begin, void* end) {
  const auto [name, number] = stream_of_replica(*data_, handle, replica);
  connecting([&] { data_->engine.connect_stream(name, begin, end, number); });
}

void Engine::connectStream(StringRef handle, unsigned replica, void* begin) {
  const std::size_t bytes = bytes_of_step(stream_named(*data_, handle), 1);
  connectStream(handle, replica, begin, static_cast<std::byte*>(begin) + bytes);
}

void Engine::connectStreamToCallback(StringRef handle, std::unique_ptr<StreamCallback> callback) {
  connectStreamToCallback(handle, 0, std::move(callback));
}
void Engine::connectStreamToCallback(StringRef handle, const std::function<void(void*)>& callback) {
  connectStreamToCallback(handle, 0, callback);
}
void Engine::connectStreamToCallback(StringRef handle, unsigned replica,
                                     std::unique_ptr<StreamCallback> callback) {
  const auto [name, number] = stream_of_replica(*data_, handle, replica);
  connecting([&] {
    data_->engine.connect_stream_to_callback(name, std::make_unique<Adapter>(std::move(callback)), number);
  });
}
void Engine::connectStreamToCallback(StringRef handle, unsigned replica,
                                     const std::function<void(void*)>& callback) {
  const auto [name, number] = stream_of_replica(*data_, handle, replica);
  connecting([&] { data_->engine.connect_stream_to_callback(name, callback, number); });
}

namespace {

// As stream_of_replica.
std::pair<std::string, unsigned> buffer_of_replica(const core::EngineData& data, const std::string& handle,
                                                   unsigned replica) {
  const std::string name = core::name_in_replica(handle, replica);
  for (const bsp::RemoteBufferData& buffer : data.executable->executable.data().buffers)
    if (replica > 0 && buffer.handle == name) return {name, 0};
  return {handle, replica};
}

std::size_t row_bytes(const core::EngineData& data, const std::string& handle) {
  for (const bsp::RemoteBufferData& buffer : data.executable->executable.data().buffers)
    if (buffer.handle == handle)
      return static_cast<std::size_t>(buffer.elements) * size_in_bytes(buffer.type);
  throw application_runtime_error("there is no remote buffer '" + handle + "'");
}

}  // namespace

void Engine::copyToRemoteBuffer(const void* from, StringRef handle, std::uint64_t row, unsigned replica) {
  const auto [name, number] = buffer_of_replica(*data_, handle, replica);
  core::guarded_running([&] {
    data_->engine.copy_to_remote_buffer(from, row_bytes(*data_, name), name, static_cast<std::int64_t>(row),
                                        number);
  });
}

void Engine::copyFromRemoteBuffer(StringRef handle, void* to, std::uint64_t row, unsigned replica) {
  const auto [name, number] = buffer_of_replica(*data_, handle, replica);
  core::guarded_running([&] {
    data_->engine.copy_from_remote_buffer(name, to, row_bytes(*data_, name), static_cast<std::int64_t>(row),
                                          number);
  });
}

std::vector<std::string> Engine::listStreams() const {
  std::vector<std::string> names;
  for (const bsp::StreamData& stream : data_->executable->executable.data().streams)
    names.push_back(stream.handle);
  return names;
}

}  // namespace poplar
