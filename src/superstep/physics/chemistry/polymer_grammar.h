// A numbered set of polymer repeat units, written by a grammar: families of chemistry with slots for chain
// lengths, side groups and linking blocks.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace superstep::data {

struct PolymerFamily {
  const char* name;
  std::uint64_t count;                         // of repeat units in the family
  std::string (*smiles)(std::uint64_t place);  // place < count
};
std::span<const PolymerFamily> polymer_families();

struct RepeatUnit {
  std::string smiles;
  int family = 0;  // position in polymer_families()
};
std::uint64_t repeat_unit_count();            // of all families together
RepeatUnit repeat_unit(std::uint64_t place);  // place < repeat_unit_count()

}  // namespace superstep::data
