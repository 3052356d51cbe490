// A matrix times a vector, its rows in parts that lie on different tiles: product ROWS COLUMNS PARTS
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <poplar/Engine.hpp>
#include <poplar/Graph.hpp>
#include <poplar/IPUModel.hpp>
#include <sstream>

using namespace poplar;
using namespace poplar::program;

static Program multiply(Graph& graph, Tensor matrix, Tensor vector, Tensor result, unsigned parts) {
  const unsigned rows = static_cast<unsigned>(matrix.dim(0)), columns = static_cast<unsigned>(matrix.dim(1));
  const unsigned tiles = graph.getTarget().getNumTiles();
  Tensor partials = graph.addVariable(FLOAT, {rows, parts}, "partials");
  for (unsigned i = 0; i < columns; ++i) graph.setTileMapping(vector[i], i * tiles / columns);
  ComputeSet products = graph.addComputeSet("products");
  for (unsigned part = 0; part < parts; ++part) {
    const unsigned begin = part * columns / parts, end = (part + 1) * columns / parts;
    for (unsigned row = 0; row < rows; ++row) {
      Tensor piece = matrix[row].slice(begin, end);
      auto vertex = graph.addVertex(
          products, "PartOfRow",
          {{"row", piece}, {"vector", vector.slice(begin, end)}, {"part", partials[row][part]}});
      const unsigned tile = (part * rows + row) * tiles / (parts * rows);
      graph.setTileMapping(vertex, tile);
      graph.setTileMapping(piece, tile);
      graph.setTileMapping(partials[row][part], tile);
      graph.setPerfEstimate(vertex, 5 + (end - begin + 1) / 2);
    }
  }
  ComputeSet sums = graph.addComputeSet("sums");
  for (unsigned row = 0; row < rows; ++row) {
    auto vertex = graph.addVertex(sums, "AddParts", {{"parts", partials[row]}, {"sum", result[row]}});
    const unsigned tile = row * tiles / rows;
    graph.setTileMapping(vertex, tile);
    graph.setTileMapping(result[row], tile);
    graph.setPerfEstimate(vertex, 5 + (parts + 1) / 2);
  }
  return Sequence({Execute(products), Execute(sums)});
}

int main(int argc, char** argv) {
  if (argc != 4) {
    std::cerr << "usage: " << argv[0] << " ROWS COLUMNS PARTS\n";
    return 1;
  }
  const unsigned rows = static_cast<unsigned>(std::atoi(argv[1])),
                 columns = static_cast<unsigned>(std::atoi(argv[2]));
  char version[] = "ipu2";
  IPUModel model(version);
  model.minIPUSyncDelay = 0;
  model.relativeSyncDelay = IPUModel::RelativeSyncDelayType::NO_DELAY;
  Device device = model.createDevice();
  Graph graph(device);
  graph.addCodelets("product_codelets.cpp");
  Tensor matrix = graph.addVariable(FLOAT, {rows, columns}, "matrix");
  Tensor vector = graph.addVariable(FLOAT, {columns}, "vector");
  Tensor result = graph.addVariable(FLOAT, {rows}, "result");
  Program product = multiply(graph, matrix, vector, result, static_cast<unsigned>(std::atoi(argv[3])));
  DataStream inMatrix = graph.addHostToDeviceFIFO("matrix", FLOAT, rows * columns);
  DataStream inVector = graph.addHostToDeviceFIFO("vector", FLOAT, columns);
  DataStream out = graph.addDeviceToHostFIFO("result", FLOAT, rows);
  OptionFlags options{{"debug.retainDebugInformation", "true"}};
  Engine engine(graph, Sequence({Copy(inMatrix, matrix), Copy(inVector, vector), product, Copy(result, out)}),
                options);
  engine.load(device);

  std::vector<float> hostMatrix(rows * columns), hostVector(columns), hostResult(rows);
  for (unsigned i = 0; i < columns; ++i) hostVector[i] = static_cast<float>(i % 7) - 2;
  for (unsigned i = 0; i < rows * columns; ++i) hostMatrix[i] = static_cast<float>(i % 11) + 1;
  engine.connectStream("matrix", hostMatrix.data());
  engine.connectStream("vector", hostVector.data());
  engine.connectStream("result", hostResult.data());
  engine.run();
  for (unsigned row = 0; row < rows; ++row) {
    float sum = 0;
    for (unsigned i = 0; i < columns; ++i) sum += hostMatrix[row * columns + i] * hostVector[i];
    if (std::fabs(hostResult[row] - sum) > 1e-5f * std::fabs(sum)) {
      std::cout << "row " << row << " is " << hostResult[row] << ", not " << sum << "\n";
      return 1;
    }
  }
  std::cout << rows << " rows are right\n";
  std::ostringstream summary;
  engine.printProfileSummary(summary, OptionFlags{{"showExecutionSteps", "true"}});
  for (const char* wanted : {"Target:", "Memory Usage:", "Execution:", "PartOfRow", "AddParts"})
    if (summary.str().find(wanted) == std::string::npos) std::cout << "no " << wanted << "\n";
  return 0;
}
