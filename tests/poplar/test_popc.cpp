// The compiler of codelets as a command: files joined, what it refuses, and the types that codelets have
// beside C++'s.
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "tests/poplar/machine.h"
#include "tests/scratch.h"

using namespace poplar;
using namespace poplar::program;

#ifdef POPC

namespace {

// The exit code; what is said goes to a file.
int popc(const std::string& words, const std::filesystem::path& said) {
  const int status =
      std::system((std::string(POPC) + " " + words + " >'" + said.string() + "' 2>&1").c_str());
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

std::string text_of(const std::filesystem::path& file) {
  std::ifstream in(file);
  return std::string(std::istreambuf_iterator<char>(in), {});
}

std::string vertex(const std::string& name, int value) {
  return "#include <poplar/Vertex.hpp>\nint helper() { return " + std::to_string(value) + "; }\nstruct " +
         name + " : poplar::Vertex {\n  poplar::Output<int> x;\n  void compute() { *x = helper(); }\n};\n";
}

// What the vertex of this type writes into one element.
template <class T>
T written(Graph& graph, Machine& machine, const char* type, const Type& element) {
  ComputeSet set = graph.addComputeSet("set");
  Tensor x = graph.addVariable(element, {1}, VariableMappingMethod::LINEAR, "x");
  graph.setTileMapping(graph.addVertex(set, type, {{"x", x}}), 0);
  return machine.run<T>(Execute(set), x).at(0);
}

}  // namespace

TEST(PoplarPopc, FilesAreJoinedAndAssemblyIsLeftOut) {
  const superstep::ScratchFolder folder;
  const std::string said = (folder / "said").string(), space = " ";
  std::ofstream(folder / "a.cpp") << vertex("A", 1);
  std::ofstream(folder / "b.cpp")
      << "#include <poplar/Vertex.hpp>\nstruct B : poplar::Vertex {\n  poplar::Output<int> x;\n"
         "  void compute() { *x = 2; }\n};\n";
  std::ofstream(folder / "c.S") << ".text\n";
  const auto file = [&](const char* name) { return (folder / name).string(); };
  // As a build of many files does: each for each target, then all of them together.
  ASSERT_EQ(popc("-O3 -Werror --target ipu1 " + file("a.cpp") + " -o " + file("a1.gp"), said), 0)
      << text_of(said);
  ASSERT_EQ(popc("-O3 -Werror --target ipu2 " + file("a.cpp") + " -o " + file("a2.gp"), said), 0)
      << text_of(said);
  ASSERT_EQ(popc("-O3 -Werror " + file("b.cpp") + " -o " + file("b.gp"), said), 0) << text_of(said);
  ASSERT_EQ(popc("--target ipu1,ipu2 " + file("c.S") + " -o " + file("c.gp"), said), 0) << text_of(said);
  ASSERT_EQ(popc(file("a1.gp") + space + file("a2.gp") + space + file("b.gp") + space + file("c.gp") +
                     " -o " + file("all.gp"),
                 said),
            0)
      << text_of(said);
  ASSERT_EQ(popc(file("all.gp") + space + file("b.gp") + " -o " + file("again.gp"), said), 0)
      << text_of(said);
  for (const char* name : {"all.gp", "again.gp"}) {
    Machine machine;
    EXPECT_TRUE(machine.graph.addCodelets(file(name)));
    EXPECT_EQ(written<int>(machine.graph, machine, "A", INT), 1);
    EXPECT_EQ(written<int>(machine.graph, machine, "B", INT), 2);
  }
  EXPECT_EQ(popc("--list-targets", said), 0);
  EXPECT_EQ(text_of(said), "cpu,ipu1,ipu2\n");
}

TEST(PoplarPopc, WhatIsNoFileOfItsOwnIsRefused) {
  const superstep::ScratchFolder folder;
  const std::string said = (folder / "said").string(), out = " -o " + (folder / "out.gp").string();
  std::ofstream(folder / "a.cpp") << vertex("A", 1);
  ASSERT_EQ(popc((folder / "a.cpp").string() + " -o " + (folder / "a.gp").string(), said), 0)
      << text_of(said);
  const std::string whole = text_of(folder / "a.gp");
  std::ofstream(folder / "text.gp") << "no object";
  std::ofstream(folder / "half.gp") << whole.substr(0, whole.size() / 2);
  for (const char* name : {"text.gp", "half.gp", "none.gp"}) {
    EXPECT_EQ(popc((folder / name).string() + out, said), 1) << name;
    EXPECT_NE(text_of(said).find(name), std::string::npos) << text_of(said);
  }
  EXPECT_EQ(popc((folder / "a.txt").string() + out, said), 2);
}

TEST(PoplarPopc, HalvesAndShortVectorsOfCodelets) {
  Machine machine;
  std::stringstream source(R"code(
#include <poplar/IeeeHalf.hpp>
#include <poplar/Vertex.hpp>
#include <ipudef.h>
#include <print.h>
using namespace poplar;
struct Halves : public Vertex {
  Output<half> x;
  void compute() {
    half h = half(2.0f);
    h = std::sqrt(h) * std::sqrt(half(8)) + fabs(half(-0.5f)) + std::numeric_limits<half>::max() * half(0);
    *x = h + half(float(IeeeHalf::fromBits(IeeeHalf(1.0f).bit16())));
  }
};
struct Vectors : public Vertex {
  Output<float> x;
  [[poplar::constraint("elem(*x) != elem(*x)")]] void compute() {
    float2 a = {1, 2};
    half4 h = {1, 2, 3, 4};
    a = a * 3.0f + a.yx;
    short2 s = {3, 4};
    *x = a.x + a.y + float(h[3]) + s[0];
  }
};)code");
  machine.graph.addCodelets(source, "-Werror -Wdouble-promotion -O3");
  EXPECT_EQ(written<std::uint16_t>(machine.graph, machine, "Halves", HALF), 0x4580);  // 5.5
  EXPECT_EQ(written<float>(machine.graph, machine, "Vectors", FLOAT), 19.0f);
}

#endif
