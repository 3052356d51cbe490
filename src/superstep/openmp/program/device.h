// The device that a translated program runs on: its mapped data, its launches, and what became of each
// region.
#pragma once

#include <map>
#include <memory>

#include "superstep/openmp/program/host_run.h"
#include "superstep/openmp/program/launch.h"
#include "superstep/openmp/program/settings.h"

namespace superstep::openmp {

// Where the launches of a target construct ran.
struct RegionRecord {
  SourcePlace place;
  std::uint64_t dealt = 0, on_one_tile = 0, on_host = 0, checked = 0;
  std::string reason;      // why not all of them were dealt
  std::string difference;  // the first that --check found
};

class ProgramDevice {
 public:
  explicit ProgramDevice(Settings settings);

  // What sst_target says.
  int target(const sst_region& region, std::span<const sst_item> items, const long* numbers,
             std::span<const std::byte> scalars, int device);
  void target_end();
  void enter(const SourcePlace& place, std::span<const sst_item> items);
  void leave(const SourcePlace& place, std::span<const sst_item> items);
  void update(const SourcePlace& place, std::span<const sst_item> items);
  // omp_target_alloc, omp_target_free, omp_target_memcpy.
  void* allocate(std::size_t bytes);
  void release(void* memory);
  void copy(void* to, const void* from, std::size_t bytes, bool to_host, bool from_host);
  void add_global(const SourcePlace& place, const sst_item& item);

  bool is_host(int device, const std::string& where) const;  // throws Error for a number that no device has
  const Settings& settings() const { return settings_; }
  bool present(const void* address) const { return offload_.mapped(address).has_value(); }
  Report report() const { return offload_.report(); }
  std::vector<const bsp::Profile*> profiles() const { return offload_.profiles(); }
  const std::map<std::pair<int, std::string>, RegionRecord>& regions() const { return regions_; }
  void finish() { offload_.finish(); }

 private:
  struct Pending {  // the host's loops run meanwhile
    const sst_region* region;
    std::vector<sst_item> items;
    RegionRecord* record;
    std::unique_ptr<Contents> host, tiles;  // tiles: what to compare with
    std::set<void*> sums;
  };

  RegionRecord& record_of(const sst_region& region);
  bool launch(const Launch& launch, RegionRecord& record);
  void tell(RegionRecord& record, const std::string& reason, const char* where_it_runs);
  void adopt(const sst_item& item);
  void move_pieces(const sst_item& item, const Offload::Mapped& there);
  int to_host(const sst_region& region, std::span<const sst_item> items, RegionRecord& record);

  Settings settings_;
  Offload offload_;
  std::map<std::pair<int, std::string>, RegionRecord> regions_;
  std::set<void*> constants_, globals_;
  std::map<void*, std::size_t> allocated_;  // memory of the device alone, with its bytes
  std::unique_ptr<Pending> pending_;
};

}  // namespace superstep::openmp
