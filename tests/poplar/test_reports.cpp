// Options of the environment, reports and what reads them.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <pva/pva.hpp>

#include "tests/poplar/machine.h"
#include "tests/scratch.h"

using namespace poplar;
using namespace poplar::program;

namespace {

struct WithOptions {
  explicit WithOptions(const char* options) { setenv("POPLAR_ENGINE_OPTIONS", options, 1); }
  ~WithOptions() { unsetenv("POPLAR_ENGINE_OPTIONS"); }
};

}  // namespace

TEST(PoplarReports, ValuesAreWhatTheyAreMadeOf) {
  const ProfileValue value = ProfileValue::Map{
      {"list", ProfileValue::Vector{1, 2.5, "text", true}}, {"name", "a \"b\"\n"}, {"none", ProfileValue()}};
  EXPECT_EQ(value["list"][0].asInt(), 1);
  EXPECT_EQ(value["list"][1].asDouble(), 2.5);
  EXPECT_TRUE(value["list"][2] == "text");
  EXPECT_TRUE(value["list"][3].asBool());
  EXPECT_EQ(value["list"].size(), 4u);
  EXPECT_EQ(value["no"]["such"][7].sumInt(), 0);
  EXPECT_EQ(value.type(), ProfileValue::Type::MAP);
  expect_throw<poplar_error>([&] { value["name"].asInt(); }, "is text, not a number");
  EXPECT_EQ(
      (ProfileValue(ProfileValue::Vector{ProfileValue::Vector{1, 2}, ProfileValue::Vector{3}}).sum2DUint()),
      6u);
  std::ostringstream out;
  serializeToJSON(out, value);
  EXPECT_EQ(out.str(), R"({"list":[1,2.5,"text",true],"name":"a \"b\"\u000a","none":null})");
}

TEST(PoplarReports, OptionsAreReadFromJson) {
  OptionFlags flags{{"a", "old"}, {"b", "kept"}};
  readJSON(std::string(R"({"a": "new", "c": 3, "d": true})"), flags);
  EXPECT_EQ(flags, (OptionFlags{{"a", "new"}, {"b", "kept"}, {"c", "3"}, {"d", "true"}}));
  flags.set("quoted \"x\"", "y\n");
  std::stringstream written;
  written << flags;
  EXPECT_EQ(written.str(), R"({"a":"new","b":"kept","c":"3","d":"true","quoted \"x\"":"y\n"})");
  OptionFlags again;
  readJSON(written, again);
  EXPECT_EQ(again, flags);
  for (const char* wrong : {"{", "[1]", "{\"a\": [1]}", "{\"a\": null}", ""})
    EXPECT_THROW(readJSON(std::string(wrong), flags), parse_error) << wrong;
  EXPECT_EQ(flags.at("a"), "new");
  EXPECT_TRUE(getAsProfileValue(flags)["b"] == "kept");
}

TEST(PoplarReports, TheEnvironmentsOptionsStandAboveThePrograms) {
  Machine machine;
  Tensor x = machine.counting({2});
  {
    WithOptions wrong(R"({"nothing.such": "true"})");
    expect_throw<invalid_option>([&] { Engine(machine.graph, Copy(x[0], x[1])); }, "nothing.such");
  }
  {
    WithOptions wrong("{");
    expect_throw<parse_error>([&] { Engine(machine.graph, Copy(x[0], x[1])); }, "POPLAR_ENGINE_OPTIONS");
  }
  const superstep::ScratchFolder folder;
  WithOptions above(R"({"autoReport.all": "false"})");
  {
    Engine engine(machine.graph, Copy(x[0], x[1]),
                  {{"autoReport.all", "true"}, {"autoReport.directory", (folder / "").string()}});
  }
  EXPECT_FALSE(std::filesystem::exists((folder / "profile.pop").string()));
}

TEST(PoplarReports, AReportIsWrittenAndReadAgain) {
  const superstep::ScratchFolder folder;
  const std::string path = (folder / "new/profile.pop").string();
  Machine machine;
  Tensor x = machine.counting({3}, "x");
  std::uint64_t cycles = 0;
  {
    Engine engine(machine.graph, Sequence{Copy(x[0], x[1]), Copy(x[1], x[2])},
                  {{"autoReport.all", "true"}, {"autoReport.directory", (folder / "new").string()}});
    EXPECT_EQ(pva::openReport(path).execution().totalCycles(), 0u);  // there from the start
    engine.load(machine.device);
    engine.run();
    engine.run();
    cycles = engine.getExecutionProfile()["simulation"]["cycles"].asUint();
  }
  std::ifstream page((folder / "new/profile.html").string());
  const std::string html{std::istreambuf_iterator<char>(page), {}};
  EXPECT_NE(html.find("x -&gt; x"), std::string::npos) << html.substr(0, 2000);
  const pva::Report report = pva::openReport(path);
  EXPECT_EQ(report.compilation().graph().numVars(), 1u);
  EXPECT_EQ(report.compilation().graph().numComputeSets(), 0u);
  EXPECT_EQ(report.compilation().target().numTiles(), 4u);
  EXPECT_EQ(report.compilation().tiles().size(), 4u);
  EXPECT_GT(report.compilation().tiles()[0].alwaysLive, 0u);
  EXPECT_FALSE(report.poplarVersion().string().empty());
  EXPECT_EQ(report.execution().totalCycles(), cycles);
  const std::vector<pva::Block> blocks = report.execution().blocks(1);
  ASSERT_EQ(blocks.size(), 4u);
  EXPECT_EQ(blocks[0].program()->name(), "x -> x");
  EXPECT_FALSE(blocks[0].isStreamCopy());
  EXPECT_EQ(blocks[3].cyclesTo, cycles);
  EXPECT_EQ(blocks[1].cyclesFrom, blocks[0].cyclesTo);
}

