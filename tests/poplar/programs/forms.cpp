// One call of every form that programs use: it must compile without a word, as C++11, and give what is
// printed.
#include <array>
#include <cassert>
#include <iostream>
#include <poplar/DeviceManager.hpp>
#include <poplar/Engine.hpp>
#include <poplar/Graph.hpp>
#include <poplar/IPUModel.hpp>
#include <poplar/TypeTraits.hpp>
#include <poplar/Vertex.hpp>
#include <poplar/VertexTable.hpp>
#include <sstream>
#include <string>
#include <vector>

// Programs bring a reader of types of their own, there: the library has none that would be as good.
namespace std {
istream& operator>>(istream& in, poplar::Type& type) {
  string name;
  in >> name;
  type = name == "half" ? poplar::HALF : poplar::FLOAT;
  return in;
}
}  // namespace std

using namespace poplar;
using namespace poplar::program;

static int failures = 0;
#define HOLDS(what)                                              \
  do {                                                           \
    if (!(what)) {                                               \
      ++failures;                                                \
      std::cout << "line " << __LINE__ << ": " << #what << "\n"; \
    }                                                            \
  } while (false)

static std::size_t countOf(ArrayRef<std::size_t> list) { return list.size(); }
static std::string pathOf(const DebugContext& context = {}) { return context.getPathName(); }

static void smallTypes() {
  std::istringstream word("half");
  Type read;
  word >> read;
  HOLDS(read == HALF);
  unsigned n = 3;
  std::vector<std::size_t> list = {1, 2};
  std::array<std::size_t, 3> fixed = {{1, 2, 3}};
  HOLDS(countOf({}) == 0);
  HOLDS(countOf({4}) == 1);
  HOLDS(countOf({n}) == 1);
  HOLDS(countOf({n, n}) == 2);
  HOLDS(countOf(list) == 2);
  HOLDS(countOf(fixed) == 3);
  HOLDS(countOf(std::size_t(7)) == 1);
  HOLDS((ArrayRef<std::size_t>(list.data(), 2) == ArrayRef<std::size_t>(list)));
  HOLDS(ArrayRef<std::size_t>(list).slice(1)[0] == 2);
  HOLDS(ArrayRef<std::size_t>(list).cloneAsVector() == list);
  std::string name = StringRef("name");
  HOLDS(StringRef(name) == "name" && StringRef("a") < "b" && StringRef("a") + "b" == "ab");
  HOLDS(Interval(2, 5).size() == 3 && Interval(0, n) == Interval(0, 3));
  HOLDS(FLOAT.toString() == "float" && UNSIGNED_INT.toString() == "unsigned int" && HALF.isFloatingPoint());
  HOLDS(equivalent_device_type<float>().value == FLOAT && equivalent_device_type<bool>().value == BOOL);
  HOLDS(TypeTraits::make<double>().isFloat && TypeTraits::isSimpleType<int>());
  OptionFlags flags{{"b", "1"}, {"a", "2"}};
  flags.set("c", "3");
  flags.set({{"d", "4"}});
  HOLDS(flags.at("a") == "2" && flags.size() == 4 && flags.begin()->first == "a");
}

static void debugContexts() {
  DebugNameAndId parent("outer");
  DebugInfo info(DebugContext(parent, "call"), "library::call");
  HOLDS(pathOf() == "" && pathOf("x") == "x" && pathOf(std::string("x")) == "x" && pathOf({"x"}) == "x");
  HOLDS(pathOf({parent}) == "outer" && pathOf(parent) == "outer" && pathOf({parent, "x"}) == "outer/x");
  HOLDS(pathOf({info}) == "outer/call" && pathOf({info, "x"}) == "outer/call/x");
  HOLDS(pathOf({DebugNameAndId(parent, "y"), "z"}) == "outer/y/z");
  DebugContext context("call");
  HOLDS(pathOf({context, "z"}) == "call/z");
  info.setValue("shape", ProfileValue::Vector{1, 2});
}

