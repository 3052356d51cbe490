// Variables, constants and where they lie; what cannot be mapped or made.
#include "tests/poplar/machine.h"

using namespace poplar;
using namespace poplar::program;
using Intervals = std::vector<Interval>;

TEST(PoplarGraph, ConstantsAreConvertedToTheElementType) {
  Machine machine;
  Graph& graph = machine.graph;
  const Tensor c = graph.addConstant<double>(INT, {3}, {1.9, -1.9, 7});
  graph.setTileMapping(c, 1);
  Tensor v = machine.variable(INT, {3});
  EXPECT_EQ(machine.run(Copy(c, v), v), (std::vector<int>{1, -1, 7}));
}

TEST(PoplarGraph, WideIntegersKeepTheirBits) {
  Machine machine;
  const long long big = (1ll << 60) + 1;
  const Tensor c = machine.graph.addConstant(LONGLONG, {}, big);
  machine.graph.setTileMapping(c, 0);
  Tensor v = machine.variable(LONGLONG, {});
  EXPECT_EQ(machine.run<long long>(Copy(c, v), v), std::vector<long long>{big});
}

TEST(PoplarGraph, MinusOneFillsAnUnsignedConstant) {
  Machine machine;
  const Tensor c = machine.graph.addConstant(UNSIGNED_SHORT, {2}, -1);
  machine.graph.setTileMapping(c, 0);
  Tensor v = machine.variable(UNSIGNED_SHORT, {2});
  EXPECT_EQ(machine.run<unsigned short>(Copy(c, v), v), (std::vector<unsigned short>{0xffff, 0xffff}));
}

TEST(PoplarGraph, AConstantThatTheTypeCannotHoldIsAnOverflow) {
  Machine machine;
  expect_throw<overflow_error>([&] { machine.graph.addConstant(UNSIGNED_SHORT, {}, 65536, "limit"); },
                               "limit");
  EXPECT_NO_THROW(machine.graph.addConstant(UNSIGNED_SHORT, {}, 65535));
  expect_throw<overflow_error>([&] { machine.graph.addConstant(CHAR, {}, 1e6); }, "char");
}

TEST(PoplarGraph, AConstantTakesAsManyValuesAsElements) {
  Machine machine;
  expect_throw<tensor_creation_error>(
      [&] {
        machine.graph.addConstant<float>(FLOAT, {3}, {1, 2});
      },
      "2 values");
  EXPECT_NO_THROW(machine.graph.addConstant<float>(FLOAT, {3}, {1, 2, 3}));
  expect_throw<type_error>([&] { machine.graph.addVariable(Type(), {3}); }, "element type");
}

TEST(PoplarGraph, HalvesRoundToNearestEven) {
  Machine machine;
  const Tensor c = machine.graph.addConstant<float>(HALF, {3}, {2049, 2051, 1e6f});
  machine.graph.setTileMapping(c, 0);
  Tensor bits = machine.variable(UNSIGNED_SHORT, {3});
  EXPECT_EQ(machine.run<unsigned short>(Copy(c.reinterpret(UNSIGNED_SHORT), bits), bits),
            (std::vector<unsigned short>{0x6800, 0x6802, 0x7c00}));
}

TEST(PoplarGraph, MappingIsOfPlacesAndALaterCallWins) {
  Machine machine;
  Tensor t = machine.graph.addVariable(FLOAT, {2, 3}, "t");
  machine.graph.setTileMapping(t, 3);
  machine.graph.setTileMapping(t[0].slice(1, 3), 1);
  Graph::TileToTensorMapping mapping = machine.graph.getTileMapping(t);
  ASSERT_EQ(mapping.size(), 4u);
  EXPECT_EQ(mapping[1], (Intervals{{1, 3}}));
  EXPECT_EQ(mapping[3], (Intervals{{0, 1}, {3, 6}}));
  EXPECT_EQ(machine.graph.getTileMapping(t.transpose())[1], (Intervals{{2, 3}, {4, 5}}));
}

TEST(PoplarGraph, LinearSharesAreEqual) {
  Machine machine;
  Tensor t = machine.variable(FLOAT, {8});
  const auto mapping = machine.graph.getTileMapping(t);
  for (std::size_t tile = 0; tile < 4; ++tile)
    EXPECT_EQ(mapping[tile], (Intervals{{2 * tile, 2 * tile + 2}}));
}

