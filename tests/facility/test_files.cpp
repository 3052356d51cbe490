// Facilities and workflows as files: what they say, and what is refused by name.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "superstep/base/error.h"
#include "tests/facility/files.h"

namespace superstep::facility {
namespace {

template <class Parse>
std::string refusal(Parse parse) {
  try {
    parse();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

std::string refusal_of_facility(const std::string& text) {
  return refusal([&] { parse_facility(text, "facility.toml"); });
}
std::string refusal_of_workflow(const std::string& text) {
  return refusal([&] { parse_workflow(text, "workflow.toml"); });
}

constexpr const char* least = "name = \"w\"\n[source.a]\nat = \"near\"\ncount = 3\n";

TEST(FacilityFiles, AreRead) {
  const Facility facility =
      parse_facility(two_sites("[queue.q]\nmedian = \"1 min\"\np90 = \"1 h\"\nlongest = \"2 h\"\n",
                               "queue = \"q\"\nmachine = \"gc200\"\nstart = \"1..3 min\"\nfails = { every = "
                               "\"10 d\", lasts = \"1 h\" }",
                               "latency = \"2 ms\"\nothers = 0.25"),
                     "facility.toml");
  ASSERT_EQ(facility.partitions.size(), 2u);
  const Partition& far = facility.partitions[1];
  EXPECT_EQ(far.machine, "gc200");
  EXPECT_EQ(far.wait.median, 60);
  EXPECT_EQ(far.longest, 7200);
  EXPECT_EQ(far.start.low, 60);
  EXPECT_EQ(far.fails.every, 864000);
  EXPECT_EQ(facility.links[0].others, 0.25);
  ASSERT_NE(facility.route(0, 1), nullptr);
  EXPECT_EQ(facility.route(0, 1)->size(), 1u);
  EXPECT_TRUE(facility.route(1, 0)->front().forward == false);
  EXPECT_TRUE(facility.route(0, 0)->empty());
}

TEST(FacilityFiles, AreRefusedByKeyAndLine) {
  EXPECT_NE(refusal_of_facility(two_sites("speed = 1")).find("speed is not a key of"), std::string::npos);
  EXPECT_NE(
      refusal_of_facility(two_sites({}, "color = \"red\"")).find("color is not a key of [partition.far]"),
      std::string::npos);
  EXPECT_NE(refusal_of_facility(two_sites({}, "queue = \"q\"")).find("'q' is no queue"), std::string::npos);
  EXPECT_NE(refusal_of_facility(two_sites({}, {}, "latency = \"3 MB\"")).find("'MB' is no unit of time"),
            std::string::npos);
  EXPECT_NE(refusal_of_facility(two_sites({}, {}, "others = 1.5")).find("others must be below 1"),
            std::string::npos);
  EXPECT_NE(refusal_of_facility("name = \"x\"\n").find("site is missing"), std::string::npos);
  EXPECT_NE(refusal_of_facility("name = \"x\"\n[site.a]\n[partition.p]\nat = \"b\"\n").find("'b' is no site"),
            std::string::npos);
  EXPECT_NE(refusal_of_facility("name = \"x\"\n[site.a]\n[partition.p]\nat = \"a\"\nprice = 3\n")
                .find("in which currency"),
            std::string::npos);
  EXPECT_NE(refusal_of_facility("name = \"x\"\n[site.a]\n[partition.p]\nat = \"a\"\ndevices = 0\n")
                .find("facility.toml:5"),
            std::string::npos);
}

TEST(FacilityFiles, HaveTracesOfQueues) {
  const auto waits =
      waits_of_trace("; Version: 2.2\n1 0 10 100 4\n2 5 -1 3 1\n 3\t9 30 1 1\n4 9 20 1 1\n", "t.swf");
  EXPECT_EQ(waits, (std::vector<double>{10, 20, 30}));
  EXPECT_NE(refusal([] { waits_of_trace("1 0 ten\n", "t.swf"); }).find("t.swf:1"), std::string::npos);
  EXPECT_NE(refusal([] { waits_of_trace("1 0\n", "t.swf"); }).find("fewer than three"), std::string::npos);
  EXPECT_NE(refusal([] { waits_of_trace("; none\n", "t.swf"); }).find("no job"), std::string::npos);
  Wait wait{.trace = waits};
  EXPECT_EQ(wait.usual(), 20);
  RandomStream random(1);
  for (int k = 0; k < 100; ++k) EXPECT_TRUE(std::ranges::find(waits, wait.draw(random)) != waits.end());
}

TEST(FacilityFiles, HaveTheShortestRoutes) {
  const Facility facility = parse_facility(R"(name = "ring"
[site.a]
[site.b]
[site.c]
[site.alone]
[link.ab]
between = ["a", "b"]
rate = "1 GB/s"
latency = "5 ms"
[link.bc]
between = ["b", "c"]
rate = "1 GB/s"
[link.ab2]
between = ["b", "a"]
rate = "1 GB/s"
latency = "1 ms"
[partition.p]
at = "a"
)",
                                           "ring.toml");
  ASSERT_NE(facility.route(0, 2), nullptr);
  ASSERT_EQ(facility.route(0, 2)->size(), 2u);
  EXPECT_EQ(facility.route(0, 2)->front().link, 2);
  EXPECT_FALSE(facility.route(0, 2)->front().forward);
  EXPECT_EQ(facility.route(0, 3), nullptr);
}

TEST(WorkflowFiles, AreRefusedByKeyAndLine) {
  const auto task = [](const std::string& keys) { return std::string(least) + "[task.t]\n" + keys; };
  EXPECT_EQ(refusal_of_workflow(task("from = [\"a\"]\nseconds = \"1 s\"\n")), "");
  EXPECT_NE(
      refusal_of_workflow(task("from = [\"b\"]\nseconds = \"1 s\"\n")).find("'b' is no source and no task"),
      std::string::npos);
  EXPECT_NE(refusal_of_workflow(task("from = [\"a\"]\n")).find("seconds is missing"), std::string::npos);
  EXPECT_NE(refusal_of_workflow(task("from = [\"a\"]\nseconds = \"1 s\"\nevry = 3\n"))
                .find("evry is not a key of [task.t]"),
            std::string::npos);
  EXPECT_NE(refusal_of_workflow(task("from = [\"a\"]\nseconds = \"1 s\"\nevery = { b = 3 }\n"))
                .find("b is not a key of every"),
            std::string::npos);
  EXPECT_NE(
      refusal_of_workflow(task("from = [\"a\"]\nseconds = \"1 s\"\nsamples = 3\n")).find("is of a model"),
      std::string::npos);
  EXPECT_NE(refusal_of_workflow(task("from = [\"a\"]\nmodel = \"mlp\"\nepochs = 3\n"))
                .find("epochs is of training"),
            std::string::npos);
  EXPECT_NE(refusal_of_workflow(task("from = [\"t\"]\nseconds = \"1 s\"\n")).find("in a circle: t"),
            std::string::npos);
  EXPECT_NE(refusal_of_workflow(task("from = [\"a\"]\nseconds = \"1 s\"\nuses = [\"a\"]\n"))
                .find("'a' is a source"),
            std::string::npos);
  const std::string whole = task("from = [\"a\"]\nseconds = \"1 s\"\n");
  EXPECT_NE(refusal_of_workflow(whole + "[target.x]\n").find("must be one of"), std::string::npos);
  EXPECT_NE(refusal_of_workflow(whole + "[target.x]\nend = \"1 h\"\ncost = 3\n").find("no more than one"),
            std::string::npos);
  EXPECT_NE(refusal_of_workflow(whole + "[target.x]\np99 = \"1 s\"\n").find("of is missing"),
            std::string::npos);
  EXPECT_NE(refusal_of_workflow(whole + "[target.x]\nage = \"1 s\"\nof = \"t\"\n").find("has no uses"),
            std::string::npos);
  EXPECT_NE(refusal_of_workflow(std::string(least) + "count = 4\n").find("workflow.toml:"),
            std::string::npos);
}

TEST(WorkflowFiles, AreRefusedOnFacilitiesThatDoNotHaveTheirPlaces) {
  const auto refused = [](const std::string& keys) {
    return refusal(
        [&] { problem_of(std::string(least) + "[task.t]\nfrom = [\"a\"]\n" + keys, two_sites()); });
  };
  EXPECT_NE(refused("seconds = \"1 s\"\non = [\"nearr\"]\n").find("did you mean 'near'"), std::string::npos);
  EXPECT_NE(refused("seconds = { moon = \"1 s\" }\n").find("'moon'"), std::string::npos);
  EXPECT_NE(refused("seconds = { t4 = \"1 s\" }\n").find("can run nowhere"), std::string::npos);
  EXPECT_NE(refused("seconds = \"1 s\"\ndevices = 8\n").find("8 devices are asked for, and it has 4"),
            std::string::npos);
  EXPECT_NE(refused("model = \"braggnn\"\n").find("no machine is named there"), std::string::npos);
  const std::string elsewhere =
      "name = \"w\"\n[source.a]\nat = \"mars\"\ncount = 3\n[task.t]\nfrom = [\"a\"]\nseconds = \"1 s\"\n";
  EXPECT_NE(refusal([&] { problem_of(elsewhere, two_sites()); }).find("'mars'"), std::string::npos);
}

TEST(WorkflowFiles, HavePredictedTimes) {
  const Problem problem =
      problem_of(std::string(least) +
                     "[task.t]\nfrom = [\"a\"]\nmodel = \"braggnn\"\nmode = \"train\"\nsamples = 5120\n"
                     "epochs = 2\nbatch = 512\n",
                 two_sites({}, "machine = \"a100-40gb\""));
  ASSERT_EQ(problem.choices[0].choices.size(), 1u);
  const Choice& choice = problem.choices[0].choices[0];
  EXPECT_NE(choice.how.find("predicted: a100-40gb"), std::string::npos) << choice.how;
  EXPECT_GT(choice.place.seconds.value, 0);
  EXPECT_LT(choice.place.seconds.low, choice.place.seconds.value);
  EXPECT_GT(choice.place.seconds.high, choice.place.seconds.value);
  const Problem twice =
      problem_of(std::string(least) +
                     "[task.t]\nfrom = [\"a\"]\nmodel = \"braggnn\"\nmode = \"train\"\nsamples = 5120\n"
                     "epochs = 4\nbatch = 512\n",
                 two_sites({}, "machine = \"a100-40gb\""));
  EXPECT_NEAR(twice.choices[0].choices[0].place.seconds.value, 2 * choice.place.seconds.value,
              1e-9 * choice.place.seconds.value);
}

TEST(WorkflowFiles, OfExamplesAreWhole) {
  const std::filesystem::path folder = std::filesystem::path(SUPERSTEP_SOURCE) / "examples/facility";
  for (const auto& [workflow, facility] : {std::pair{"hedm", "beamline"},
                                           {"learn", "testbed"},
                                           {"force-field", "server"},
                                           {"conductivity", "server"},
                                           {"bragg", "server"}}) {
    const Workflow read = read_workflow(folder / fmt::format("{}.toml", workflow));
    const Facility on = read_facility(folder / fmt::format("{}.toml", facility));
    EXPECT_NO_THROW(sites_of_sources(read, on));
    EXPECT_GE(read.tasks.size(), 3u);
    EXPECT_GE(read.targets.size(), 1u);
  }
}

}  // namespace
}  // namespace superstep::facility
