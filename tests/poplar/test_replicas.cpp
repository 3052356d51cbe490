// Replicated graphs inside a graph of the whole target.
#include "tests/poplar/machine.h"

using namespace poplar;
using namespace poplar::program;
using Values = std::vector<int>;
using Shape = std::vector<std::size_t>;

namespace {

// Four replicas of two tiles each, on two chips.
struct Replicated : Machine {
  explicit Replicated(unsigned factor = 4) : Machine(4, 2), replicas(graph.createReplicatedGraph(factor)) {}

  Tensor add(const Type& type, Shape shape, const char* name = "r") {
    return replicas.addVariable(type, shape, VariableMappingMethod::LINEAR, name);
  }
  // 0, 1, 2 ... over all replicas.
  void count(const Tensor& tensor) {
    Values values(replicas.getReplicationFactor() * tensor.numElements());
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<int>(i);
    graph.setInitialValue(graph.getNonReplicatedTensor(tensor), ArrayRef<int>(values));
  }
  Values run_of(const Program& program, const Tensor& shown) {
    return run(program, graph.getNonReplicatedTensor(shown));
  }

  Graph replicas;
};

Device model_of(unsigned tiles, unsigned chips) { return small_device(tiles, chips); }

}  // namespace

TEST(PoplarReplicas, SharesOfTilesAndOfChips) {
  Replicated m;
  EXPECT_EQ(m.replicas.getReplicationFactor(), 4u);
  EXPECT_EQ(m.replicas.getTarget().getNumTiles(), 2u);
  EXPECT_EQ(m.replicas.getTarget().getNumIPUs(), 1u);
  EXPECT_EQ(m.graph.getReplicationFactor(), 1u);
  Graph of_chips = m.graph.createReplicatedGraph(2);
  EXPECT_EQ(of_chips.getTarget().getNumIPUs(), 1u);
  EXPECT_EQ(of_chips.getTarget().getTilesPerIPU(), 4u);
  EXPECT_EQ(m.graph.createReplicatedGraph(1).getTarget().getNumTiles(), 8u);
  Graph four(model_of(4, 4).getTarget());
  EXPECT_EQ(four.createReplicatedGraph(2).getTarget().getNumIPUs(), 2u);
  EXPECT_EQ(four.createReplicatedGraph(2).createVirtualGraph(1, 3).getTarget().getNumTiles(), 2u);
  EXPECT_EQ(
      four.createReplicatedGraph(2).createVirtualGraph(1, 3).getTopLevelGraph().getTarget().getNumTiles(),
      8u);
}

TEST(PoplarReplicas, SharesThatAreNotEvenAreRefused) {
  Replicated m;
  for (const unsigned factor : {0u, 3u, 6u, 16u})
    expect_throw<graph_replication_error>([&] { m.graph.createReplicatedGraph(factor); },
                                          "2 chips of 4 tiles");
  expect_throw<graph_replication_error>([&] { m.replicas.createReplicatedGraph(2); }, "already, 4 times");
  EXPECT_EQ(m.replicas.createReplicatedGraph(1).getReplicationFactor(), 4u);
  Graph newer(model_of(4, 2).getTarget(), replication_factor(2));
  expect_throw<graph_replication_error>([&] { newer.createReplicatedGraph(2); }, "already, 2 times");
}

TEST(PoplarReplicas, ATensorLiesOnTheTilesOfEachReplica) {
  Replicated m;
  const Tensor t = m.replicas.addVariable(INT, {2, 3}, "t");
  m.replicas.setTileMapping(t[0], 1);
  m.replicas.setTileMapping(t[1], {{}, {Interval(0, 3)}});
  m.replicas.setTileMapping(t[1][2], 0);
  const Graph::TileToTensorMapping expected = {{Interval(5, 6)}, {Interval(0, 5)}};
  EXPECT_EQ(m.replicas.getTileMapping(t), expected);
  const Tensor all = m.graph.getNonReplicatedTensor(t);
  EXPECT_EQ(all.shape(), (Shape{4, 2, 3}));
  const Graph::TileToTensorMapping over_all = m.graph.getTileMapping(all);
  ASSERT_EQ(over_all.size(), 8u);
  for (unsigned replica = 0; replica < 4; ++replica) {
    EXPECT_EQ(over_all[2 * replica], (std::vector<Interval>{Interval(6 * replica + 5, 6 * replica + 6)}));
    EXPECT_EQ(over_all[2 * replica + 1], (std::vector<Interval>{Interval(6 * replica, 6 * replica + 5)}));
  }
}

