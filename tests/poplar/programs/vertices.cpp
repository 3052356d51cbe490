// Vertices of a file of codelets: their fields, where they run, what they cost.
#include <iostream>
#include <poplar/Engine.hpp>
#include <poplar/Graph.hpp>
#include <poplar/IPUModel.hpp>
#include <sstream>

using namespace poplar;
using namespace poplar::program;

int main() {
  IPUModel model;
  Device device = model.createDevice();
  Graph graph(device.getTarget());
  graph.addCodelets("vertices_codelets.cpp");

  Tensor given = graph.addVariable(FLOAT, {6}, "given"), totals = graph.addVariable(FLOAT, {6}, "totals");
  for (unsigned i = 0; i < 6; ++i) {
    graph.setTileMapping(given[i], i);
    graph.setTileMapping(totals[i], 5 - i);
  }
  Tensor start = graph.addConstant<float>(FLOAT, {6}, {0.5, 1, 2, 4, 8, 16});
  graph.setTileMapping(start, 0);

  Sequence main;
  main.add(Copy(start, given));
  ComputeSet sums = graph.addComputeSet("sums");
  for (unsigned i = 0; i < 6; ++i) {
    VertexRef vertex = graph.addVertex(sums, "Total");
    graph.connect(vertex["values"], given.slice(0, i + 1));
    graph.connect(vertex["total"], totals[i]);
    graph.setTileMapping(vertex, i);
    graph.setPerfEstimate(vertex, 20);
  }
  main.add(Execute(sums));
  main.add(PrintTensor("totals", totals));

  ComputeSet scaling = graph.addComputeSet("scaling");
  VertexRef scale = graph.addVertex(scaling, "Scale", {{"data", totals.slice(0, 3)}, {"offset", 0.25f}});
  graph.setInitialValue(scale["factor"], 2);
  graph.setTileMapping(scale, 1471);
  graph.setPerfEstimate(scale, 30, 6);
  main.add(Execute(scaling));
  main.add(PrintTensor("scaled", totals));

  Tensor table = graph.addVariable(INT, {3, 4}, "table");
  Tensor longest = graph.addVariable(UNSIGNED_INT, {}, "longest");
  graph.setTileMapping(table, 2);
  graph.setTileMapping(longest, 3);
  graph.setInitialValue<int>(table, {1, 1, 1, 1, 9, 0, 0, 9, 2, 2, 2, 2});
  ComputeSet search = graph.addComputeSet("search");
  auto row = graph.addVertex(search, "LongestRow", {{"rows", table}, {"row", longest}});
  graph.setTileMapping(row, 9);
  auto other = graph.addVertex(
      search, "LongestRow",
      {{"rows", {table[1].slice(0, 1), table[2], table[0]}}, {"row", totals.reinterpret(UNSIGNED_INT)[5]}});
  graph.setTileMapping(other, 8);
  main.add(Execute(search));
  main.add(PrintTensor("longest", longest));
  main.add(PrintTensor("among the others", totals.reinterpret(UNSIGNED_INT)[5]));

  Engine engine(graph, main);
  engine.load(device);
  engine.run();
  std::stringstream summary;
  engine.printProfileSummary(summary, {{"showExecutionSteps", "true"}});
  for (std::string line; std::getline(summary, line);)
    for (const char* wanted :
         {"Number of vertices", "Number of compute sets", "Total (", "Scale (", "LongestRow ("})
      if (line.find(wanted) != std::string::npos) std::cout << line << "\n";
  return 0;
}