static void tensors(Graph& graph) {
  unsigned n = 6;
  Tensor t = graph.addVariable(FLOAT, {n, 4}, "t");
  graph.addVariable(INT, {});
  graph.addVariable(INT, {n}, VariableMappingMethod::LINEAR);
  graph.addVariable(INT, t.shape(), VariableMappingMethod::LINEAR, {DebugNameAndId("d"), "v"});
  HOLDS(t.rank() == 2 && t.dim(0) == 6 && t.shape() == (std::vector<std::size_t>{6, 4}));
  HOLDS(t.numElements() == 24 && t.elementType() == FLOAT && t.valid() && !Tensor().valid());
  HOLDS(t[1].rank() == 1 && t[1][2].rank() == 0 && t.index({1, 2}) == t[1][2]);
  HOLDS(t.slice(1, 3) == t.slice({1, 0}, {3, 4}));
#ifndef __clang__  // which warns of braces around a number
  HOLDS(t.slice({1}, {3}) == t.slice(1, 3, 0) && concat(t, t, {1}).dim(1) == 8);
#endif
  HOLDS(t.slice(Interval(1, 3), 1) == t.slice(1, 3, 1) && t.slice({0, n}) == t);
  HOLDS(t.slices({{0, 2}, {4, 6}}).size() == 2);
  HOLDS(t.slices(std::vector<Interval>{{0, 2}, {4, 6}}).size() == 2);
  HOLDS(t.slices(std::vector<std::vector<Interval>>{{{0, 2}, {4, 6}}}).at(0).dim(0) == 4);
  HOLDS(t.slices(std::vector<unsigned>{1, 3, 5}).size() == 3);
  HOLDS(t.flatten().dim(0) == 24 && t.flatten(0, 2) == t.flatten() &&
        t.reshape({2, 3, 4}).flatten(0, 2) == t);
  HOLDS(t.reshapePartial(0, 1, {2, 3}).rank() == 3 && t.transpose().dim(0) == 4);
  HOLDS(t.dimShuffle({1, 0}) == t.transpose() && t.dimRoll(1) == t.transpose());
  HOLDS(t.dimShufflePartial({1}, {0}) == t.transpose() && t.dimRoll(1, 0) == t.transpose());
  HOLDS(t.expand({0, 0, 2}).shape() == (std::vector<std::size_t>{1, 1, 6, 4, 1}));
  HOLDS(t.expand({1}).squeeze() == t && t.expand({1}).squeeze({1}) == t);
  HOLDS(t.broadcast(2, 0).dim(0) == 12 && t.upsample(2, 1, UpsampleMethod::REPEAT).dim(1) == 8);
  HOLDS(t.subSample(4, 0).dim(0) == 2 && t.reverse(0).reverse(0) == t);
  HOLDS(t.reinterpret(UNSIGNED_INT).elementType() == UNSIGNED_INT);
  HOLDS(concat(t, t).dim(0) == 12 && concat(t, t, 1).dim(1) == 8 && concat({t, t, t}, 1).dim(1) == 12);
  HOLDS(concat(std::vector<Tensor>{t, t}).dim(0) == 12);
  HOLDS(append(t, t[0]).dim(0) == 7 && append(t, t.slice(0, 1), 0).dim(0) == 7);
  HOLDS(t.isContiguous() && !t.transpose().isContiguous() && t.isParallelWriteable());
  HOLDS(concat(t, t).containsAliases() && !t.containsConstant() && t[0].intersectsWith(t) &&
        !t[0].intersectsWith(t[1]));
  HOLDS(t.getContiguousRegions() == (std::vector<Interval>{{0, 24}}));
  HOLDS(t.getVarRegions().size() == 1 && t.getVarRegions()[0].interval == Interval(0, 24));
  HOLDS(t.shapeToString() == "{6,4}" && t.getVarStr() == "t");
  Tensor none;
  none = t;
  HOLDS(none == t && none != t.transpose());
}

static void constants(Graph& graph) {
  std::vector<float> values = {1, 2, 3, 4};
  Tensor list[] = {
      graph.addConstant<float>(FLOAT, {4}, {1.0, 1.5, 2.0, 2.5}),
      graph.addConstant<float>(FLOAT, {2, 2}, values, "c"),
      graph.addConstant(FLOAT, {4}, values.data()),
      graph.addConstant(FLOAT, {4}, ArrayRef<float>(values)),
      graph.addConstant(INT, {}, 0),
      graph.addConstant(UNSIGNED_INT, {3}, 7u, {DebugNameAndId("d")}),
      graph.addConstant(HALF, {3}, 1.5, {DebugNameAndId("d"), "c"}),
      graph.addConstant(BOOL, {}, true),
      graph.addConstant<int>(FLOAT, {2}, {1, 2}),
  };
  for (const Tensor& t : list) HOLDS(t.containsConstant());
  unsigned seven = 0;
  float number = 0;
  HOLDS(list[5][1].getConstantValue(&seven) && seven == 7 && list[1][1][0].getConstantValue(&number) &&
        number == 3);
  HOLDS(!list[5].getConstantValue(&seven));
  Tensor v = graph.addVariable(FLOAT, {4});
  graph.setInitialValue(v, 2.0f);
  graph.setInitialValue(v, 2);
  graph.setInitialValue<float>(v, values);
  graph.setInitialValue(v, ArrayRef<float>(values));
  Tensor same = graph.clone(v), other = graph.clone(INT, v, "other", TensorCloneMethod::CREATE_NEW_ORDER);
  HOLDS(same.shape() == v.shape() && other.elementType() == INT);
}

