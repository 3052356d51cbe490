// omp_target_alloc and its kin. A device address is the host address of what stands for the memory: a pointer
// that a program keeps means the same on both sides, and the table of mapped arrays finds it.
#include <cstdlib>
#include <cstring>

#include "superstep/openmp/program/device.h"

namespace superstep::openmp {

void* ProgramDevice::allocate(std::size_t bytes) {
  void* const memory = bytes > 0 ? std::calloc(bytes, 1) : nullptr;
  if (memory) allocated_[memory] = bytes;
  return memory;
}

void ProgramDevice::release(void* memory) {
  const auto found = allocated_.find(memory);
  if (found == allocated_.end()) {
    if (!memory) return;
    throw Error(ErrorCode::invalid_argument, "this memory was not given by omp_target_alloc",
                "omp_target_free");
  }
  if (offload_.present(memory)) offload_.leave(memory, Leave::remove);
  allocated_.erase(found);
  std::free(memory);
}

// Memory of the device gets its type from the first region that works on it.
void ProgramDevice::adopt(const sst_item& item) {
  if (!(item.kind & sst_look_up) || !(item.kind & sst_used) || offload_.mapped(item.address)) return;
  const auto* address = static_cast<const std::byte*>(item.address);
  for (const auto& [memory, bytes] : allocated_) {
    auto* begin = static_cast<std::byte*>(memory);
    if (address < begin || address >= begin + bytes) continue;
    const ElementType type = element_type_of_item(item);
    offload_.enter(begin, item.name, type, static_cast<std::int64_t>(bytes / size_in_bytes(type)), Enter::to);
    return;
  }
}

namespace {

struct Piece {
  std::int64_t begin, end;  // elements
};
Piece piece_of(const Offload::Mapped& array, const std::byte* begin, std::size_t bytes) {
  const auto first = static_cast<std::size_t>(begin - static_cast<const std::byte*>(array.host));
  const std::size_t size = size_in_bytes(array.type);
  if (first + bytes > array.bytes())
    throw Error(ErrorCode::invalid_argument, "the copy goes beyond " + array.name, "omp_target_memcpy");
  return {static_cast<std::int64_t>(first / size),
          static_cast<std::int64_t>((first + bytes + size - 1) / size)};
}

}  // namespace

void ProgramDevice::copy(void* to, const void* from, std::size_t bytes, bool to_host, bool from_host) {
  const auto* source = static_cast<const std::byte*>(from);
  auto* target = static_cast<std::byte*>(to);
  std::vector<std::byte> data(bytes);
  const auto there = from_host ? std::nullopt : offload_.mapped(source);
  if (there) {  // the host's own memory there is not to change
    auto* host = static_cast<std::byte*>(there->host);
    const Piece piece = piece_of(*there, source, bytes);
    const std::vector<std::byte> before(host, host + there->bytes());
    offload_.update_from(there->host, piece.begin, piece.end);
    std::memcpy(data.data(), source, bytes);
    if (!allocated_.contains(there->host)) std::memcpy(host, before.data(), before.size());
  } else {
    std::memcpy(data.data(), source, bytes);
  }
  const auto goal = to_host ? std::nullopt : offload_.mapped(target);
  if (!goal) {
    std::memcpy(target, data.data(), bytes);
    return;
  }
  // Elements at the ends may be of the device still: they are fetched, changed in part, and sent.
  auto* host = static_cast<std::byte*>(goal->host);
  const Piece piece = piece_of(*goal, target, bytes);
  const std::vector<std::byte> before(host, host + goal->bytes());
  offload_.update_from(goal->host, piece.begin, piece.end);
  std::memcpy(target, data.data(), bytes);
  offload_.update_to(goal->host, piece.begin, piece.end);
  if (!allocated_.contains(goal->host)) std::memcpy(host, before.data(), before.size());
}

}  // namespace superstep::openmp
