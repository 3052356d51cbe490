// Variables, constants, slices, copies, a stream and the host's handles: the first things that a program
// does.
#include <iostream>
#include <poplar/Engine.hpp>
#include <poplar/Graph.hpp>
#include <poplar/IPUModel.hpp>

using namespace poplar;
using namespace poplar::program;

int main() {
  IPUModel model;
  Device device = model.createDevice();
  Target target = device.getTarget();
  Graph graph(target);

  Tensor row = graph.addVariable(FLOAT, {5}, "row");
  Tensor spread = graph.addVariable(FLOAT, {5}, "spread");
  Tensor field = graph.addVariable(FLOAT, {3, 5}, "field");
  Tensor counts = graph.addVariable(INT, {4}, "counts");
  graph.setTileMapping(row, 0);
  for (unsigned i = 0; i < 5; ++i) graph.setTileMapping(spread[i], 2 * i);
  graph.setTileMapping(field, 7);
  graph.setTileMapping(counts, 1471);

  Tensor weights = graph.addConstant<float>(FLOAT, {5}, {0.5, 1.5, -2.0, 4.25, 8.0});
  graph.setTileMapping(weights, 3);

  Sequence main;
  main.add(Copy(weights, row));
  main.add(PrintTensor("row", row));
  main.add(Copy(row.reverse(0), spread));
  main.add(PrintTensor("spread", spread));
  graph.createHostWrite("field-in", field);
  graph.createHostRead("field-out", field);
  Tensor inner = field.slice({1, 1}, {2, 4});
  main.add(Copy(spread.slice(0, 3), inner));

  DataStream ticks = graph.addHostToDeviceFIFO("ticks", INT, 4);
  main.add(Copy(ticks, counts));
  main.add(PrintTensor("counts", counts));
  main.add(Copy(ticks, counts));
  main.add(PrintTensor("counts", counts));

  Engine engine(graph, main);
  engine.load(device);
  std::vector<float> host(3 * 5, 1);
  engine.writeTensor("field-in", host.data(), host.data() + host.size());
  std::vector<int> numbers(4 * 3);
  for (unsigned i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<int>(3 * i);
  engine.connectStream("ticks", &numbers[0], &numbers[0] + numbers.size());
  engine.run(0);
  engine.readTensor("field-out", host.data(), host.data() + host.size());
  for (unsigned i = 0; i < 3; ++i) {
    for (unsigned j = 0; j < 5; ++j) std::cout << host[i * 5 + j] << " ";
    std::cout << "\n";
  }
  engine.run(0);  // the ring goes on where it ended
  return 0;
}