TEST(PoplarReplicas, ViewsAndClonesStandForAllReplicas) {
  Replicated m;
  const Tensor t = m.add(INT, {3, 2});
  m.count(t);
  const Tensor corner = concat(t[2].reverse(0), t.dimShuffle({1, 0})[0]);
  EXPECT_EQ(m.graph.getNonReplicatedTensor(corner),
            concat(m.graph.getNonReplicatedTensor(t[2].reverse(0)),
                   m.graph.getNonReplicatedTensor(t.transpose()[0]), 1));
  const Tensor copy = m.replicas.clone(corner, "copy");
  EXPECT_EQ(m.run_of(Copy(corner, copy), copy),
            (Values{5, 4, 0, 2, 4, 11, 10, 6, 8, 10, 17, 16, 12, 14, 16, 23, 22, 18, 20, 22}));
  EXPECT_EQ(m.replicas.cloneN(t, 3).shape(), (Shape{3, 3, 2}));
  EXPECT_FALSE(t == m.graph.getNonReplicatedTensor(t)[0]);
  EXPECT_TRUE(t[1].intersectsWith(m.graph.getNonReplicatedTensor(t)[3][1]));
  EXPECT_FALSE(t[1].intersectsWith(m.graph.getNonReplicatedTensor(t)[3][2]));
  const VariableRef variable = t.getVarRegions()[0].var;
  EXPECT_EQ(m.replicas.getVariable(variable), t);
}

TEST(PoplarReplicas, EveryReplicaHasConstantsAndItsNumber) {
  Replicated m;
  const Tensor constant = m.replicas.addConstant<int>(INT, {2}, {7, 8}, "constant"),
               index = m.replicas.addReplicationIndexConstant("index"), t = m.add(INT, {2}),
               number = m.add(UNSIGNED_INT, {});
  m.replicas.setTileMapping(constant, 1);
  m.replicas.setTileMapping(index, 0);
  m.replicas.setInitialValue(t, 5);
  EXPECT_EQ(m.run_of(Sequence(), t), (Values(8, 5)));
  EXPECT_EQ(m.run_of(Copy(constant, t), t), (Values{7, 8, 7, 8, 7, 8, 7, 8}));
  EXPECT_EQ(m.run<unsigned>(Copy(index, number), m.graph.getNonReplicatedTensor(number)),
            (std::vector<unsigned>{0, 1, 2, 3}));
}

TEST(PoplarReplicas, TheHostSeesOneAfterTheOther) {
  Replicated m;
  const Tensor t = m.add(INT, {2});
  m.replicas.createHostWrite("in", t);
  m.replicas.createHostRead("out", t);
  Engine engine(m.graph, Sequence());
  engine.load(m.device);
  Values values = {1, 2, 3, 4, 5, 6, 7, 8}, back(8);
  engine.writeTensor("in", values.data(), values.data() + 8);
  engine.readTensor("out", back.data(), back.data() + 8);
  EXPECT_EQ(back, values);
}

