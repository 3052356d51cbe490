// Machines, arrays and small regions for the tests of target regions.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "superstep/openmp/offload.h"
#include "superstep/openmp/plan.h"

namespace superstep::openmp {

inline bsp::Device machine(std::uint32_t tiles) {
  bsp::Device device = bsp::gc200_device();
  device.tiles_per_ipu = tiles;
  return device;
}

// Pieces of an exchange cost nothing: grids are as square as can be.
inline bsp::Device machine_without_fragments(std::uint32_t tiles) {
  bsp::Device device = machine(tiles);
  device.constants.exchange_fragment_cycles = {0, 0, 0};
  return device;
}

// Subscripts of one loop each: loop number and what is added.
inline Affine index(int loop, std::int64_t constant = 0, std::int64_t coefficient = 1) {
  Affine affine;
  affine.constant = constant;
  affine.coefficients.assign(static_cast<std::size_t>(loop) + 1, 0);
  affine.coefficients.back() = coefficient;
  return affine;
}
inline Affine number(std::int64_t constant) { return {constant, {}}; }

inline Access reads(int array, std::vector<Affine> subscripts, int line = 0) {
  return {array, true, false, std::move(subscripts), line};
}
inline Access writes(int array, std::vector<Affine> subscripts, int line = 0) {
  return {array, false, true, std::move(subscripts), line};
}
inline Access updates(int array, std::vector<Affine> subscripts, int line = 0) {
  return {array, true, true, std::move(subscripts), line};
}

inline void no_body(const Part&) {}

// The message of the error that a call ends with; empty: it did not.
template <class F>
std::string error_of(F&& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

}  // namespace superstep::openmp
