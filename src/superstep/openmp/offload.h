// A bulk-synchronous machine as the device of a program with target regions: the table of mapped arrays, a
// queue of launches and transfers, and what it all took.
//
// Launches and transfers to the device wait in the queue until the host can see a result: update_from, or the
// end of an array that is mapped `from`. The queue is then compiled into one program, its time loops as
// loops, and run. Data stay on the tiles between queues.
#pragma once

#include <iosfwd>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "superstep/openmp/lower.h"

namespace superstep::openmp {

enum class Enter { alloc, to };              // how an array's life on the device begins
enum class Leave { from, release, remove };  // and ends; remove: whatever the count of references

struct OffloadOptions {
  int threads = 1;
  bool timing_only = false;            // no data: cycles and memory alone
  bool withhold_halo_element = false;  // LowerOptions
};

// Sums over all runs of a region, or of the transfers of an array. Cycles are modelled.
struct ReportRow {
  std::string what;  // "heat.c:12"; "transfers"
  std::uint64_t launches = 0, tiles = 0;
  std::uint64_t compute = 0, exchange = 0, sync = 0, host = 0, control = 0;  // cycles
  std::uint64_t exchanged_bytes = 0, host_bytes = 0, flops = 0;
  std::uint64_t cycles() const { return compute + exchange + sync + host + control; }
};

// The same steps of a region, or of the transfers, over all runs: "halo of u", "compute", "u from the host".
struct ReportStep {
  std::string region, what;
  std::uint64_t times = 0, cycles = 0, exchanged_bytes = 0, host_bytes = 0, tiles = 0;
};

struct Report {
  std::string device;
  double clock_hz = 0;
  std::vector<ReportRow> rows;    // regions in the order of their first launch, then transfers
  std::vector<ReportStep> steps;  // what the rows are made of
  std::uint64_t cycles = 0;       // of all runs
  std::uint64_t fullest_tile_bytes = 0, bytes_per_tile = 0;
  std::uint64_t programs = 0, runs = 0;  // queues compiled, and run
  std::vector<std::string> captured;     // of each program, what its loops are
  std::vector<std::string> replaced;     // why launches became those that stood in for them
};
void print_report(std::ostream& out, const Report& report);

class Offload {
 public:
  explicit Offload(bsp::Device device, const OffloadOptions& options = {});
  ~Offload();
  Offload(const Offload&) = delete;
  Offload& operator=(const Offload&) = delete;

  // An array of so many elements; one that is there already counts one reference more and moves no data.
  // Throws Error ("alias") when it overlaps an array that is there and is not the same.
  void enter(void* host, const std::string& name, ElementType type, std::int64_t count, Enter how);
  // Throws Error ("unmapped") when it is not there.
  void leave(void* host, Leave how);
  bool present(const void* host) const;
  // The array in which this byte lies, if it does.
  struct Mapped {
    void* host;
    std::string name;
    ElementType type;
    std::int64_t count;
    std::size_t bytes() const { return static_cast<std::size_t>(count) * size_in_bytes(type); }
  };
  std::optional<Mapped> mapped(const void* byte) const;
  std::vector<Mapped> all_mapped() const;
  // Several at once, in one run of the queue.
  struct Departure {
    void* host;
    Leave how;
  };
  void leave(std::span<const Departure> departures);
  void update_to(const void* host, std::int64_t begin, std::int64_t end);  // elements
  void update_from(void* host, std::int64_t begin, std::int64_t end);      // and runs the queue
  // The same without running it: elements arrive with finish().
  void ask_for(void* host, std::int64_t begin, std::int64_t end);

  // The region on arrays that are there. Throws Error as check_region does, "unmapped" when an array is not
  // there or of another size, "alias" when two names of one array are written.
  void launch(const Region& region, std::span<void* const> arrays);
  // The same with another table of the same work on the same memory, which takes its place when only the
  // whole queue shows that the first cannot be dealt to tiles.
  void launch(const Region& region, std::span<void* const> arrays, const Region& instead,
              std::span<void* const> instead_arrays);
  void finish();  // runs the queue

  const bsp::Device& device() const;
  Report report() const;
  // Of the program that ran last; null when none has.
  const bsp::Profile* last_profile() const;
  // Of all programs, in no order that means anything.
  std::vector<const bsp::Profile*> profiles() const;

 private:
  class Implementation;
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace superstep::openmp
