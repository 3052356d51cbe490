// Codelets: what their fields may be, what they are refused for, and that they are compiled once.
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "tests/poplar/machine.h"

using namespace poplar;
using namespace poplar::program;
using Values = std::vector<int>;

#ifdef POPC

namespace {

void add(Graph& graph, const std::string& code) {
  std::stringstream source("#include <poplar/Vertex.hpp>\nusing namespace poplar;\n" + code);
  graph.addCodelets(source);
}

// A machine with codelets and one vertex of a type on tile 1.
struct One : Machine {
  One(const std::string& code, const char* type) {
    add(graph, code);
    set = graph.addComputeSet("set");
    vertex = graph.addVertex(set, type);
    graph.setTileMapping(vertex, 1);
  }
  ComputeSet set;
  VertexRef vertex;
};

const char* const increment = R"(
class Increment : public Vertex {
 public:
  Input<Vector<int>> x;
  Output<Vector<int>> y;
  bool compute() {
    for (unsigned i = 0; i < x.size(); ++i) {
      int& element = x[i];
      y[i] = element + 1;
    }
    return true;
  }
};)";

const char* const own = R"(
struct Own : public Vertex {
  Output<Vector<int>> out;
  Vector<short> table;
  unsigned short small;
  const bool flag;
  Own();
  void compute() {
    for (unsigned i = 0; i < table.size(); ++i) out[i] = table[i] + small + (flag ? 100 : 0);
  }
};)";

}  // namespace

// What is read through a reference to a constant, or of a list, is constant; the C library's memory is there.
TEST(PoplarCodelets, ElementsOfInputsAsSourcesTakeThem) {
  One m(R"(
struct Walk : public Vertex {
  Vector<Input<Vector<unsigned short, VectorLayout::ONE_PTR>>, VectorLayout::SHORT_SPAN> lists;
  Output<Vector<unsigned short>> y;
  void compute() {
    for (unsigned i = 0; i < lists.size(); ++i) {
      auto* next = &lists[i][0];
      next = reinterpret_cast<const unsigned short*>(static_cast<const void*>(next)) + 1;
      std::memcpy(&y[i], next, sizeof *next);
    }
  }
};)",
        "Walk");
  const Tensor x = m.variable(UNSIGNED_SHORT, {2, 2}, "x"), y = m.variable(UNSIGNED_SHORT, {2}, "y");
  m.graph.setInitialValue(x, ArrayRef<unsigned short>{1, 2, 3, 4});
  m.graph.connect(m.vertex["lists"], {x[0], x[1]});
  m.graph.connect(m.vertex["y"], y);
  EXPECT_EQ(m.run<unsigned short>(Execute(m.set), y), (std::vector<unsigned short>{2, 4}));
}

// The process goes on, and so does the machine.
TEST(PoplarCodelets, AnIntegerDividedByZeroIsTheSdksException) {
  One m(R"(
struct Divide : public Vertex {
  Input<Vector<int>> x;
  Input<Vector<int>> by;
  Output<Vector<int>> y;
  void compute() {
    for (unsigned i = 0; i < x.size(); ++i) y[i] = x[i] / by[i];
  }
};)",
        "Divide");
  const Tensor x = m.counting({8}, "x"), by = m.variable(INT, {8}, "by"), y = m.variable(INT, {8}, "y");
  for (const auto& [field, tensor] : {std::pair("x", x), std::pair("by", by), std::pair("y", y)})
    m.graph.connect(m.vertex[field], tensor);
  for (int round = 0; round < 2; ++round) {
    m.graph.setInitialValue(by, ArrayRef<int>{1, 1, 1, 1, 1, 1, 1, 0});
    expect_throw<application_runtime_error>([&] { m.run(Execute(m.set), y); }, "Divide");
  }
  m.graph.setInitialValue(by, ArrayRef<int>{1, 1, 1, 1, 1, 1, 1, 7});
  EXPECT_EQ(m.run(Execute(m.set), y).back(), 1);
}

