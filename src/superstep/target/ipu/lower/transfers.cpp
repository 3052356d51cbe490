#include "superstep/target/ipu/lower/transfers.h"

#include <cstring>

namespace superstep::target::ipu {

void MicroBatchTransfers::connect(bsp::Engine& engine) {
  for (int replica = 0; replica < chips_.replicas; ++replica) {
    for (std::size_t i = 0; i < inputs_.size(); ++i)
      engine.connect_stream_to_callback(
          inputs_[i].handle, [this, i, replica](void* data) { send(i, replica, data); },
          static_cast<std::uint32_t>(replica));
    for (std::size_t i = 0; i < outputs_.size(); ++i)
      engine.connect_stream_to_callback(
          outputs_[i].handle, [this, i, replica](void* data) { receive(i, replica, data); },
          static_cast<std::uint32_t>(replica));
  }
}

void MicroBatchTransfers::begin(std::span<const Tensor> inputs, std::span<Tensor> outputs) {
  run_inputs_ = inputs;
  run_outputs_ = outputs;
  const auto replicas = static_cast<std::size_t>(chips_.replicas);
  sent_.assign(inputs_.size() * replicas, 0);
  received_.assign(outputs_.size() * replicas, 0);
  sums_.assign(outputs_.size(), {});
  summed_.assign(outputs_.size(), 0);
}

// The micro-batch that a stream moves next, counted over the whole batch.
std::size_t MicroBatchTransfers::part(std::vector<int>& turns, std::size_t stream, int replica) {
  const int turn =
      turns[stream * static_cast<std::size_t>(chips_.replicas) + static_cast<std::size_t>(replica)]++;
  return static_cast<std::size_t>(replica * chips_.accumulate + turn);
}

void MicroBatchTransfers::send(std::size_t stream, int replica, void* data) {
  const std::size_t port = inputs_[stream].port, number = part(sent_, stream, replica);
  const Tensor& whole = run_inputs_[port];
  const bool cut = ports_.input_is_batched[port] && parts() > 1;
  const std::size_t bytes = cut ? whole.byte_count() / parts() : whole.byte_count();
  std::memcpy(data, reinterpret_cast<const std::byte*>(whole.bytes()) + (cut ? number * bytes : 0), bytes);
}

void MicroBatchTransfers::receive(std::size_t stream, int replica, const void* data) {
  const std::size_t port = outputs_[stream].port, number = part(received_, stream, replica);
  Tensor& whole = run_outputs_[port];
  if (parts() == 1) {
    std::memcpy(whole.bytes(), data, whole.byte_count());
    return;
  }
  if (ports_.output_is_batched[port]) {
    const std::size_t bytes = whole.byte_count() / parts();
    std::memcpy(reinterpret_cast<std::byte*>(whole.bytes()) + number * bytes, data, bytes);
    return;
  }
  std::memcpy(whole.bytes(), data, whole.byte_count());
  sums_[stream].resize(static_cast<std::size_t>(whole.element_count()));
  for (std::int64_t i = 0; i < whole.element_count(); ++i)
    sums_[stream][static_cast<std::size_t>(i)] += whole.at(i);
  ++summed_[stream];
}

void MicroBatchTransfers::end() {
  for (std::size_t stream = 0; stream < outputs_.size(); ++stream) {
    if (summed_[stream] < 2) continue;
    Tensor& whole = run_outputs_[outputs_[stream].port];
    for (std::int64_t i = 0; i < whole.element_count(); ++i)
      whole.set(i, sums_[stream][static_cast<std::size_t>(i)] / summed_[stream]);
  }
}

}  // namespace superstep::target::ipu
