// Memory, liveness and the reports.
#include <nlohmann/json.hpp>

#include "tests/bsp/support.h"

namespace superstep::bsp {
namespace {

// x -> temporary -> y: the temporary lives between two copies only.
struct Chain {
  Graph graph = small_graph(4);
  Tensor x = mapped(graph, {1000}, "x", 0), first = mapped(graph, {1000}, "first", 1),
         second = mapped(graph, {1000}, "second", 1), y = mapped(graph, {1000}, "y", 2);
  Sequence program{Copy(x, first), Copy(first, y), Copy(x, second), Copy(second, y)};
  Chain() {
    graph.create_host_write("x", x);
    graph.create_host_read("y", y);
  }
  CompilationProfile compile() const {
    const Program programs[] = {program};
    return compile_graph(graph, programs).profile();
  }
};

TEST(Memory, LivesThatDoNotMeetShareTheirPlace) {
  const CompilationProfile profile = Chain().compile();
  EXPECT_EQ(profile.tiles[0].variables, 4000u);
  EXPECT_EQ(profile.tiles[1].variables, 0u);
  EXPECT_EQ(profile.tiles[1].not_always_live, 4000u);  // not 8000
  EXPECT_EQ(profile.tiles[2].variables, 4000u);
  EXPECT_EQ(profile.tiles[3].variables + profile.tiles[3].not_always_live, 0u);
  EXPECT_EQ(profile.liveness[0].largest[0].first, "first");
  EXPECT_EQ(profile.liveness[2].largest[0].first, "second");
}

TEST(Memory, AValueThatTheNextTurnNeedsStaysLive) {
  Chain chain;
  chain.program = Sequence{Copy(chain.x, chain.first),
                           Repeat(3, Sequence{Copy(chain.first, chain.y), Copy(chain.x, chain.second),
                                              Copy(chain.second, chain.y)})};
  EXPECT_EQ(chain.compile().tiles[1].not_always_live, 8000u);
  // The control: once, it dies before the second is made.
  Chain once;
  once.program = Sequence{
      Copy(once.x, once.first),
      Repeat(1, Sequence{Copy(once.first, once.y), Copy(once.x, once.second), Copy(once.second, once.y)})};
  EXPECT_EQ(once.compile().tiles[1].not_always_live, 4000u);
}

TEST(Memory, WriteUndefEndsALife) {
  Chain chain;
  const Tensor half = chain.first.slice(0, 500);
  chain.program =
      Sequence{Copy(chain.x, chain.first),        Copy(chain.first, chain.y),  Copy(chain.x, chain.second),
               Copy(chain.x.slice(0, 500), half), Copy(chain.second, chain.y), Copy(chain.first, chain.y)};
  EXPECT_EQ(chain.compile().tiles[1].not_always_live, 8000u);
  chain.program = Sequence{Copy(chain.x, chain.first), WriteUndef(chain.first), Copy(chain.x, chain.second),
                           Copy(chain.x, chain.first), Copy(chain.first, chain.y)};
  const CompilationProfile profile = chain.compile();
  EXPECT_EQ(profile.liveness[2].max_tile_bytes, 4000u);
}

TEST(Memory, ExchangedInputsTakeABuffer) {
  Graph graph = small_graph(2);
  const Tensor a = mapped(graph, {8}, "a", 1), b = mapped(graph, {8}, "b"), out = mapped(graph, {8}, "out");
  graph.set_initial_value(a, 1);
  graph.set_initial_value(b, 1);
  const ComputeSet set = graph.add_compute_set("add");
  graph.set_tile_mapping(graph.add_vertex(set, "Add", {{"a", a}, {"b", b}, {"out", out}}), 0);
  const Program programs[] = {Execute(set)};
  const CompilationProfile profile = compile_graph(graph, programs).profile();
  EXPECT_EQ(profile.tiles[0].not_always_live,
            32u + 32u);  // `out`, needed by nobody later, and the received `a`
  EXPECT_EQ(profile.tiles[0].vertex_state, 4u + 3 * 8);
  EXPECT_GT(profile.tiles[0].exchange_code, 0u);
  EXPECT_EQ(profile.tiles[0].vertex_code, 512u);
}

struct Ran {
  Chain chain;
  Profile profile;
  Ran() {
    const Program programs[] = {chain.program};
    Engine engine(chain.graph, programs);
    engine.run();
    engine.run();
    profile = engine.profile();
  }
};

TEST(Report, TextHasTheKnownLines) {
  const Ran ran;
  std::ostringstream text;
  print_profile_summary(text, ran.profile, {.show_execution_steps = true, .show_variables = true});
  for (const char* part :
       {"Target:", "Graph:", "Memory Usage:", "Execution:", "Including Gaps", "Maximum Per-Tile",
        "Total cycles:", "microseconds)", "Tile average compute cycles (including idle threads):",
        "Tile average compute cycles (excluding idle threads):", "Tile average IPU exchange cycles:",
        "Tile average global exchange cycles:", "Tile average host exchange cycles:",
        "Tile average sync cycles:", "Cycles by vertex type:", "Copy x -> first", "4,000 B  first"})
    EXPECT_TRUE(contains(text.str(), part));
}

TEST(Report, JsonHasTheKnownFields) {
  const Ran ran;
  const auto json = nlohmann::json::parse(profile_to_json(ran.profile));
  EXPECT_EQ(json["schema"], "superstep-bsp-profile/1");
  EXPECT_EQ(json["compilation"]["target"]["numTiles"], 4);
  EXPECT_EQ(json["compilation"]["tiles"].size(), 4u);
  EXPECT_EQ(json["compilation"]["tiles"][0]["memory"]["category"]["variables"], 4000);
  EXPECT_EQ(json["compilation"]["livenessProgramSteps"][0]["notAlwaysLiveMemory"]["bytes"], 4000);
  EXPECT_EQ(json["compilation"]["graph"]["numComputeSets"], 0);
  EXPECT_EQ(json["execution"]["runs"].size(), 2u);
  EXPECT_EQ(json["execution"]["totalCycles"]["total"], ran.profile.total_cycles());
  EXPECT_EQ(json["execution"]["runs"][0]["steps"][1]["ipus"][0]["activeCycles"]["cyclesFrom"]["min"],
            ran.profile.compilation.steps[0].cost.total());
  const auto trace = nlohmann::json::parse(profile_to_chrome_trace(ran.profile));
  double end = 0;
  for (const auto& event : trace["traceEvents"])
    if (event["ph"] == "X") end = std::max(end, event["ts"].get<double>() + event["dur"].get<double>());
  EXPECT_NEAR(end, 1e6 * static_cast<double>(ran.profile.total_cycles()) / 1.325e9, 1e-6);
}

TEST(Report, PageIsOneFile) {
  Ran ran;
  ran.profile.compilation.steps[0].name = "<script>";
  const std::string html = profile_to_html(ran.profile);
  EXPECT_TRUE(contains(html, "Timeline of supersteps"));
  EXPECT_TRUE(contains(html, "&lt;script&gt;"));
  EXPECT_EQ(html.find("<script>"), std::string::npos);
  EXPECT_EQ(html.find("http"), std::string::npos);
}

// 10 once, 5 for each of two vectors, 2 for each of ten elements: of a thread, of six that share, of six
// turns.
TEST(Estimates, CountedInstructionsStandInForACostFunction) {
  VertexClass vertex;
  VertexFields fields;
  fields.add("x", Type::f32, {4, 6}).add("y", Type::f32, {3}).add_value("n", Type::i32, 100);
  const auto cycles = [&](VertexKind kind) {
    vertex.kind = kind;
    return default_estimate(vertex, fields, gc200_device()).cycles;
  };
  EXPECT_EQ(cycles(VertexKind::worker), 20u + 6 * 13);
  vertex.counted = {10, 5, 2};
  EXPECT_EQ(cycles(VertexKind::worker), 40u);
  EXPECT_EQ(cycles(VertexKind::multi), 6u * 24);
  EXPECT_EQ(cycles(VertexKind::supervisor), 6u * 40);
}

TEST(Scale, APodOf64ChipsIsCountedInSeconds) {
  Graph graph(find_device("ipu-pod64"));
  graph.add_codelets(test_vertices());
  const std::int64_t tiles = graph.num_tiles();
  const Tensor x = graph.add_variable(Type::f32, {tiles, 64}, VariableMappingMethod::linear, "x");
  const Tensor y = graph.add_variable(Type::f32, {tiles, 64}, VariableMappingMethod::linear, "y");
  graph.set_initial_value(x, 1);
  const ComputeSet set = graph.add_compute_set("add");
  for (std::int64_t i = 0; i < tiles; ++i)
    graph.set_tile_mapping(
        graph.add_vertex(set, "Add", {{"a", x[i]}, {"b", x[(i + 1) % tiles]}, {"out", y[i]}}),
        static_cast<std::uint32_t>(i));
  const Program programs[] = {Repeat(1000000, Sequence{Execute(set), Copy(y, x)})};
  Engine engine(graph, programs, {.timing_only = true, .trace_events = 100}, {.timing_only = true});
  engine.run();
  EXPECT_EQ(engine.profile().total.times, (std::vector<std::uint64_t>{1000000, 1000000}));
  EXPECT_EQ(engine.profile().compilation.steps[0].max_bytes_in, 256u);
  EXPECT_EQ(engine.profile().compilation.steps[0].link_bytes, 64u * 256);
}

}  // namespace

// What is the same number over and over is there once, as long as the longest; other constants are not looked
// at.
TEST(Memory, EqualConstantsAreMergedWhereItIsAllowed) {
  Graph graph = small_graph(2);
  const auto constant = [&](double value, std::int64_t count, std::uint32_t tile) {
    const Tensor tensor = graph.add_constant(Type::f32, {count}, value);
    graph.set_tile_mapping(tensor, tile);
    return tensor;
  };
  const Tensor others = graph.add_constant(superstep::Tensor::full(Type::f32, {8}, 1));
  graph.set_tile_mapping(others, 0);
  const std::vector<Tensor> all = {constant(1, 5, 0), constant(1, 9, 0), constant(1, 4, 0),
                                   constant(2, 3, 0), constant(1, 6, 1), others};
  const Tensor out = mapped(graph, {35}, "out");
  const Program programs[] = {Copy(concat(all), out)};
  EXPECT_EQ(compile_graph(graph, programs).profile().tiles[0].constants, 4u * (5 + 9 + 4 + 3 + 8));
  CompileOptions merged;
  merged.merge_equal_constants = true;
  const CompilationProfile profile = compile_graph(graph, programs, merged).profile();
  EXPECT_EQ(profile.tiles[0].constants, 4u * (9 + 3 + 8));
  EXPECT_EQ(profile.tiles[1].constants, 4u * 6);
}

}  // namespace superstep::bsp