TEST(PoplarCodelets, AFieldReadsWhatItIsConnectedTo) {
  One m(increment, "Increment");
  Tensor x = m.counting({2, 3}, "x"), y = m.variable(INT, {6}, "y");
  m.graph.connect(m.vertex["x"], x.transpose());
  m.graph.connect(m.vertex["y"], y.reverse(0));
  EXPECT_EQ(m.run(Execute(m.set), y), (Values{6, 3, 5, 2, 4, 1}));
}

TEST(PoplarCodelets, OneVertexMayReadWhatItWrites) {
  One m(increment, "Increment");
  Tensor x = m.variable(INT, {6}, "x");
  m.graph.setInitialValue(x, 0);
  m.graph.connect(m.vertex["x"], x.slice(1, 5));
  m.graph.connect(m.vertex["y"], x.slice(2, 6));
  EXPECT_EQ(m.run(Execute(m.set), x), (Values{0, 0, 1, 2, 3, 4}));  // it sees what it has written
  One gathered(increment, "Increment");
  Tensor y = gathered.counting({6}, "y");
  gathered.graph.connect(gathered.vertex["x"], y.reverse(0));
  gathered.graph.connect(gathered.vertex["y"], y.reverse(0));
  EXPECT_EQ(gathered.run(Repeat(3, Execute(gathered.set)), y), (Values{3, 4, 5, 6, 7, 8}));
}

TEST(PoplarCodelets, TwoVerticesMustNotWriteOneElement) {
  One m(increment, "Increment");
  Tensor x = m.counting({4}, "x"), y = m.variable(INT, {4}, "y");
  VertexRef second = m.graph.addVertex(m.set, "Increment", {{"x", x}, {"y", y}});
  m.graph.setTileMapping(second, 2);
  m.graph.connect(m.vertex["x"], x);
  m.graph.connect(m.vertex["y"], y.slice(0, 2));
  expect_throw<graph_cycle_error>([&] { Engine(m.graph, Execute(m.set)); }, "element 0 of 'y'");
}

TEST(PoplarCodelets, AVertexMustNotReadWhatAnotherWrites) {
  One m(increment, "Increment");
  Tensor x = m.counting({4}, "x"), y = m.variable(INT, {4}, "y"), z = m.variable(INT, {4}, "z");
  VertexRef second = m.graph.addVertex(m.set, "Increment", {{"x", y}, {"y", z}});
  m.graph.setTileMapping(second, 2);
  m.graph.connect(m.vertex["x"], x);
  m.graph.connect(m.vertex["y"], y);
  expect_throw<graph_cycle_error>([&] { Engine(m.graph, Execute(m.set)); }, "reads it");
  ComputeSet alone = m.graph.addComputeSet("alone");
  VertexRef third = m.graph.addVertex(alone, "Increment", {{"x", y}, {"y", z}});
  m.graph.setTileMapping(third, 2);
  EXPECT_NO_THROW(Engine(m.graph, Execute(alone)));
}

TEST(PoplarCodelets, StateHasInitialValues) {
  One m(own, "Own");
  Tensor out = m.variable(INT, {3}, "out");
  m.graph.connect(m.vertex["out"], out);
  m.graph.setInitialValue(m.vertex["table"], std::vector<int>{5, -6, 7});
  m.graph.setInitialValue(m.vertex["small"], 65535u);
  m.graph.setInitialValue(m.vertex["flag"], true);
  EXPECT_EQ(m.run(Execute(m.set), out), (Values{65640, 65629, 65642}));
  expect_throw<overflow_error>([&] { m.graph.setInitialValue(m.vertex["small"], 65536); }, "unsigned short");
  expect_throw<poplar_error>([&] { m.graph.setInitialValue(m.vertex["out"], 3); }, "connect a tensor");
  expect_throw<poplar_error>([&] { m.graph.setInitialValue(m.vertex["table"], 3); }, "takes a list");
}

