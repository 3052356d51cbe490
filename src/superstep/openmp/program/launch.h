// One execution of a target construct of a C program: its list items found in the table of mapped arrays, and
// the regions that its numbers make of its table.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "superstep/openmp/offload.h"
#include "superstep/openmp/program/abi.h"

namespace superstep::openmp {

// What stands for an item's elements on the device: its own type, or words of a struct.
ElementType element_type_of_item(const sst_item& item);

// The arrays of the device that a launch works on, and where its items lie in them.
class Launch {
 public:
  // Throws Error ("unmapped") when an item that the region reaches elements through is not on the device.
  Launch(const sst_region& region, std::span<const sst_item> items, const long* numbers,
         std::span<const std::byte> scalars, const Offload& offload);

  // As loops dealt to tiles, and as one thread on whole arrays. Throw Error when the numbers do not allow it.
  Region dealt() const;
  Region whole() const;
  std::vector<void*> arrays() const;  // of both
  std::size_t bytes() const;          // of all arrays

  const sst_region& table() const { return *table_; }
  SourcePlace place() const { return {table_->file, table_->line}; }

 private:
  struct Found {
    int array = -1;   // a number of arrays_; -1: the item is not on the device
    long offset = 0;  // bytes from the array's first element to the item's base
  };
  struct Loops {  // in the numbers of the region: a distributed loop counts from 0 in steps of 1
    std::vector<Range> ranges;
    std::vector<long> first, step;
    std::vector<double> trips;
  };

  void find(const sst_item& item, const Offload& offload);
  Loops loops(const long*& numbers) const;
  Affine affine(const long*& numbers, const Loops& loops, std::size_t count) const;
  struct Seen;
  std::vector<Seen> seen_accesses(const long* numbers, const Loops& loops) const;
  void add_accesses(Region& region, Loops& loops, std::vector<Seen>& accesses) const;
  void add_reductions(Region& region) const;
  double trips(unsigned bits, const Loops& loops) const;
  Work work(const Loops& loops, bool with_counted) const;
  std::vector<Work> turns(const Loops& loops) const;
  std::vector<std::byte> all_scalars() const;

  const sst_region* table_;
  std::span<const sst_item> items_;
  const long* numbers_;
  std::span<const std::byte> scalars_;
  std::vector<Offload::Mapped> arrays_;
  std::vector<Found> found_;
};

}  // namespace superstep::openmp
