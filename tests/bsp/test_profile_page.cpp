// The profile's page in a real browser.
#include <nlohmann/json.hpp>

#include "superstep/bsp/profile/profile_page.h"
#include "tests/browser.h"
#include "tests/bsp/support.h"

namespace superstep::bsp {
namespace {

// Copies round a ring of tiles, some of them in a loop.
Profile profile_of_copies() {
  Graph graph = small_graph(16);
  std::vector<Tensor> places;
  for (std::uint32_t i = 0; i < 8; ++i)
    places.push_back(mapped(graph, {1000 + 100 * i}, "place" + std::to_string(i), i));
  graph.create_host_write("first", places[0]);
  graph.create_host_read("last", places[7]);
  Sequence program;
  for (std::size_t i = 0; i + 1 < places.size(); ++i) {
    program.add(Copy(places[i].slice(0, 1000), places[i + 1].slice(0, 1000)));
    program.add(Copy(places[i].slice(0, 100), places[i + 1].slice(1000, 1100)));
  }
  const Program programs[] = {program};
  Engine engine(graph, programs, {}, {.allow_undefined_reads = true});
  engine.run();
  return engine.profile();
}

TEST(ProfilePage, IsReadableInABrowser) {
  if (!test::has_browser()) GTEST_SKIP() << "chromium is not installed";
  const std::string html = profile_to_html(profile_of_copies());
  for (const auto& [width, scheme] :
       {std::pair(1100, test::Scheme::light), std::pair(400, test::Scheme::dark)}) {
    const nlohmann::json page = test::shown(html, width, scheme);
    test::expect_readable(page, scheme);
    if (!page.is_object()) continue;
    EXPECT_EQ(page["drawings"].size(), 5U);  // timeline, memory twice, liveness twice
    EXPECT_GE(page["tables"].get<int>(), 5);
    std::string pointed;
    for (const nlohmann::json& drawing : page["drawings"])
      if (drawing["hovered"].is_string()) pointed = drawing["hovered"];
    EXPECT_TRUE(contains(pointed, "cycles")) << "the pointer finds no bar of the timeline";
  }
}

StepProfile step(const std::string& name, ProgramKind kind = ProgramKind::execute) {
  StepProfile profile;
  profile.name = name;
  profile.kind = kind;
  return profile;
}

TEST(ProfilePage, CallsStepsByTheirOperators) {
  EXPECT_EQ(shown_name(step("conv2/Conv#17")), "conv2 Conv");
  EXPECT_EQ(shown_name(step("conv2/Conv#17/combine")), "conv2 Conv: combine");
  EXPECT_EQ(shown_operator(step("conv2/Conv#17/combine")), "conv2 Conv");
  EXPECT_EQ(shown_name(step("a/b/MatMul: 4 x 8 parts")), "a/b MatMul: 4 x 8 parts");
  EXPECT_EQ(shown_name(step("patch", ProgramKind::stream_in)), "patch, from the host");
  EXPECT_EQ(shown_name(step("#")), "#");
  EXPECT_EQ(shown_name(step("a#1b")), "a#1b");
  EXPECT_FALSE(shown_name(step("", ProgramKind::copy)).empty());
  // Two operators of one name are two.
  EXPECT_NE(operator_of(step("fc/Gemm#1")), operator_of(step("fc/Gemm#2")));
  EXPECT_EQ(operator_of(step("fc/Gemm#1")), operator_of(step("fc/Gemm#1/combine")));
}

TEST(ProfilePage, NamesWhatWasCompiledAndHasNoEmptyLane) {
  const std::string html = profile_to_html(profile_of_copies(), "braggnn, infer, f32, batch 16");
  EXPECT_TRUE(contains(html, "<h1>Profile of braggnn, infer, f32, batch 16 on "));
  EXPECT_TRUE(contains(html, ">operator</text>"));
  EXPECT_TRUE(contains(html, ">exchange</text>"));
  EXPECT_FALSE(contains(html, ">between chips</text>")) << "nothing is exchanged between chips";
  EXPECT_TRUE(contains(html, "<tr class=\"main\">"));
  EXPECT_TRUE(contains(html, "class=\"area s0\""));
  EXPECT_TRUE(contains(html, "How full the tiles are"));
}

TEST(ProfilePage, SaysTheMachineInItsUnits) {
  Profile profile = profile_of_copies();
  profile.compilation.device.clock_hz = 1.85e9;
  const std::string html = profile_to_html(profile);
  EXPECT_TRUE(contains(html, "1.850 GHz"));
  EXPECT_TRUE(
      contains(html, format_seconds(static_cast<double>(profile.total.cycles) / 1.85e9) + " in 1 run"));
}

// The control: a page that overflows and an empty drawing are noticed.
TEST(ProfilePage, AWrongPageWouldShow) {
  if (!test::has_browser()) GTEST_SKIP() << "chromium is not installed";
  const nlohmann::json page = test::shown(
      "<!doctype html><html><head></head><body><div style=\"width:900px\">wide</div>"
      "<svg class=\"plot\" viewBox=\"0 0 10 10\"></svg><script>nothing()</script></body></html>",
      400, test::Scheme::light);
  ASSERT_TRUE(page.is_object());
  EXPECT_GT(page["overflow"].get<int>(), 0);
  EXPECT_EQ(page["errors"].size(), 1U);
  EXPECT_EQ(page["drawings"][0]["length"].get<double>() + page["drawings"][0]["bars"].get<double>(), 0);
}

}  // namespace
}  // namespace superstep::bsp