TEST(PoplarCodelets, StateIsSetElementByElement) {
  One m(own, "Own");
  Tensor out = m.variable(INT, {3}, "out");
  m.graph.connect(m.vertex["out"], out);
  expect_throw<no_size_specified>([&] { m.graph.getFieldSize(m.vertex["table"]); }, "no size yet");
  expect_throw<no_size_specified>([&] { m.graph.setInitialValue(m.vertex["table"][0], 1); }, "setFieldSize");
  m.graph.setFieldSize(m.vertex["table"], 3);
  EXPECT_EQ(m.graph.getFieldSize(m.vertex["table"]), 3u);
  for (std::size_t i = 0; i < 3; ++i) m.graph.setInitialValue(m.vertex["table"][i], static_cast<int>(10 * i));
  EXPECT_EQ(m.run(Execute(m.set), out), (Values{0, 10, 20}));
}

TEST(PoplarCodelets, ListsOfVectorsHaveTheirOwnLengths) {
  One m(R"(
    class Lengths : public Vertex {
     public:
      Vector<InOut<Vector<int>>> lists;
      bool compute() {
        for (auto& list : lists)
          for (auto& value : list) value = static_cast<int>(list.size());
        return true;
      }
    };)",
        "Lengths");
  Tensor t = m.counting({6}, "t");
  m.graph.setFieldSize(m.vertex["lists"], 3);
  m.graph.connect(m.vertex["lists"][0], t.slice(0, 1));
  m.graph.connect(m.vertex["lists"][1], t.slice(1, 3));
  expect_throw<graph_connection_error>([&] { Engine(m.graph, Execute(m.set)); }, "vector 2 of field 'lists'");
  m.graph.connect(m.vertex["lists"][2], t.slice(3, 6));
  EXPECT_EQ(m.run(Execute(m.set), t), (Values{1, 2, 2, 3, 3, 3}));
}

TEST(PoplarCodelets, AListIsAsLongAsWhatItIsConnectedTo) {
  const char* const code = R"(
    struct Sums : public Vertex {
      Input<VectorList<int, VectorListLayout::DELTAN>> lists;
      Vector<Vector<int>> own;
      Output<Vector<int>> out;
      bool compute() {
        for (unsigned i = 0; i < lists.size(); ++i) out[i] = lists[i][0] + own[i][0];
        return true;
      }
    };)";
  One m(code, "Sums");
  Tensor t = m.counting({6}, "t"), out = m.variable(INT, {3}, "out");
  m.graph.connect(m.vertex["out"], out);
  m.graph.connect(m.vertex["lists"][2], t.slice(5, 6));
  m.graph.setInitialValue(m.vertex["own"][2], std::vector<int>{300});
  EXPECT_EQ(m.graph.getFieldSize(m.vertex["lists"]), 3u);
  expect_throw<graph_connection_error>([&] { Engine(m.graph, Execute(m.set)); }, "vector 0 of field");
  m.graph.connect(m.vertex["lists"][0], t.slice(0, 2));
  m.graph.connect(m.vertex["lists"][1], t.slice(2, 5));
  m.graph.setInitialValue(m.vertex["own"][0], std::vector<int>{100});
  m.graph.setInitialValue(m.vertex["own"][1], std::vector<int>{200, 0});
  m.graph.setFieldSize(m.vertex["lists"], 3);  // once they are there
  expect_throw<graph_connection_error>([&] { m.graph.setFieldSize(m.vertex["lists"], 2); }, "3 already");
  EXPECT_EQ(m.run(Execute(m.set), out), (Values{100, 202, 305}));
}

TEST(PoplarCodelets, ListsOfElementsAreScattered) {
  One m(R"(
    class Each : public Vertex {
     public:
      Vector<Output<int>> out;
      bool compute() {
        for (unsigned i = 0; i < out.size(); ++i) *out[i] = static_cast<int>(10 * i);
        return true;
      }
    };)",
        "Each");
  Tensor t = m.variable(INT, {4}, "t");
  m.graph.connect(m.vertex["out"], concat(t[3].reshape({1}), t.slice(0, 2)));
  m.graph.setInitialValue(t, 7);
  EXPECT_EQ(m.run(Execute(m.set), t), (Values{10, 20, 7, 0}));
}