TEST(PoplarReports, WhatLibrariesSayOfTheirCallsIsKeptInAFile) {
  const superstep::ScratchFolder folder;
  const std::string file = (folder / "calls.json").string();
  { DebugInfo before{DebugContext("before"), "early"}; }
  DebugInfo::initializeStreamer(file, DebugSerializationFormat::JSON);
  expect_throw<poplar_error>([&] { DebugInfo::initializeStreamer(file); }, "closeStreamer");
  {
    DebugInfo outer{DebugContext("outer"), "library"};
    DebugInfo inner{DebugContext(outer, "inner"), "library"};
    inner.setValue("api", "matMul");
  }
  DebugInfo::closeStreamer();
  DebugInfo::closeStreamer();
  { DebugInfo after{DebugContext("after"), "late"}; }
  std::ifstream in(file);
  const nlohmann::json kept = nlohmann::json::parse(in);
  ASSERT_EQ(kept["contexts"].size(), 2u);  // the inner one ends first
  EXPECT_EQ(kept["contexts"][0]["api"], "matMul");
  EXPECT_EQ(kept["contexts"][0]["name"], "outer/inner");
  EXPECT_EQ(kept["contexts"][0]["parentId"], kept["contexts"][1]["id"]);
  EXPECT_EQ(kept["contexts"][1]["category"], "library");
  expect_throw<poplar_error>([&] { DebugInfo::initializeStreamer(file, DebugSerializationFormat::CBOR); },
                             "only DebugSerializationFormat::JSON");
  EXPECT_THROW(DebugInfo::initializeStreamer((folder / "none/x.json").string()), poplar_error);
}

TEST(PoplarReports, ProfilesCanBeReferredTo) {
  Machine m;
  const Tensor x = m.counting({2});
  Engine engine(m.graph, Copy(x, x.reverse(0)));
  engine.load(m.device);
  engine.run();
  auto& graph = engine.getGraphProfile();
  auto& execution = engine.getExecutionProfile();
  EXPECT_EQ(graph["graph"]["numVertices"].asUint(), 0u);
  EXPECT_GT(execution["simulation"]["cycles"].asUint(), 0u);
}

TEST(PoplarReports, WhatIsNoReportIsRefused) {
  const superstep::ScratchFolder folder;
  const std::string path = (folder / "profile.pop").string();
  expect_throw<pva::Exception>([&] { pva::openReport(path); }, "no such report");
  for (const char* text : {"", "[]", "{}", R"({"format": "superstep-poplar-report", "version": 2})"}) {
    std::ofstream(path) << text;
    EXPECT_THROW(pva::openReport(path), pva::Exception) << text;
  }
  std::ofstream(path)
      << R"({"format": "superstep-poplar-report", "version": 1, "executionProfile": {"simulation": 3}})";
  const pva::Report report = pva::openReport(path);
  expect_throw<pva::Exception>([&] { report.execution().blocks(); }, "/executionProfile/simulation/steps");
  expect_throw<pva::Exception>([&] { report.compilation().tiles(); }, "byTile");
}

TEST(PoplarReports, WhatDoesNotFitSaysHowMuchItTakes) {
  Machine machine;
  Tensor x = machine.graph.addVariable(FLOAT, {1 << 20}, "x");
  machine.graph.setTileMapping(x, 1);
  machine.graph.setInitialValue(x, 1.0f);
  try {
    Engine engine(machine.graph, Copy(x.slice(0, 2), x.slice(2, 4)));
    FAIL();
  } catch (const graph_memory_allocation_error& error) {
    EXPECT_GE(error.graphProfile["memory"]["byTile"]["total"][1].asUint(), 4u << 20);
    std::ostringstream out;
    printGraphSummary(out, error.graphProfile);
    EXPECT_NE(out.str().find("(tile 1)"), std::string::npos) << out.str();
  }
}

TEST(PoplarReports, AnEngineHasItsReport) {
  Machine machine;
  Tensor x = machine.counting({3}, "x");
  Engine engine(machine.graph, Copy(x[0], x[1]));
  engine.load(machine.device);
  engine.run();
  const pva::Report report = engine.getReport();
  EXPECT_EQ(report.compilation().target().numTiles(), 4u);
  EXPECT_EQ(report.execution().totalCycles(), engine.getExecutionProfile()["simulation"]["cycles"].asUint());
  const pva::Report without = engine.getReport(false);
  EXPECT_EQ(without.compilation().graph().numVars(), report.compilation().graph().numVars());
  EXPECT_THROW(without.execution().totalCycles(), pva::Exception);
  EXPECT_THROW(pva::parseReport("{}"), pva::Exception);
}
