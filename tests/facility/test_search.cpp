// The search for placements, against every placement there is.
#include <gtest/gtest.h>

#include "superstep/base/random.h"
#include "superstep/facility/place/assess.h"
#include "superstep/facility/place/bound.h"
#include "tests/facility/files.h"

namespace superstep::facility {
namespace {

// A workflow of three to five tasks with random inputs, triggers, sizes and times.
std::string drawn_workflow(RandomStream& random) {
  std::string text = fmt::format(
      "name = \"drawn\"\n[source.s]\nat = \"{}\"\nrate = \"{} /s\"\nbytes = \"{} kB\"\ncount = {}\n",
      random.below(2) ? "near" : "far", 1 + random.below(20), 1 + random.below(200), 20 + random.below(80));
  const std::uint64_t tasks = 3 + random.below(3);
  for (std::uint64_t t = 0; t < tasks; ++t) {
    const std::string from = t == 0 || random.below(4) == 0 ? "s" : fmt::format("t{}", random.below(t));
    text += fmt::format("[task.t{}]\nfrom = [\"{}\"]\nbytes = \"{} kB\"\n", t, from, 1 + random.below(300));
    text += fmt::format("seconds = {{ near = \"{} ms\", far = \"{} ms\" }}\n", 1 + random.below(400),
                        1 + random.below(400));
    const char* triggers[] = {"every = 1\n", "every = 7\n", "every = \"end\"\n", "every = \"3 s\"\n"};
    text += triggers[random.below(4)];
    if (random.below(3) == 0) text += "devices = [1, 2]\n";
    if (random.below(3) == 0) text += fmt::format("as = \"{}\"\n", random.below(2) ? "job" : "service");
  }
  if (random.below(2)) text += fmt::format("[target.t]\nend = \"{} s\"\n", 1 + random.below(20));
  if (random.below(2))
    text += fmt::format("[target.l]\nof = \"t{}\"\np99 = \"{} ms\"\n", random.below(tasks),
                        100 + random.below(2000));
  if (random.below(2)) text += "[target.c]\ncost = 0.01\n";
  return text;
}

std::string drawn_facility(RandomStream& random) {
  const bool queue = random.below(2) == 1;
  return two_sites(queue ? "[queue.q]\nmedian = \"2 s\"\n" : "",
                   queue ? "queue = \"q\"\nstart = \"500 ms\"" : "",
                   random.below(2) ? "latency = \"50 ms\"" : "");
}

template <class Use>
void for_each_placement(const Problem& problem, Use use) {
  std::vector<int> chosen(problem.choices.size(), 0);
  while (true) {
    if (conflict_of(problem, chosen).empty()) use(chosen);
    std::size_t t = 0;
    while (t < chosen.size() && ++chosen[t] == static_cast<int>(problem.choices[t].choices.size()))
      chosen[t++] = 0;
    if (t == chosen.size()) return;
  }
}

TEST(Searches, FindTheBestOfAllPlacements) {
  int with_proof = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    RandomStream random(seed, 1);
    Problem problem = problem_of(drawn_workflow(random), drawn_facility(random));
    problem.aim = static_cast<Aim>(random.below(4));
    const SearchLimits limits{.most_simulated = 100'000};
    const SearchResult found = search(problem, limits);
    const Bounds bounds(problem.workflow, problem.facility, problem.choices, problem.source_sites,
                        problem.power, problem.aim);
    Score best{.excess = 1e300};
    for_each_placement(problem, [&](const std::vector<int>& chosen) {
      const Plan plan = problem.plan_of(chosen);
      const Score score = score_of(problem.workflow, problem.aim,
                                   simulate_whole_and_head(plan, {.most_items = limits.most_items}));
      if (score < best) best = score;
      // Floats are rounded where times of items are kept.
      const Score bound = bounds.of(chosen);
      EXPECT_LE(bound.excess, score.excess + 1e-5) << "seed " << seed;
      EXPECT_LE(bound.value, score.value * (1 + 1e-6) + 1e-9) << "seed " << seed;
    });
    ASSERT_FALSE(found.best.empty());
    EXPECT_DOUBLE_EQ(found.best.front().score.excess, best.excess) << "seed " << seed;
    EXPECT_DOUBLE_EQ(found.best.front().score.value, best.value) << "seed " << seed;
    with_proof += found.proven;
  }
  EXPECT_EQ(with_proof, 60);
}

TEST(Searches, SayWhenNothingIsProven) {
  RandomStream random(4, 1);
  Problem problem = problem_of(drawn_workflow(random), drawn_facility(random));
  const SearchResult found = search(problem, {.most_simulated = 1});
  EXPECT_FALSE(found.best.empty());
  EXPECT_LE(found.simulated, 2u);
  EXPECT_LE(found.bound.value, found.best.front().score.value);
}

TEST(Searches, OfAThousandTasksOnTenThousandDevices) {
  std::string workflow = "name = \"large\"\n[source.s]\nat = \"near\"\ncount = 1\n";
  RandomStream random(1);
  for (int t = 0; t < 1000; ++t)
    workflow += fmt::format(
        "[task.t{}]\nfrom = [\"{}\"]\nbytes = \"1 kB\"\nseconds = {{ near = \"{} s\", far = \"{} s\" "
        "}}\ndevices = [1, 8]\n",
        t, t < 10 ? "s" : fmt::format("t{}", random.below(static_cast<std::uint64_t>(t))),
        1 + random.below(60), 1 + random.below(60));
  std::string facility = two_sites();
  for (std::size_t at = 0; (at = facility.find("devices = 4", at)) != std::string::npos; at += 5)
    facility.replace(at, 11, "devices = 5000");
  Problem problem = problem_of(workflow, facility);
  const SearchResult found = search(problem, {.most_simulated = 300});
  ASSERT_FALSE(found.best.empty());
  EXPECT_FALSE(found.proven);
  EXPECT_GE(found.best.front().score.value, found.bound.value * (1 - 1e-9));
  EXPECT_LE(found.best.front().score.value, 1.5 * found.bound.value);
}

TEST(Assessments, HaveTargetsAndIntervals) {
  Problem problem = problem_of(R"(name = "w"
[source.s]
at = "near"
rate = "1 /s"
count = 50
[task.t]
from = ["s"]
seconds = "50..200 ms"
on = ["near"]
[target.t]
of = "t"
p99 = "100 ms"
)",
                               two_sites());
  const SearchResult found = search(problem, {});
  const Assessed assessed = assess(problem, found.best.front(), {.draws = 400});
  EXPECT_NEAR(assessed.latency.value, 0.1, 0.01);
  EXPECT_NEAR(assessed.latency.low, 0.05, 0.01);
  EXPECT_NEAR(assessed.latency.high, 0.2, 0.04);
  EXPECT_NEAR(assessed.targets[0].met, 0.5, 0.1);
  // As many threads as there may be, the same figures.
  EXPECT_EQ(assess(problem, found.best.front(), {.draws = 400, .threads = 64}).latency.high,
            assessed.latency.high);
}

TEST(Assessments, SayWhatMoreWouldBuy) {
  // 1 MB each second over 1 MB/s, then 0.5 s of work: the link binds.
  Problem problem = problem_of(R"(name = "w"
[source.s]
at = "near"
bytes = "1 MB"
count = 20
[task.t]
from = ["s"]
seconds = "10 ms"
on = ["far"]
)",
                               two_sites());
  const Assessed assessed = assess(problem, search(problem, {}).best.front(), {.draws = 0});
  const std::vector<Variant> variants = variants_of(problem, assessed);
  ASSERT_GE(variants.size(), 2u);
  EXPECT_EQ(variants[1].what, "line twice as fast");
  EXPECT_NEAR(variants[1].end, variants[0].end / 2, 0.05);
}

TEST(Assessments, CompareCoupledWithDisaggregated) {
  // At the far site work is ten times as fast; 100 kB go there in 0.1 s at the link's rate.
  Problem problem = problem_of(R"(name = "w"
[source.s]
at = "near"
bytes = "100 kB"
count = 1
[task.here]
from = ["s"]
seconds = { near = "10 ms" }
bytes = "100 kB"
[task.there]
from = ["here"]
seconds = { near = "1 s", far = "100 ms" }
)",
                               two_sites());
  const SearchResult found = search(problem, {});
  ASSERT_EQ(sites_of(problem, found.best.front().chosen).size(), 2u);
  const std::vector<Coupled> coupled = coupled_of(problem, found.best.front(), {});
  ASSERT_EQ(coupled.size(), 2u);
  EXPECT_TRUE(coupled[0].possible);
  EXPECT_NEAR(coupled[0].best.score.value, 1.01, 1e-6);
  EXPECT_NEAR(coupled[0].crossover, 0.1 / 0.9, 0.04 * 0.1 / 0.9);  // 100 kB in 0.9 s
  EXPECT_FALSE(coupled[1].possible);
  EXPECT_EQ(coupled[1].why_not, "here has no place there");
}

}  // namespace
}  // namespace superstep::facility