TEST(PoplarReplicas, StreamsOfEachAndOfAll) {
  for (const bool broadcast : {false, true}) {
    Replicated m(2);
    const Tensor t = m.add(INT, {2});
    const DataStream in = m.replicas.addHostToDeviceFIFO(
        "in", INT, 2, broadcast ? ReplicatedStreamMode::BROADCAST : ReplicatedStreamMode::REPLICATE);
    const DataStream out = m.replicas.addDeviceToHostFIFO("out", INT, 2);
    Engine engine(m.graph, Repeat(2, Sequence({Copy(in, t), Copy(t, out)})));
    Values from = {1, 2, 3, 4, 5, 6, 7, 8}, to(8);
    engine.connectStream("in", from.data(), from.data() + 8);
    engine.connectStream("out", to.data(), to.data() + 8);
    engine.load(m.device);
    engine.run();
    EXPECT_EQ(to, broadcast ? (Values{1, 2, 1, 2, 3, 4, 3, 4}) : from);
    Values second(2);  // of the second replica alone: the last transfer stays
    engine.connectStream("out", 1, second.data(), second.data() + 2);
    engine.connectStream("in", from.data());
    engine.run();
    EXPECT_EQ(second, broadcast ? (Values{1, 2}) : (Values{3, 4}));
    expect_throw<stream_connection_error>([&] { engine.connectStream("out", 2, to.data(), to.data() + 2); },
                                          "there is no replica 2");
    expect_throw<stream_connection_error>([&] { engine.connectStream("out", to.data(), to.data() + 6); },
                                          "whole transfers");
  }
}

TEST(PoplarReplicas, RemoteBuffersOfEach) {
  Replicated m(2);
  const Tensor t = m.add(INT, {2}), offset = m.add(UNSIGNED_INT, {1});
  m.count(t);
  m.replicas.setInitialValue(offset, 1u);
  const RemoteBuffer buffer = m.replicas.addRemoteBuffer("far", INT, 2, 3);
  const Tensor u = m.add(INT, {2});
  m.graph.createHostRead("u", m.graph.getNonReplicatedTensor(u));
  Engine engine(m.graph, Sequence({Copy(t, buffer, offset), Copy(buffer, u)}));
  engine.load(m.device);
  Values row = {8, 9}, back(2), seen(4);
  engine.copyToRemoteBuffer(row.data(), "far", 0, 1);
  engine.run();
  engine.copyFromRemoteBuffer("far", back.data(), 1, 1);
  EXPECT_EQ(back, (Values{2, 3}));
  engine.readTensor("u", seen.data(), seen.data() + 4);
  EXPECT_EQ(seen, (Values{0, 0, 8, 9}));
}

TEST(PoplarReplicas, ProgramsOfAllReplicas) {
  Replicated m(2);
  const Tensor t = m.add(INT, {2}, "t"), u = m.add(INT, {2}, "u");
  m.count(t);
  m.replicas.setInitialValue(u, 0);
  EXPECT_EQ(m.run_of(CrossReplicaCopy(t, u, {{0, 1}, {1, 0}}), u), (Values{2, 3, 0, 1}));
  EXPECT_EQ(m.printed(PrintTensor("t", t)), "t: [\n [0 1]\n [2 3]\n]\n");
  EXPECT_EQ(m.run_of(Sequence({WriteUndef(u), Copy(t, u)}), u), (Values{0, 1, 2, 3}));
  const Function function = m.replicas.addFunction(Copy(t, u));
  EXPECT_EQ(m.run_of(Call(function), u), (Values{0, 1, 2, 3}));
  // From the replicated graph to the one around it.
  const Tensor sum = m.variable(INT, {2, 2}, "all");
  EXPECT_EQ(m.run(Copy(m.graph.getNonReplicatedTensor(t), sum), sum), (Values{0, 1, 2, 3}));
  expect_throw<control_program_error>([&] { CrossReplicaCopy(t, u, {{0, 1}}); }, "1 replicas, the graph 2");
  expect_throw<control_program_error>([&] { CrossReplicaCopy(t, u, {{0, 1}, {1, 2}}); }, "no replica 2");
}

