// The C functions that translated programs call, and the report when they end.
#include <fmt/format.h>

#include <cstdlib>
#include <fstream>
#include <mutex>

#include "superstep/openmp/program/device.h"
#include "superstep/openmp/program/profile_page.h"
#include "superstep/openmp/program/report_json.h"

namespace superstep::openmp {
namespace {

nlohmann::json json_of(const ProgramDevice& device) {
  nlohmann::json result = json_of(device.report());
  result["regions"] = nlohmann::json::array();
  for (const auto& [key, record] : device.regions())
    result["regions"].push_back(
        json_of(RegionOutcome{to_string(record.place), record.dealt, record.on_one_tile, record.on_host,
                              record.checked, record.reason, record.difference}));
  return result;
}

[[noreturn]] void stop(const Error& error) {
  fmt::print(stderr, "error: {}\n", error.what());
  std::_Exit(1);
}

class Program {
 public:
  Program() : device_(settings_from_environment()) {}
  ~Program() {
    try {
      device_.finish();
      if (!device_.settings().profile.empty())
        write_program_pages(device_.profiles(), device_.settings().profile);
      if (device_.settings().report.empty()) return;
      std::ofstream file(device_.settings().report);
      file << json_of(device_).dump(1) << "\n";
      if (!file.flush())
        throw Error(ErrorCode::io, "the report cannot be written", device_.settings().report);
    } catch (const Error& error) {
      stop(error);
    }
  }
  ProgramDevice& device() { return device_; }

 private:
  ProgramDevice device_;
};

ProgramDevice& device() {
  static Program program;
  return program.device();
}

// One thread of the program at a time. It keeps the device while its own loops run in place of a region.
std::recursive_mutex& one_at_a_time() {
  static std::recursive_mutex mutex;
  return mutex;
}

// What reaches C is no exception.
template <class F>
auto guarded(F&& call) {
  const std::lock_guard lock(one_at_a_time());
  try {
    return call();
  } catch (const Error& error) {
    std::fflush(stdout);
    stop(error);
  } catch (const std::exception& error) {
    stop(Error(ErrorCode::internal, error.what()));
  }
}

std::span<const sst_item> list(const sst_item* items, int count) {
  return {items, static_cast<std::size_t>(count)};
}

static_assert(sizeof(sst_part) == sizeof(Part) && sizeof(sst_gather) == sizeof(Gather) &&
              sizeof(long) == sizeof(std::int64_t));

}  // namespace

bool offload_is_disabled() {
  return guarded([] { return device().settings().disabled; });
}

}  // namespace superstep::openmp

using namespace superstep::openmp;

int sst_target(const sst_region* region, const sst_item* items, int count, const long* numbers,
               const void* scalars, long scalar_bytes, int device_number) {
  return guarded([&] {
    const int result = device().target(
        *region, list(items, count), numbers,
        {static_cast<const std::byte*>(scalars), static_cast<std::size_t>(scalar_bytes)}, device_number);
    if (result == 1) one_at_a_time().lock();  // until sst_target_end
    return result;
  });
}

void sst_target_end() {
  guarded([] { device().target_end(); });
  one_at_a_time().unlock();
}

void sst_enter(const char* file, int line, const sst_item* items, int count, int device_number) {
  guarded([&] {
    const SourcePlace place{file, line};
    if (!device().is_host(device_number, to_string(place))) device().enter(place, list(items, count));
  });
}

void sst_exit(const char* file, int line, const sst_item* items, int count, int device_number) {
  guarded([&] {
    const SourcePlace place{file, line};
    if (!device().is_host(device_number, to_string(place))) device().leave(place, list(items, count));
  });
}

void sst_update(const char* file, int line, const sst_item* items, int count, int device_number) {
  guarded([&] {
    const SourcePlace place{file, line};
    if (!device().is_host(device_number, to_string(place))) device().update(place, list(items, count));
  });
}

void sst_global(const char* file, int line, const char* name, void* address, long bytes, int type) {
  guarded([&] {
    const sst_item item{name, address, bytes, address, type, sst_to, line, -1, 0};
    if (!device().settings().disabled) device().add_global({file, line}, item);
  });
}

int sst_omp_target_is_present(const void* address, int device_number) {
  return guarded([&] {
    return device().is_host(device_number, "omp_target_is_present") || device().present(address) ? 1 : 0;
  });
}

void* sst_omp_target_alloc(unsigned long bytes, int device_number) {
  return guarded([&] {
    return device().is_host(device_number, "omp_target_alloc") ? std::malloc(bytes)
                                                               : device().allocate(bytes);
  });
}

void sst_omp_target_free(void* memory, int device_number) {
  guarded([&] {
    if (device().is_host(device_number, "omp_target_free"))
      std::free(memory);
    else
      device().release(memory);
  });
}

int sst_omp_target_memcpy(void* to, const void* from, unsigned long bytes, unsigned long to_offset,
                          unsigned long from_offset, int to_device, int from_device) {
  return guarded([&] {
    const bool to_host = device().is_host(to_device, "omp_target_memcpy"),
               from_host = device().is_host(from_device, "omp_target_memcpy");
    device().copy(static_cast<char*>(to) + to_offset, static_cast<const char*>(from) + from_offset, bytes,
                  to_host, from_host);
    return 0;
  });
}

long sst_whole_rows(long value, long lower, long length, long extent, const char* file, int line) {
  return guarded([&] {
    if (lower != 0 || length != extent)
      refuse("clause", fmt::format("a section takes {} of {} elements of an inner dimension", length, extent),
             to_string(SourcePlace{file, line}), "take whole rows");
    return value;
  });
}
