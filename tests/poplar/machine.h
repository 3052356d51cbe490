// Graphs on small modelled machines, and the exceptions that a call must throw.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <poplar/Engine.hpp>
#include <poplar/Graph.hpp>
#include <poplar/IPUModel.hpp>
#include <poplar/exceptions.hpp>
#include <sstream>
#include <string>
#include <vector>

inline poplar::Device small_device(unsigned tiles = 4, unsigned chips = 1) {
  poplar::IPUModel model;
  model.tilesPerIPU = tiles;
  model.numIPUs = chips;
  return model.createDevice();
}

// A graph with its device, and a way to see what is in a tensor after a program.
struct Machine {
  explicit Machine(unsigned tiles = 4, unsigned chips = 1)
      : device(small_device(tiles, chips)), graph(device.getTarget()) {}

  poplar::Tensor variable(const poplar::Type& type, std::vector<std::size_t> shape, const char* name = "v") {
    return graph.addVariable(type, shape, poplar::VariableMappingMethod::LINEAR, name);
  }
  // 0, 1, 2 ... as initial values.
  poplar::Tensor counting(std::vector<std::size_t> shape, const char* name = "v") {
    poplar::Tensor tensor = variable(poplar::INT, shape, name);
    std::vector<int> values(tensor.numElements());
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<int>(i);
    graph.setInitialValue(tensor, poplar::ArrayRef<int>(values));
    return tensor;
  }

  template <class T = int>
  std::vector<T> run(const poplar::program::Program& program, const poplar::Tensor& shown) {
    const std::string handle = "shown" + std::to_string(runs++);
    graph.createHostRead(handle, shown);
    poplar::Engine engine(graph, program);
    engine.load(device);
    engine.run();
    std::vector<T> values(shown.numElements());
    engine.readTensor(handle, values.data(), values.data() + values.size());
    return values;
  }
  std::string printed(const poplar::program::Program& program) {
    std::ostringstream out;
    poplar::Engine engine(graph, program);
    engine.setPrintStream(out);
    engine.load(device);
    engine.run();
    return out.str();
  }

  poplar::Device device;
  poplar::Graph graph;
  int runs = 0;
};

// The call throws exactly this type, and its words have `part`.
template <class Exception, class Call>
void expect_throw(Call&& call, const std::string& part) {
  try {
    call();
    ADD_FAILURE() << "nothing was thrown; expected: " << part;
  } catch (const Exception& error) {
    EXPECT_TRUE(typeid(error) == typeid(Exception)) << error.what();
    EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
  } catch (const std::exception& error) {
    ADD_FAILURE() << "another exception: " << error.what();
  }
}

#ifdef POPC
// Codelets are compiled by the build's own popc, and kept in a folder of the tests.
inline const bool popc_of_the_build = [] {
  setenv("SUPERSTEP_POPC", POPC, 1);
  setenv("SUPERSTEP_HOME", POPLAR_TEST_HOME, 1);
  return true;
}();
#endif
