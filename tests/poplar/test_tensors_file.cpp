// Tensors that are saved and put into another graph.
#include "tests/poplar/machine.h"

using namespace poplar;
using namespace poplar::program;

namespace {

std::string saved(const Graph& graph, const std::vector<Tensor>& tensors) {
  std::ostringstream out;
  graph.serializeTensors(out, tensors, SerializationFormat::Binary);
  return out.str();
}

std::vector<Tensor> loaded(Graph& graph, const std::string& bytes) {
  std::istringstream in(bytes);
  return graph.deserializeTensors(in, SerializationFormat::Binary);
}

std::string of_two_views() {
  Machine machine;
  Tensor x = machine.counting({2, 3}, "x"), one = machine.graph.addConstant(INT, {}, 9, "one");
  machine.graph.setTileMapping(one, 3);
  return saved(machine.graph, {x.transpose(), concat(x[1], one.expand({0}).broadcast(2, 0))});
}

}  // namespace

TEST(PoplarTensorsFile, ViewsShareTheirVariablesAgain) {
  Machine machine;
  const std::vector<Tensor> tensors = loaded(machine.graph, of_two_views());
  ASSERT_EQ(tensors.size(), 2u);
  EXPECT_EQ(tensors[0].shape(), (std::vector<std::size_t>{3, 2}));
  EXPECT_EQ(tensors[0].elementType(), INT);
  EXPECT_TRUE(tensors[0].intersectsWith(tensors[1]));
  EXPECT_TRUE(tensors[1].containsConstant());
  EXPECT_EQ(machine.run(Sequence(), tensors[0]), (std::vector<int>{0, 3, 1, 4, 2, 5}));
  EXPECT_EQ(machine.run(Sequence(), tensors[1]), (std::vector<int>{3, 4, 5, 9, 9}));
  EXPECT_EQ(machine.graph.getTileMapping(tensors[1])[3], (std::vector<Interval>{{3, 5}}));
}

TEST(PoplarTensorsFile, TheSameTensorsGiveTheSameBytes) { EXPECT_EQ(of_two_views(), of_two_views()); }

TEST(PoplarTensorsFile, WhatIsNoneIsRefused) {
  Machine machine;
  const std::string bytes = of_two_views();
  expect_throw<graph_object_load_error>([&] { loaded(machine.graph, "text"); }, "no saved tensors");
  for (std::size_t size = 30; size < bytes.size(); ++size)
    EXPECT_THROW(loaded(machine.graph, bytes.substr(0, size)), poplar_error) << size;
  expect_throw<graph_object_load_error>([&] { loaded(machine.graph, bytes + "x"); }, "more than they say");
  for (std::size_t i = 30; i < bytes.size(); ++i) {
    std::string damaged = bytes;
    damaged[i] = static_cast<char>(damaged[i] ^ 0x81);
    Machine other;
    try {
      loaded(other.graph, damaged);
    } catch (const poplar_error&) {
    }
  }
  Machine small(2);
  expect_throw<poplar_error>([&] { loaded(small.graph, bytes); }, "there is no tile");
  std::ostringstream out;
  EXPECT_THROW(machine.graph.serializeTensors(out, {machine.counting({2})}, SerializationFormat::JSON),
               poplar_error);
  EXPECT_THROW(saved(machine.graph, {machine.counting({2}).slice(0, 0)}), poplar_error);
}