TEST(PoplarCodelets, VectorListsAndLayouts) {
  One m(R"(
    class Rows : public Vertex {
     public:
      Input<VectorList<int, VectorListLayout::DELTAN>> rows;
      Output<Vector<int, VectorLayout::ONE_PTR, 8>> sums;
      bool compute() {
        for (unsigned i = 0; i < rows.size(); ++i) {
          sums[i] = 0;
          for (int value : rows[i]) sums[i] += value;
        }
        return true;
      }
    };)",
        "Rows");
  Tensor t = m.counting({2, 3}, "t"), sums = m.variable(INT, {2}, "sums");
  m.graph.connect(m.vertex["rows"], t);
  m.graph.connect(m.vertex["sums"], sums);
  EXPECT_EQ(m.run(Execute(m.set), sums), (Values{3, 12}));
}

TEST(PoplarCodelets, AllWorkersShareAMultiVertex) {
  One m(R"(
    class Share : public MultiVertex {
     public:
      InOut<Vector<int>> data;
      bool compute(unsigned worker) {
        for (unsigned i = worker; i < data.size(); i += numWorkers()) data[i] += 1 + static_cast<int>(worker);
        return true;
      }
    };)",
        "Share");
  Tensor t = m.variable(INT, {8}, "t");
  m.graph.setInitialValue(t, 0);
  m.graph.connect(m.vertex["data"], t);
  EXPECT_EQ(m.run(Execute(m.set), t), (Values{1, 2, 3, 4, 5, 6, 1, 2}));
}

TEST(PoplarCodelets, TemplatesAreNamedByTheirArguments) {
  Machine m;
  add(m.graph, R"(
    namespace kinds {
    enum class Way { UP, DOWN };
    template <class T, Way W, bool negate, unsigned n>
    class Move : public SupervisorVertexIf<negate> {
     public:
      InOut<T> x;
      bool compute() {
        *x = static_cast<T>((W == Way::UP ? *x + n : *x - n) * (negate ? -1 : 1));
        return true;
      }
    };
    template class Move<float, Way::UP, false, 3>;
    template class Move<half, Way::DOWN, true, 8>;
    template class Move<unsigned, Way::UP, false, 1>;
    })");
  EXPECT_TRUE(m.graph.hasCodelet("kinds::Move<half, kinds::Way::DOWN, true, 8>"));
  EXPECT_TRUE(m.graph.hasCodelet("kinds::Move<unsigned int,kinds::Way::UP,false,1>"));
  EXPECT_FALSE(m.graph.hasCodelet("kinds::Move<half,kinds::Way::UP,true,8>"));
  ComputeSet set = m.graph.addComputeSet("set");
  Tensor x = m.variable(HALF, {}, "x"), bits = m.variable(UNSIGNED_SHORT, {}, "bits");
  m.graph.setInitialValue(x, 2);
  m.graph.setTileMapping(m.graph.addVertex(set, "kinds::Move<half,kinds::Way::DOWN,true,8>", {{"x", x}}), 0);
  const Sequence both({Execute(set), Copy(x.reinterpret(UNSIGNED_SHORT), bits)});
  EXPECT_EQ(m.run<unsigned short>(both, bits), std::vector<unsigned short>{0x4600});  // 6
}

TEST(PoplarCodelets, ShortVectorsHaveTheirNamesInNames) {
  Machine m;
  add(m.graph, R"(
    #include <ipudef.h>
    template <class T, class V>
    struct Wide : public Vertex {
      Output<Vector<T, VectorLayout::SPAN, 8>> x;
      bool compute() {
        *reinterpret_cast<V*>(&x[0]) = V{1, 2};
        return true;
      }
    };
    template class Wide<float, float2>;
    template class Wide<half, half4>;
    template class Wide<unsigned short, ushort2>;)");
  EXPECT_TRUE(m.graph.hasCodelet("Wide<half,half4>"));
  EXPECT_TRUE(m.graph.hasCodelet("Wide<unsigned short, ushort2>"));
  ComputeSet set = m.graph.addComputeSet("set");
  Tensor x = m.variable(FLOAT, {2}, "x");
  m.graph.setTileMapping(m.graph.addVertex(set, "Wide<float,float2>", {{"x", x}}), 0);
  EXPECT_EQ(m.run<float>(Execute(set), x), (std::vector<float>{1, 2}));
}