static void mapping(Graph& graph) {
  Tensor t = graph.addVariable(FLOAT, {10}, "mapped");
  bool complete = true;
  graph.setTileMapping(t.slice(0, 4), 2);
  graph.getTileMapping(t, &complete);
  HOLDS(!complete);
  Graph::TileToTensorMapping wanted(graph.getTarget().getNumTiles());
  wanted[1] = {{0, 2}, {7, 10}};
  wanted[3] = {Interval(2, 7)};
  graph.setTileMapping(t, wanted);
  HOLDS(graph.getTileMapping(t) == wanted);
  Graph part = graph.createVirtualGraph(1, 4);
  HOLDS(part.getTarget().getNumTiles() == 3 && part.getTileMapping(t)[0].size() == 2);
  graph.setTileMapping(t, 0);
}

static void programs(Graph& graph, const Device& device) {
  Tensor t = graph.addVariable(INT, {2}, VariableMappingMethod::LINEAR, "t");
  Tensor u = graph.addVariable(INT, {1, 2}, VariableMappingMethod::LINEAR, "u");
  Tensor p = graph.addVariable(INT, {}, VariableMappingMethod::LINEAR, "p");
  graph.setInitialValue(p, 1);
  Function function = graph.addFunction(Copy(t, u));
  Program copy = Copy(t, u), empty;
  Sequence longer({copy, copy});
  Sequence main({Copy(t, u), Sequence{}, longer, Call(function), Sync(SyncType::INTERNAL)}, "main");
  std::vector<Program> list = {copy, empty};
  main.add(Sequence(ArrayRef<Program>(list)));
  main.add(Sequence{copy, WriteUndef(u)});
  main.add(Sequence(copy, longer, Sequence(longer, copy)));
  main.add(Repeat(3, Sequence({copy}), {"loop"}));
  main.add(If(p, copy));
  main.add(If(p, copy, Sequence(), {"if"}));
  main.add(Switch(p, {{0, copy}, {1, Sequence()}}));
  main.add(Switch(p, {{0, copy}}, Sequence()).add(5, copy));
  main.add(PrintTensor(t));
  main.add(PrintTensor("t", t, PrintTensorFmt(10, 2), {"print"}));
  Sequence one_of = copy;
  Program body = one_of;
  Sequence again = body;
  main.add(Sequence(again, {"again"}));
  HOLDS(empty.isEmpty() && !main.isEmpty());
  graph.createHostWrite("write", t);
  graph.createHostRead("read", t, true);
  Engine one(graph, main, {{"debug.retainDebugInformation", "true"}});
  auto engine = Engine{graph, main, {{"opt.maxCopyMergeSize", "8388608"}, {"autoReport.all", "false"}}};
  Engine many(graph, {copy, main}, OptionFlags{{"debug.allowOutOfMemory", "true"}});
  Engine compiled(compileGraph(graph, {copy}));
  many.load(device);
  int host[2] = {3, 4};
  many.writeTensor("write", host, host + 2);
  many.writeTensor("write", ArrayRef<int>(host, 2));
  many.run();
  many.run(1);
  int back[2] = {0, 0};
  many.readTensor("read", back, back + 2);
  HOLDS(back[1] == 4);
  Engine moved = std::move(engine);
  moved.loadAndRun(device, 0);
}

int main() {
  IPUModel model("ipu2");
  char version[] = "ipu1";
  IPUModel old(version);
  HOLDS(old.tilesPerIPU == 1216 && model.tilesPerIPU == 1472);
  model.tilesPerIPU = 4;
  model.numIPUs = 2;
  model.minIPUSyncDelay = 0;
  model.relativeSyncDelay = IPUModel::RelativeSyncDelayType::NO_DELAY;
  Device device = model.createDevice();
  Device other = std::move(device);
  device = std::move(other);
  Target target = device.getTarget();
  HOLDS(target.getNumTiles() == 8 && target.getTileClockFrequency() > 1e9 && target.getTypeSize(HALF) == 2);
  // Templates of two arguments of one type take these together.
  HOLDS((std::is_same<decltype(target.getAtomicStoreGranularity()), std::size_t>::value &&
         std::is_same<decltype(target.getTypeSize(HALF)), std::size_t>::value));
  Graph graph(target);
  Graph replicas(device, replication_factor(2));
  HOLDS(replicas.getReplicationFactor() == 2 && replicas.getTarget().getNumTiles() == 4);
  smallTypes();
  debugContexts();
  tensors(graph);
  constants(graph);
  mapping(graph);
  programs(graph, device);
  std::cout << failures << " forms are not as they should be\n";
  return failures;
}