TEST(PoplarReplicas, DecisionsThatAllReplicasShare) {
  for (const bool agree : {true, false}) {
    Replicated m(2);
    const Tensor t = m.add(INT, {}, "t"), u = m.add(INT, {}, "u"), which = m.add(INT, {}, "which");
    m.count(t);
    m.replicas.setInitialValue(u, 9);
    m.graph.setInitialValue(m.graph.getNonReplicatedTensor(which), ArrayRef<int>{1, agree ? 1 : 0});
    const Program decisions[] = {If(which, Copy(t, u)), Switch(which, {{1, Copy(t, u)}}),
                                 RepeatWhileTrue(Sequence(), which, Sequence({Copy(t, u), Copy(t, which)})),
                                 Sequence({AssumeEqualAcrossReplicas(which), Copy(t, u)})};
    for (const Program& decision : decisions) {
      if (agree && &decision == &decisions[2]) continue;  // replica 1 would begin again alone
      if (agree)
        EXPECT_EQ(m.run_of(decision, u), (Values{0, 1}));
      else
        expect_throw<application_runtime_error>([&] { m.run_of(decision, u); },
                                                "element 0 differs between replicas 0 and 1");
    }
  }
}

TEST(PoplarReplicas, ALoopEndsWhenAllReplicasSaySo) {
  Replicated m(2);
  const Tensor go = m.add(BOOL, {}, "go"), t = m.add(INT, {}, "t"), u = m.add(INT, {}, "u"),
               no = m.replicas.addConstant(BOOL, {}, false, "no");
  m.replicas.setTileMapping(no, 0);
  m.replicas.setInitialValue(go, true);
  m.count(t);
  EXPECT_EQ(m.run_of(RepeatWhileTrue(Sequence(), go, Sequence({Copy(t, u), Copy(no, go)})), u),
            (Values{0, 1}));
  // One replica's condition is enough to abort.
  const Tensor stop = m.add(BOOL, {}, "stop");
  m.graph.setInitialValue(m.graph.getNonReplicatedTensor(stop), ArrayRef<bool>{false, true});
  expect_throw<application_runtime_error>([&] { m.run_of(AbortOnCondition(stop, "enough"), u); }, "enough");
}

TEST(PoplarReplicas, TensorsOfTheOtherGraphAreRefused) {
  Replicated m;
  const Tensor r = m.add(INT, {2}, "mine"), t = m.variable(INT, {2}, "other");
  const auto refused = [](auto&& call, const char* words) {
    expect_throw<graph_replication_error>(call, words);
  };
  refused([&] { m.graph.setTileMapping(r, 0); }, "getNonReplicatedTensor");
  refused([&] { m.graph.getTileMapping(r); }, "getNonReplicatedTensor");
  refused([&] { m.graph.setInitialValue(r, 1); }, "getNonReplicatedTensor");
  refused([&] { m.graph.clone(r); }, "getNonReplicatedTensor");
  refused([&] { m.graph.createHostRead("r", r); }, "getNonReplicatedTensor");
  refused([&] { concat(r, t); }, "mine");
  refused([&] { m.replicas.setTileMapping(t, 0); }, "other");
  refused([&] { m.replicas.getTileMapping(t); }, "addVariable");
  refused([&] { m.replicas.clone(t); }, "addVariable");
  refused(
      [&] {
        Graph other = m.graph.createReplicatedGraph(2);
        other.setInitialValue(r, 1);
      },
      "mine");
  const auto no_program = [](auto&& call, const char* words) {
    expect_throw<control_program_error>(call, words);
  };
  no_program([&] { Copy(r, t); }, "getNonReplicatedTensor");
  no_program([&] { Copy(t, r); }, "getNonReplicatedTensor");
  const DataStream mine = m.replicas.addHostToDeviceFIFO("mine", INT, 2),
                   theirs = m.graph.addHostToDeviceFIFO("theirs", INT, 2);
  no_program([&] { Copy(mine, t); }, "the tensor is not");
  no_program([&] { Copy(theirs, r); }, "not of this replicated graph");
  const RemoteBuffer far = m.replicas.addRemoteBuffer("far", INT, 2);
  no_program([&] { Copy(far, t); }, "the tensor is not");
  no_program([&] { Execute(m.replicas.addComputeSet(), m.add(BOOL, {})); }, "one answer");
}

