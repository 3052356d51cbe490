#include "superstep/run/ranks/shared/segments.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <chrono>
#include <cstring>

namespace superstep::run {
namespace {

// A process number may mean another process in another container: what was mapped must hold what its rank
// wrote.
std::int64_t token_of(int rank) {
  const auto now = std::chrono::system_clock::now().time_since_epoch().count();
  return static_cast<std::int64_t>(now) * 4096 + getpid() % 64 * 64 + rank % 64;
}

int make_file(std::size_t bytes) {
  const int file = memfd_create("superstep-ranks", MFD_CLOEXEC);
  if (file < 0) return -1;
  // Room is taken now: memory that is short must show here, not as a signal when a page is first touched.
  if (posix_fallocate(file, 0, static_cast<off_t>(bytes)) == 0) return file;
  close(file);
  return -1;
}

std::byte* map(int file, std::size_t bytes) {
  if (file < 0) return nullptr;
  void* const base = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  return base == MAP_FAILED ? nullptr : static_cast<std::byte*>(base);
}

std::byte* map_of_process(std::int64_t process, std::int64_t number, std::size_t bytes) {
  if (number < 0) return nullptr;
  const int file = ::open(fmt::format("/proc/{}/fd/{}", process, number).c_str(), O_RDWR | O_CLOEXEC);
  std::byte* const base = map(file, bytes);
  if (file >= 0) close(file);
  return base;
}

}  // namespace

std::unique_ptr<SharedSegments> SharedSegments::open(const Meeting& meeting, std::size_t bytes) {
  std::unique_ptr<SharedSegments> segments(new SharedSegments(meeting.rank, bytes));
  const int file = make_file(bytes);
  std::byte* const own = map(file, bytes);
  const std::int64_t token = token_of(meeting.rank);
  if (own) std::memcpy(own, &token, sizeof token);
  const auto found = meeting.gather({getpid(), own ? file : -1, token, static_cast<std::int64_t>(bytes)});
  bool good = own != nullptr;
  for (int rank = 0; rank < meeting.size; ++rank) {
    const auto& [process, number, expected, size] = found[static_cast<std::size_t>(rank)];
    std::byte* base = rank == meeting.rank                       ? own
                      : size == static_cast<std::int64_t>(bytes) ? map_of_process(process, number, bytes)
                                                                 : nullptr;
    segments->bases_.push_back(base);
    good = good && base && std::memcmp(base, &expected, sizeof expected) == 0;
  }
  good = meeting.all(good);  // everybody has looked: files and tokens may go
  if (file >= 0) close(file);
  if (!good) return nullptr;
  std::memset(own, 0, sizeof token);
  return meeting.all(true) ? std::move(segments) : nullptr;
}

SharedSegments::~SharedSegments() {
  for (std::byte* base : bases_)
    if (base) munmap(base, bytes_);
}

}  // namespace superstep::run