TEST(PoplarGraph, WhatIsOnNoTileIsNamed) {
  Machine machine;
  Tensor t = machine.graph.addVariable(FLOAT, {6}, "half-mapped");
  machine.graph.setTileMapping(t.slice(0, 3), 0);
  bool complete = true;
  EXPECT_EQ(machine.graph.getTileMapping(t, &complete)[0], (Intervals{{0, 3}}));
  EXPECT_FALSE(complete);
  EXPECT_EQ(machine.graph.getTileMapping(t, false)[0], (Intervals{{0, 3}}));
  expect_throw<invalid_tile_mapping>([&] { machine.graph.getTileMapping(t); }, "half-mapped{6}");
  Tensor u = machine.variable(FLOAT, {6});
  expect_throw<invalid_tile_mapping>([&] { Engine(machine.graph, Copy(t, u)); },
                                     "element 3 of variable 'half-mapped'");
  machine.graph.setTileMapping(t, 0);
  EXPECT_NO_THROW(Engine(machine.graph, Copy(t, u)));
}

TEST(PoplarGraph, TilesThatAreNotThereAreRefused) {
  Machine machine;
  Tensor t = machine.graph.addVariable(FLOAT, {6}, "t");
  expect_throw<invalid_tile_mapping>([&] { machine.graph.setTileMapping(t, 4); }, "no tile 4");
  EXPECT_NO_THROW(machine.graph.setTileMapping(t, 3));
  Graph::TileToTensorMapping five(5);
  five[4] = {{0, 6}};
  expect_throw<invalid_tile_mapping>([&] { machine.graph.setTileMapping(t, five); }, "no tile 4");
}

TEST(PoplarGraph, VirtualGraphsCountTheirOwnTiles) {
  Machine machine(4, 2);
  Graph upper = machine.graph.createVirtualGraph(2, 4), firsts = machine.graph.createVirtualGraph(1u);
  Tensor t = upper.addVariable(FLOAT, {2}, "t");
  upper.setTileMapping(t, 1);
  EXPECT_EQ(machine.graph.getTileMapping(t)[3].size(), 1u);
  EXPECT_EQ(upper.getTileMapping(t)[1].size(), 1u);
  EXPECT_EQ(firsts.getTarget().getNumTiles(), 2u);
  firsts.setTileMapping(t, 1);
  EXPECT_EQ(machine.graph.getTileMapping(t)[4].size(), 1u);
  expect_throw<invalid_tile_mapping>([&] { upper.getTileMapping(t); }, "no tile of this graph");
  expect_throw<invalid_tile_mapping>([&] { upper.setTileMapping(t, 2); }, "no tile 2");
  Graph some = machine.graph.createVirtualGraph(std::vector<unsigned>{0, 2});
  EXPECT_EQ(some.getTarget().getNumTiles(), 4u);
}

TEST(PoplarGraph, ClonesKeepMappingAndOrder) {
  Machine machine;
  Tensor t = machine.counting({2, 4});
  const Tensor same = machine.graph.clone(t.transpose());
  EXPECT_EQ(same.shape(), (std::vector<std::size_t>{4, 2}));
  EXPECT_EQ(machine.graph.getTileMapping(same), machine.graph.getTileMapping(t.transpose()));
  EXPECT_FALSE(same.isContiguous());
  EXPECT_TRUE(machine.graph.clone(t.transpose(), {}, TensorCloneMethod::CREATE_NEW_ORDER).isContiguous());
  EXPECT_TRUE(machine.graph.clone(t.broadcast(2, 0)).isParallelWriteable());
  EXPECT_FALSE(machine.graph.clone(t.broadcast(2, 0), {}, TensorCloneMethod::PRESERVE_ORDER_AND_ALIASES)
                   .isParallelWriteable());
  EXPECT_EQ(machine.graph.clone(HALF, t).elementType(), HALF);
}

TEST(PoplarGraph, NamesOfStreamsAndHandlesAreUsedOnce) {
  Machine machine;
  machine.graph.addHostToDeviceFIFO("in", FLOAT, 3);
  expect_throw<poplar_error>([&] { machine.graph.addDeviceToHostFIFO("in", FLOAT, 3); }, "in");
  Tensor t = machine.counting({3});
  machine.graph.createHostRead("h", t);
  machine.graph.createHostWrite("h", t);
  expect_throw<poplar_error>([&] { machine.graph.createHostRead("h", t); }, "h");
  const Tensor c = machine.graph.addConstant(INT, {3}, 1);
  expect_throw<control_program_error>([&] { machine.graph.createHostWrite("c", c); }, "constants");
}

TEST(PoplarGraph, AGraphNeedsATarget) {
  Graph none;
  expect_throw<poplar_error>([&] { none.addVariable(FLOAT, {3}); }, "without a target");
  expect_throw<poplar_error>([] { Graph graph{Target()}; }, "without a machine");
  expect_throw<graph_replication_error>([] { Graph graph(small_device(4, 2), replication_factor(3)); },
                                        "3 replicas");
}
