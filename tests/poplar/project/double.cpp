// Doubles four numbers by the vertex of double.gp.
#include <iostream>
#include <poplar/Engine.hpp>
#include <poplar/Graph.hpp>
#include <poplar/IPUModel.hpp>

int main() {
  poplar::IPUModel model;
  poplar::Device device = model.createDevice();
  poplar::Graph graph(device.getTarget());
  graph.addCodelets("double.gp");
  poplar::Tensor numbers =
      graph.addVariable(poplar::FLOAT, {4}, poplar::VariableMappingMethod::LINEAR, "numbers");
  const float values[] = {1, 2, 3, 4.5f};
  graph.setInitialValue(numbers, poplar::ArrayRef<float>(values, 4));
  poplar::ComputeSet set = graph.addComputeSet("double");
  poplar::VertexRef vertex = graph.addVertex(set, "Double", {{"x", numbers}});
  graph.setTileMapping(vertex, 0);
  graph.createHostRead("out", numbers);
  poplar::Engine engine(graph, poplar::program::Execute(set));
  engine.load(device);
  engine.run();
  float doubled[4];
  engine.readTensor("out", doubled, doubled + 4);
  for (float value : doubled) std::cout << value << "\n";
}
