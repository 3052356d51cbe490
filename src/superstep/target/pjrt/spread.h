// Tensors on the devices that share a program: whole on each, or a piece on each (stablehlo/sharding.h).
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "superstep/target/pjrt/client/client.h"
#include "superstep/target/pjrt/stablehlo/sharding.h"

namespace superstep::target::pjrt {

// Devices of a plug-in, one behind the other.
struct Place {
  const Client* client = nullptr;
  std::size_t first = 0, count = 1;
};

// A tensor on its way to the devices.
class Sent {
 public:
  Sent(const Place& place, const Tensor& tensor, int axis);
  abi::PjrtBuffer* on(std::size_t device) const { return uploads_[device].buffer.get(); }
  // Whether this is that tensor: the same memory, which this keeps from being given to another.
  bool is_of(const Tensor& tensor) const;
  void await() const;             // the tensor may change again
  std::vector<Buffer> buffers();  // awaits; by device

 private:
  const Client* client_;
  Tensor whole_;
  std::vector<Tensor> pieces_;  // what is read until the copies are done
  std::vector<Client::Upload> uploads_;
};

// Tensors on their way back.
class Received {
 public:
  explicit Received(const Place& place) : place_(place) {}
  // `by_device`: the buffers of one tensor. `target` has the tensor's type and shape.
  void add(std::span<const Buffer* const> by_device, Tensor& target, int axis);
  void await(std::string_view doing);

 private:
  struct Piece {
    Tensor piece;
    Tensor* target;
    int axis;
    std::size_t index;
  };
  Place place_;
  std::vector<Event> events_;
  std::vector<Piece> pieces_;
};

}  // namespace superstep::target::pjrt
