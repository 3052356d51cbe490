// Heat in a rod that lies on many tiles: stencil CELLS STEPS
#include <cstdlib>
#include <iostream>
#include <poplar/Engine.hpp>
#include <poplar/Graph.hpp>
#include <poplar/IPUModel.hpp>

using namespace poplar;
using namespace poplar::program;

int main(int argc, char** argv) {
  const unsigned cells = argc > 1 ? static_cast<unsigned>(std::atoi(argv[1])) : 1024;
  const unsigned steps = argc > 2 ? static_cast<unsigned>(std::atoi(argv[2])) : 100;
  IPUModel model;
  model.tilesPerIPU = 64;
  Device device = model.createDevice();
  Graph graph(device.getTarget());
  graph.addCodelets("stencil_codelets.cpp");
  const unsigned tiles = graph.getTarget().getNumTiles(), piece = cells / tiles;

  Tensor rod = graph.addVariable(FLOAT, {cells + 2}, "rod"),
         next = graph.addVariable(FLOAT, {cells + 2}, "next");
  ComputeSet relax = graph.addComputeSet("relax");
  for (unsigned tile = 0; tile < tiles; ++tile) {
    const unsigned begin = 1 + tile * piece, end = tile + 1 < tiles ? begin + piece : cells + 1;
    graph.setTileMapping(rod.slice(begin, end), tile);
    graph.setTileMapping(next.slice(begin, end), tile);
    VertexRef vertex = graph.addVertex(relax, "Relax",
                                       {{"left", rod.slice(begin - 1, begin)},
                                        {"piece", rod.slice(begin, end)},
                                        {"right", rod.slice(end, end + 1)},
                                        {"next", next.slice(begin, end)}});
    graph.setInitialValue(vertex["rate"], 0.25f);
    graph.setTileMapping(vertex, tile);
    graph.setPerfEstimate(vertex, 20 + 5 * (end - begin));
  }
  for (unsigned end : {0u, cells + 1}) {
    graph.setTileMapping(rod[end], 0);
    graph.setTileMapping(next[end], 0);
  }
  graph.setInitialValue(rod, 0);
  graph.setInitialValue(rod[0], 100);  // one end is hot

  Tensor inner = rod.slice(1, cells + 1);
  Sequence main;
  main.add(Repeat(steps, Sequence({Execute(relax), Copy(next.slice(1, cells + 1), inner)})));
  main.add(PrintTensor("hot end", rod.slice(0, 6)));
  Engine engine(graph, main);
  engine.load(device);
  engine.run();
  engine.printProfileSummary(std::cout);
  return 0;
}