#ifdef POPC

namespace {

const char* const sums = R"(
#include <poplar/Vertex.hpp>
using namespace poplar;
struct ScaledSum : public Vertex {
  Input<Vector<int>> x;
  Vector<Input<Vector<int>>> rows;
  Input<int> start;
  Output<int> sum;
  Vector<int> weights;
  int scale;
  void compute() {
    int all = *start;
    for (unsigned i = 0; i < x.size(); ++i) all += weights[i] * x[i];
    for (auto& row : rows)
      for (int value : row) all += value;
    *sum = scale * all;
  }
};
)";

}  // namespace

TEST(PoplarReplicas, VerticesOfEachReplicaWithTheirFields) {
  Replicated m;
  std::stringstream source(sums);
  m.replicas.addCodelets(source);
  const Tensor x = m.add(INT, {2}, "x"), rows = m.add(INT, {2, 2}, "rows"), sum = m.add(INT, {}, "sum");
  m.count(x);
  m.replicas.setInitialValue(rows, 1);
  const ComputeSet set = m.replicas.addComputeSet("set");
  const VertexRef vertex = m.replicas.addVertex(set, "ScaledSum", {{"x", x}});
  EXPECT_EQ(m.graph.getNumVertices(), 4u);
  m.replicas.connect(vertex["rows"], {rows[0], rows[1]});
  m.replicas.connect(vertex["start"], 100);
  m.replicas.connect(vertex["sum"], sum);
  m.replicas.setFieldSize(vertex["weights"], 2);
  m.replicas.setInitialValue(vertex["weights"], Values{1, 10});
  m.replicas.setInitialValue(vertex["scale"], 2);
  m.replicas.setTileMapping(vertex, 1);
  m.replicas.setPerfEstimate(vertex, 17);
  EXPECT_EQ(m.replicas.getFieldSize(vertex["rows"]), 2u);
  EXPECT_EQ(m.replicas.getPerfEstimate(vertex).cycles, 17u);
  // start + x . {1, 10} + the four ones, twice
  EXPECT_EQ(m.run_of(Execute(set), sum), (Values{228, 272, 316, 360}));
  const auto refused = [](auto&& call, const char* words) {
    expect_throw<graph_replication_error>(call, words);
  };
  refused([&] { m.graph.setTileMapping(vertex, 0); }, "of a replicated graph");
  refused([&] { m.graph.setInitialValue(vertex["scale"], 1); }, "of a replicated graph");
  refused([&] { m.graph.setPerfEstimate(vertex, 1); }, "of a replicated graph");
  const VertexRef other = m.graph.addVertex(set, "ScaledSum");
  refused([&] { m.replicas.setTileMapping(other, 0); }, "not of this replicated graph");
  refused([&] { m.replicas.setPerfEstimate(other, 1); }, "not of this replicated graph");
  refused([&] { m.replicas.connect(other["x"], x); }, "not of this replicated graph");
  refused([&] { m.graph.connect(other["x"], x); }, "getNonReplicatedTensor");
}

TEST(PoplarReplicas, AVirtualGraphOfAReplicatedOneIsOnSomeTilesOfEach) {
  Replicated m(2);
  Graph last = m.replicas.createVirtualGraph(3, 4);
  const Tensor t = last.addVariable(INT, {2}, "t");
  last.setTileMapping(t, 0);
  EXPECT_EQ(m.replicas.getTileMapping(t)[3], (std::vector<Interval>{Interval(0, 2)}));
  EXPECT_EQ(m.graph.getTileMapping(m.graph.getNonReplicatedTensor(t))[7],
            (std::vector<Interval>{Interval(2, 4)}));
  EXPECT_EQ(last.convertVirtualTileToPhysicalTile(0), 3u);
  m.count(t);
  EXPECT_EQ(m.run_of(Sequence(), t), (Values{0, 1, 2, 3}));
}

#endif
