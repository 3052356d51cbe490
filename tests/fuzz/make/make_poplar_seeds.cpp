// Writes seeds of executables of Poplar programs: make_poplar_seeds FOLDER. Without codelets, whose code is
// long and kept by its own name.
#include <poplar/Graph.hpp>
#include <poplar/IPUModel.hpp>

#include "superstep/base/file.h"
#include "superstep/poplar/executable/executable_file.h"

namespace {

using namespace poplar;
using namespace poplar::program;

struct Small {
  Small() : graph(make_device(), replication_factor(2)) {
    x = graph.addVariable(INT, {6}, VariableMappingMethod::LINEAR, "x");
    y = graph.addVariable(INT, {6}, VariableMappingMethod::LINEAR, "y");
    flag = graph.addConstant(BOOL, {}, true);
    graph.setTileMapping(flag, 0);
  }
  static Device make_device() {
    IPUModel model;
    model.tilesPerIPU = 2;
    model.numIPUs = 2;
    return model.createDevice();
  }
  Graph graph;
  Tensor x, y, flag;
};

Executable transfers() {
  Small m;
  const DataStream in = m.graph.addHostToDeviceFIFO("in", INT, 6),
                   out = m.graph.addDeviceToHostFIFO("out", INT, 6);
  const RemoteBuffer buffer = m.graph.addRemoteBuffer("buffer", INT, 3, 4);
  Tensor rows = m.graph.addConstant(UNSIGNED_INT, {2}, ArrayRef<unsigned>{1, 3});
  m.graph.setTileMapping(rows, 1);
  m.graph.createHostRead("y", m.y);
  m.graph.createHostWrite("x", m.x);
  return compileGraph(m.graph, Sequence{Copy(in, m.x), Copy(m.x, buffer, rows), Copy(buffer, m.y, rows),
                                        Copy(m.y, out), CrossReplicaCopy(m.x, m.y, {{0, 1}, {1, 0}})});
}

Executable control() {
  Small m;
  m.graph.setInitialValue(m.x, 3);
  Sequence body{Copy(m.x.slice(0, 5), m.x.slice(1, 6)), Copy(m.x, m.y.reverse(0))};
  return compileGraph(m.graph, {Sequence{Repeat(2, body), If(m.flag, PrintTensor("y", m.y)), WriteUndef(m.x)},
                                Switch(m.y[0], {{1, Copy(m.y, m.x)}, {-2, Abort("stop")}}),
                                RepeatWhileFalse(Sequence(), m.flag, body), AssumeEqualAcrossReplicas(m.y)});
}

}  // namespace

int main(int count, char** words) {
  if (count != 2) return 2;
  const std::filesystem::path folder = words[1];
  superstep::make_folder(folder);
  superstep::write_file_atomically((folder / "transfers").string(),
                                   poplar::core::bytes_of(*transfers().data()));
  superstep::write_file_atomically((folder / "control").string(), poplar::core::bytes_of(*control().data()));
}