TEST(PoplarCodelets, EstimatesAreOfAThreadOrOfTheTile) {
  for (const bool supervisor : {false, true}) {
    One m(supervisor ? "struct E : SupervisorVertex { bool compute() { return true; } };"
                     : "struct E : Vertex { bool compute() { return true; } };",
          "E");
    m.graph.setPerfEstimate(m.vertex, 100, 7);
    Engine engine(m.graph, Execute(m.set));
    engine.load(m.device);
    engine.run();
    std::ostringstream summary;
    engine.printProfileSummary(summary);
    EXPECT_NE(summary.str().find(supervisor ? " 100 (" : " 600 ("), std::string::npos) << summary.str();
  }
}

TEST(PoplarCodelets, ConnectionsThatDoNotFitAreRefused) {
  One m(increment, "Increment");
  Tensor x = m.counting({4}, "x"), f = m.variable(FLOAT, {4}, "f");
  const Tensor c = m.graph.addConstant(INT, {4}, 1, "c");
  m.graph.setTileMapping(c, 0);
  expect_throw<unknown_field>([&] { m.graph.connect(m.vertex["xx"], x); }, "did you mean 'x'");
  expect_throw<type_error>([&] { m.graph.connect(m.vertex["x"], f); }, "float, the field int");
  expect_throw<graph_connection_error>([&] { m.graph.connect(m.vertex["y"], c); }, "constants");
  expect_throw<graph_connection_error>([&] { m.graph.connect(m.vertex["y"], x.broadcast(2, 0)); },
                                       "two places");
  m.graph.connect(m.vertex["x"], c);
  expect_throw<graph_connection_error>([&] { m.graph.connect(m.vertex["x"], x); }, "its edges already");
  expect_throw<graph_connection_error>([&] { Engine(m.graph, Execute(m.set)); },
                                       "field 'y' is not connected");
  expect_throw<unknown_vertex_type>([&] { m.graph.addVertex(m.set, "Incremnt"); },
                                    "did you mean 'Increment'");
  expect_throw<poplar_error>([&] { m.graph.addVertex(ComputeSet(), "Increment"); }, "compute set");
  expect_throw<invalid_tile_mapping>([&] { m.graph.setTileMapping(m.vertex, 4); }, "no tile 4");
}

TEST(PoplarCodelets, CompilingTellsHowFarItIs) {
  One m(increment, "Increment");
  Tensor x = m.counting({4}, "x"), y = m.variable(INT, {4}, "y");
  m.graph.connect(m.vertex["x"], x);
  m.graph.connect(m.vertex["y"], y);
  std::vector<int> done;
  Engine engine(m.graph, Execute(m.set), {}, [&](int now, int all) {
    done.push_back(now);
    EXPECT_EQ(all, 2);  // a compute set is checked, and lowered
  });
  EXPECT_EQ(done, (Values{0, 1}));
}

TEST(PoplarCodelets, AVertexNeedsATile) {
  Machine m;
  add(m.graph, increment);
  ComputeSet set = m.graph.addComputeSet("set");
  Tensor x = m.counting({4}, "x"), y = m.variable(INT, {4}, "y");
  VertexRef vertex = m.graph.addVertex(set, "Increment", {{"x", x}, {"y", y}});
  expect_throw<invalid_tile_mapping>([&] { Engine(m.graph, Execute(set)); }, "the vertex is on no tile");
  m.graph.setTileMapping(vertex, 0);
  EXPECT_NO_THROW(Engine(m.graph, Execute(set)));
}

