// The host's side of a program's streams: which rows of a run's inputs and outputs each transfer moves.
//
// A replica's micro-batches follow each other on every stream. A port with a row a sample is cut into
// replicas and their micro-batches; other inputs go whole to each, other outputs are averaged over all.
#pragma once

#include <span>
#include <vector>

#include "superstep/bsp/engine/engine.h"
#include "superstep/target/ipu/lower/lowering.h"
#include "superstep/target/ports.h"

namespace superstep::target::ipu {

class MicroBatchTransfers {
 public:
  // `ports` must outlive the transfers.
  MicroBatchTransfers(std::vector<HostStream> inputs, std::vector<HostStream> outputs,
                      const BatchedPorts& ports, const Chips& chips)
      : inputs_(std::move(inputs)), outputs_(std::move(outputs)), ports_(ports), chips_(chips) {}

  void connect(bsp::Engine& engine);  // the engine must not outlive the transfers
  void begin(std::span<const Tensor> inputs, std::span<Tensor> outputs);
  void end();  // averages what has no row a sample

 private:
  std::size_t parts() const { return static_cast<std::size_t>(chips_.replicas * chips_.accumulate); }
  std::size_t part(std::vector<int>& turns, std::size_t stream, int replica);
  void send(std::size_t stream, int replica, void* data);
  void receive(std::size_t stream, int replica, const void* data);

  std::vector<HostStream> inputs_, outputs_;
  const BatchedPorts& ports_;
  Chips chips_;
  std::vector<int> sent_, received_;       // transfers of a run so far, by stream and replica
  std::vector<std::vector<double>> sums_;  // by stream, of outputs that are averaged
  std::vector<int> summed_;
  std::span<const Tensor> run_inputs_;
  std::span<Tensor> run_outputs_;
};

}  // namespace superstep::target::ipu
