// What the tests of the machine share.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <sstream>

#include "superstep/bsp/engine/engine.h"
#include "tests/bsp/vertices.h"
#include "tests/contains.h"

namespace superstep::bsp {

// A chip of `tiles` tiles with round open constants: set-up 100, sync 10, fragments and local copies free.
inline Device small_device(std::uint32_t tiles, std::uint32_t ipus = 1) {
  Device device = gc200_device();
  device.name = "small";
  device.tiles_per_ipu = tiles;
  device.ipus = ipus;
  device.constants.exchange_setup_cycles = {100, 100, 100};
  device.constants.exchange_fragment_cycles = {0, 0, 0};
  device.constants.sync_cycles = {10, 10, 10};
  device.constants.local_copy_call_cycles = {5, 5, 5};
  device.constants.local_copy_run_cycles = {0, 0, 0};
  device.constants.control_cycles = {3, 3, 3};
  return device;
}

inline Graph small_graph(std::uint32_t tiles, std::uint32_t ipus = 1, std::uint32_t replicas = 1) {
  Graph graph(small_device(tiles, ipus), replicas);
  graph.add_codelets(test_vertices());
  return graph;
}

inline Tensor mapped(Graph& graph, Shape shape, std::string name, std::uint32_t tile = 0,
                     Type type = Type::f32) {
  const Tensor tensor = graph.add_variable(type, std::move(shape), std::move(name));
  graph.set_tile_mapping(tensor, tile);
  return tensor;
}

inline superstep::Tensor floats(const std::vector<float>& values) {
  return superstep::Tensor::from<float>({static_cast<std::int64_t>(values.size())}, values);
}

inline std::vector<float> read(const Engine& engine, std::string_view handle, std::size_t count) {
  std::vector<float> values(count);
  engine.read_tensor<float>(handle, values);
  return values;
}

inline void expect_error(ErrorCode code, const std::function<void()>& act,
                         std::initializer_list<const char*> parts) {
  try {
    act();
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    for (const char* part : parts) EXPECT_TRUE(contains(error.what(), part));
  }
}

}  // namespace superstep::bsp