TEST(PoplarCodelets, WhatDoesNotCompileIsNamedByItsLine) {
  Machine m;
  const std::string file = POPLAR_TEST_HOME "/broken.cpp";
  std::filesystem::create_directories(POPLAR_TEST_HOME);
  std::ofstream(file)
      << "#include <poplar/Vertex.hpp>\nclass Bad : public poplar::Vertex {\n  nothing x;\n};\n";
  expect_throw<graph_program_compilation_error>([&] { m.graph.addCodelets(file); }, "broken.cpp:3");
  std::ofstream(file) << "#include <poplar/Vertex.hpp>\nclass Bad : public poplar::Vertex {\n  double x;\n"
                         "public:\n  bool compute() { return true; }\n};\n";
  expect_throw<graph_program_compilation_error>([&] { m.graph.addCodelets(file); }, "broken.cpp:3");
  std::ofstream(file) << "#include <poplar/Vertex.hpp>\nclass Bad : public poplar::Vertex {\n};\n";
  expect_throw<graph_program_compilation_error>([&] { m.graph.addCodelets(file); }, "has no compute()");
  expect_throw<graph_program_compilation_error>([&] { m.graph.addCodelets("nowhere.cpp"); }, "nowhere.cpp");
  expect_throw<graph_object_load_error>([&] { m.graph.addCodelets("nowhere.gp"); }, "no such file");
}

TEST(PoplarCodelets, AFileIsCompiledAgainWhenItChanges) {
  const std::string file = POPLAR_TEST_HOME "/changing.cpp", header = POPLAR_TEST_HOME "/changing.h";
  std::filesystem::create_directories(POPLAR_TEST_HOME);
  std::ofstream(file)
      << "#include <poplar/Vertex.hpp>\n#include \"changing.h\"\nstruct Change : poplar::Vertex {\n"
         "  poplar::Output<int> x;\n  bool compute() { *x = VALUE; return true; }\n};\n";
  const auto value = [&](int wanted) {
    std::ofstream(header) << "#define VALUE " << wanted << "\n";
    Machine m;
    EXPECT_TRUE(m.graph.addCodelets(file));
    EXPECT_FALSE(m.graph.addCodelets(file));
    ComputeSet set = m.graph.addComputeSet("set");
    Tensor x = m.variable(INT, {1}, "x");
    m.graph.setTileMapping(m.graph.addVertex(set, "Change", {{"x", x}}), 0);
    return m.run(Execute(set), x).at(0);
  };
  EXPECT_EQ(value(5), 5);
  EXPECT_EQ(value(6), 6);
}

TEST(PoplarCodelets, OneNameIsOneVertex) {
  Machine m;
  add(m.graph, "struct Same : Vertex { bool compute() { return true; } };");
  expect_throw<graph_object_creation_error>(
      [&] { add(m.graph, "struct Same : Vertex { bool compute() { return false; } };"); },
      "another vertex 'Same'");
}

TEST(PoplarCodelets, FilesOfOneCallAreLinkedTogether) {
  std::filesystem::create_directories(POPLAR_TEST_HOME);
  const std::string one = POPLAR_TEST_HOME "/one.cpp", two = POPLAR_TEST_HOME "/two.cpp";
  std::ofstream(one)
      << "#include <poplar/Vertex.hpp>\nint shared();\nstruct One : poplar::Vertex {\n"
         "  poplar::Output<int> x;\n  bool compute() { *x = shared() + MORE; return true; }\n};\n";
  std::ofstream(two) << "int shared() { return 40; }\n";
  Machine m;
  m.graph.addCodelets({one, two}, "-DMORE=2 -O3");
  ComputeSet set = m.graph.addComputeSet("set");
  Tensor x = m.variable(INT, {1}, "x");
  m.graph.setTileMapping(m.graph.addVertex(set, "One", {{"x", x}}), 0);
  EXPECT_EQ(m.run(Execute(set), x), Values{42});
}

#endif
