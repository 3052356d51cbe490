#include "superstep/target/pjrt/spread.h"

#include <cstring>

namespace superstep::target::pjrt {
namespace {

// Where the elements of one piece are in the whole: `count` runs of `bytes`, `stride` apart.
struct Runs {
  std::size_t count = 1, bytes = 0, stride = 0, begin = 0;
};

Runs runs_of(const Tensor& whole, int axis, std::size_t pieces, std::size_t index) {
  const Shape& shape = whole.shape();
  Runs runs;
  for (int outer = 0; outer < axis; ++outer) runs.count *= static_cast<std::size_t>(shape[outer]);
  runs.stride = runs.count > 0 ? whole.byte_count() / runs.count : 0;
  runs.bytes = runs.stride / pieces;
  runs.begin = index * runs.bytes;
  return runs;
}

void cut(const Tensor& whole, const Runs& runs, Tensor& piece) {
  for (std::size_t i = 0; i < runs.count; ++i)
    std::memcpy(piece.bytes() + i * runs.bytes, whole.bytes() + runs.begin + i * runs.stride, runs.bytes);
}

void join(const Tensor& piece, const Runs& runs, Tensor& whole) {
  for (std::size_t i = 0; i < runs.count; ++i)
    std::memcpy(whole.bytes() + runs.begin + i * runs.stride, piece.bytes() + i * runs.bytes, runs.bytes);
}

}  // namespace

Sent::Sent(const Place& place, const Tensor& tensor, int axis) : client_(place.client), whole_(tensor) {
  for (std::size_t i = 0; i < place.count; ++i) {
    Tensor piece = tensor;
    if (axis != stablehlo::whole) {
      piece =
          Tensor(tensor.type(), stablehlo::piece_shape(tensor.shape(), axis, static_cast<int>(place.count)));
      cut(tensor, runs_of(tensor, axis, place.count, i), piece);
    }
    pieces_.push_back(piece);
    uploads_.push_back(client_->upload(piece, place.first + i));
  }
}

bool Sent::is_of(const Tensor& tensor) const {
  return whole_.type() == tensor.type() && whole_.shape() == tensor.shape() &&
         whole_.bytes() == tensor.bytes();
}

void Sent::await() const {
  for (const Client::Upload& upload : uploads_) client_->await(upload.done, "copying to the device");
}

std::vector<Buffer> Sent::buffers() {
  await();
  std::vector<Buffer> buffers;
  for (Client::Upload& upload : uploads_) buffers.push_back(std::move(upload.buffer));
  return buffers;
}

void Received::add(std::span<const Buffer* const> by_device, Tensor& target, int axis) {
  if (target.element_count() == 0) return;
  if (axis == stablehlo::whole) {
    events_.push_back(place_.client->download(*by_device.front(), target));
    return;
  }
  for (std::size_t i = 0; i < place_.count; ++i) {
    pieces_.push_back(
        {Tensor(target.type(), stablehlo::piece_shape(target.shape(), axis, static_cast<int>(place_.count))),
         &target, axis, i});
    events_.push_back(place_.client->download(*by_device[i], pieces_.back().piece));
  }
}

void Received::await(std::string_view doing) {
  for (const Event& event : events_) place_.client->await(event, doing);
  for (const Piece& piece : pieces_)
    join(piece.piece, runs_of(*piece.target, piece.axis, place_.count, piece.index), *piece.target);
  events_.clear();
  pieces_.clear();
}

}  // namespace superstep::target::pjrt
