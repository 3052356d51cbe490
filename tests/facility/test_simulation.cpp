// Simulations against what can be said in closed form.
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "superstep/facility/simulate/channel.h"
#include "tests/facility/files.h"

namespace superstep::facility {
namespace {

std::string stream(int count, const std::string& rate, const std::string& task) {
  return fmt::format(R"(name = "stream"
[source.items]
at = "near"
count = {}
{}
[task.work]
from = ["items"]
{}
)",
                     count, rate.empty() ? "" : "rate = \"" + rate + "\"", task);
}

TEST(Simulations, OfAStreamThatIsKeptUpWith) {
  const Simulated all = simulated(stream(100, "2 /s", "seconds = \"100 ms\"\non = [\"near\"]"), two_sites());
  ASSERT_EQ(all.tasks[0].latencies.size(), 100u);
  for (const float latency : all.tasks[0].latencies) EXPECT_NEAR(latency, 0.1, 1e-6);
  EXPECT_NEAR(all.end, 99 / 2.0 + 0.1, 1e-9);
  EXPECT_NEAR(all.cost, 100 * 0.1 / 3600, 1e-12);
  EXPECT_NEAR(all.energy, 100 * 0.1 * 100, 1e-9);
  EXPECT_NEAR(all.device_seconds[0], 10, 1e-9);
}

TEST(Simulations, OfAStreamThatIsTooFast) {
  // One at a time, 0.5 s each, four a second: item n waits for n x (0.5 - 0.25) s.
  const Simulated all =
      simulated(stream(40, "4 /s", "seconds = \"500 ms\"\ncopies = 1\non = [\"near\"]"), two_sites());
  for (std::size_t n = 0; n < 40; ++n)
    EXPECT_NEAR(all.tasks[0].latencies[n], 0.5 + 0.25 * static_cast<double>(n), 1e-5);
  // With four devices, and no limit of copies, none waits.
  const Simulated wide = simulated(stream(40, "4 /s", "seconds = \"500 ms\"\non = [\"near\"]"), two_sites());
  EXPECT_NEAR(figure_of({.wish = Wish::latency, .task = 0}, wide), 0.5, 1e-6);
}

TEST(Simulations, OfDevicesThatAreTakenTogether) {
  // Three at a time of four devices: one firing after another.
  const Simulated all =
      simulated(stream(10, "", "seconds = \"1 s\"\ndevices = 3\non = [\"near\"]"), two_sites());
  EXPECT_NEAR(all.end, 10, 1e-9);
  EXPECT_NEAR(all.device_seconds[0], 30, 1e-9);
  EXPECT_NEAR(simulated(stream(10, "", "seconds = \"1 s\"\ndevices = 2\non = [\"near\"]"), two_sites()).end,
              5, 1e-9);
}

TEST(Simulations, OfTransfersThatShareALink) {
  // Ten items of 1 MB, all at once, over 1 MB/s: all are there after 10 s.
  const std::string workflow = stream(10, "", "seconds = \"1 us\"\non = [\"far\"]");
  const std::string sized = std::string(workflow).replace(workflow.find("count"), 0, "bytes = \"1 MB\"\n");
  const Simulated all = simulated(sized, two_sites());
  ASSERT_EQ(all.tasks[0].latencies.size(), 10u);
  for (const float latency : all.tasks[0].latencies) EXPECT_NEAR(latency, 10, 1e-4);
  const Simulated slow = simulated(sized, two_sites({}, {}, "latency = \"2 s\"\nothers = 0.5"));
  EXPECT_NEAR(slow.end, 20 + 2, 1e-4);
  EXPECT_NEAR(slow.link_busy[0][0], 20, 1e-6);
  EXPECT_EQ(slow.link_busy[1][0], 0);
}

TEST(Channels, GiveEachItsShare) {
  Channel channel(10);
  channel.join(0, 30, 1);  // alone until 1 s: 20 left
  channel.join(1, 10, 2);  // both at 5 bytes/s: 2 is through at 3 s, when 1 has 10 left
  EXPECT_DOUBLE_EQ(channel.next(), 3);
  EXPECT_EQ(channel.leave(3), 2u);
  EXPECT_DOUBLE_EQ(channel.next(), 4);
  channel.set_broken(3.5, true);
  EXPECT_TRUE(std::isinf(channel.next()));
  channel.set_broken(5.5, false);
  EXPECT_DOUBLE_EQ(channel.next(), 6);
  EXPECT_EQ(channel.leave(6), 1u);
  EXPECT_DOUBLE_EQ(channel.busy(), 4);
}

TEST(Simulations, OfTriggers) {
  const auto firings = [](const std::string& every) {
    const Simulated all = simulated(
        stream(10, "1 /s", "seconds = \"1 ms\"\non = [\"near\"]\nas = \"service\"\nevery = " + every),
        two_sites());
    return all.tasks[0].firings;
  };
  EXPECT_EQ(firings("1"), 10);
  EXPECT_EQ(firings("4"), 3);  // and what is left at the end
  EXPECT_EQ(firings("\"end\""), 1);
  EXPECT_EQ(firings("\"2500 ms\""), 4);  // at 2.5, 5 and 7.5 s, and at the end
  EXPECT_EQ(firings("{ items = 5 }"), 2);
}

TEST(Simulations, OfResultsThatAreUsedWithoutWaiting) {
  const Simulated all = simulated(R"(name = "weights"
[source.items]
at = "near"
rate = "1 /s"
count = 20
[task.train]
from = ["items"]
every = 5
seconds = "2 s"
on = ["near"]
as = "service"
[task.serve]
from = ["items"]
uses = ["train"]
seconds = "1 ms"
on = ["near"]
)",
                                  two_sites());
  // Weights of the first five items are cut at 4 s and there at 6 s: six items (0 to 5 s) were served
  // without, and the one at 6 s comes before them in the order of events or after.
  EXPECT_NEAR(all.tasks[1].without, 6, 1);
  EXPECT_EQ(all.tasks[1].ages.size() + static_cast<std::size_t>(all.tasks[1].without), 20u);
  for (const float age : all.tasks[1].ages) {
    EXPECT_GE(age, 2);
    EXPECT_LE(age, 7);
  }
}

TEST(Simulations, OfQueuesAndAllottedTime) {
  const std::string queue = "[queue.slow]\nmedian = \"100 s\"\nlongest = \"40 s\"\n";
  const std::string job = stream(1, "", "seconds = \"100 s\"\nas = \"job\"\non = [\"far\"]");
  const Simulated all = simulated(job, two_sites(queue, "queue = \"slow\"\nstart = \"10 s\""));
  // 30 s of work in each 40 s that are given: four parts, each after a wait of 100 s, the last of 10 s.
  EXPECT_NEAR(all.end, 4 * 100 + 3 * 40 + 10 + 10, 1e-6);
  EXPECT_EQ(all.tasks[0].restarts, 3);
  EXPECT_NEAR(all.tasks[0].slowest.queued, 400, 1e-6);
}

TEST(Simulations, OfServicesThatHoldTheirDevices) {
  const std::string queue = "[queue.slow]\nmedian = \"100 s\"\n";
  const std::string workflow = stream(10, "1 /s", "seconds = \"1 s\"\non = [\"far\"]");
  const Simulated all = simulated(workflow, two_sites(queue, "queue = \"slow\"\nstart = \"10 s\""));
  EXPECT_NEAR(all.end, 110 + 10, 1e-9);
  EXPECT_NEAR(all.cost, 10 * 2 / 3600.0, 1e-9);  // from its start to its end, at work or not
}

// Of work of T seconds that begins anew after each failure, the mean is (e^(T/M) - 1) M for failures every M
// seconds.
TEST(Simulations, OfFailures) {
  const std::string workflow = stream(1, "", "seconds = \"100 s\"\nas = \"job\"\non = [\"far\"]");
  const Problem problem =
      problem_of(workflow, two_sites({}, "fails = { every = \"100 s\", lasts = \"1 ns\" }"));
  const int draws = 20'000;
  double sum = 0, squares = 0;
  for (int draw = 1; draw <= draws; ++draw) {
    const double end = simulated(problem, {.seed = 7, .draw = static_cast<std::uint32_t>(draw)}).end;
    sum += end;
    squares += end * end;
  }
  const double mean = sum / draws, deviation = std::sqrt((squares / draws - mean * mean) / draws);
  EXPECT_NEAR(mean, (std::exp(1.0) - 1) * 100, 4 * deviation);
  // With work saved every 10 s: ten pieces of (e^0.1 - 1) 100 s.
  const std::string saved =
      stream(1, "", "seconds = \"100 s\"\nas = \"job\"\ncheckpoint = \"10 s\"\non = [\"far\"]");
  const Problem of_saved =
      problem_of(saved, two_sites({}, "fails = { every = \"100 s\", lasts = \"1 ns\" }"));
  sum = squares = 0;
  for (int draw = 1; draw <= draws; ++draw) {
    const double end = simulated(of_saved, {.seed = 7, .draw = static_cast<std::uint32_t>(draw)}).end;
    sum += end;
    squares += end * end;
  }
  const double saved_mean = sum / draws,
               saved_deviation = std::sqrt((squares / draws - saved_mean * saved_mean) / draws);
  EXPECT_NEAR(saved_mean, 10 * (std::exp(0.1) - 1) * 100, 4 * saved_deviation);
  EXPECT_NEAR(simulated(problem).end, 100, 1e-9);  // the usual course has none
}

TEST(Simulations, OfLinksThatBreak) {
  // 1,000 s of transfer, broken every 50 s for 5 s: a tenth longer in the mean.
  const std::string workflow = stream(1, "", "seconds = \"1 us\"\non = [\"far\"]");
  const std::string sized = std::string(workflow).replace(workflow.find("count"), 0, "bytes = \"1 GB\"\n");
  const Problem problem =
      problem_of(sized, two_sites({}, {}, "fails = { every = \"50 s\", lasts = \"5 s\" }"));
  double sum = 0;
  const int draws = 2'000;
  for (int draw = 1; draw <= draws; ++draw)
    sum += simulated(problem, {.seed = 3, .draw = static_cast<std::uint32_t>(draw)}).end;
  // The number of failures is of Poisson's distribution with mean 20: 5 sqrt(20) s of deviation.
  EXPECT_NEAR(sum / draws, 1000 + 20 * 5, 4 * 5 * std::sqrt(20.0 / draws));
}

TEST(Simulations, DrawTimesInTheirIntervals) {
  const Problem problem = problem_of(stream(1, "", "seconds = \"1..4 s\"\non = [\"near\"]"), two_sites());
  int below = 0, above = 0;
  const int draws = 20'000;
  for (int draw = 1; draw <= draws; ++draw) {
    const double end = simulated(problem, {.draw = static_cast<std::uint32_t>(draw)}).end;
    below += end < 1;
    above += end > 4;
  }
  EXPECT_NEAR(below, draws / 10, 4 * std::sqrt(draws * 0.09));
  EXPECT_NEAR(above, draws / 10, 4 * std::sqrt(draws * 0.09));
  EXPECT_NEAR(simulated(problem).end, 2, 1e-9);
}

TEST(Simulations, OfGroupsEndAsThoseOfItems) {
  const std::string workflow = R"(name = "stream"
[source.items]
at = "near"
rate = "100 /s"
bytes = "1 kB"
count = 10000
[task.first]
from = ["items"]
seconds = "20 ms"
on = ["far"]
bytes = "100 B"
[task.second]
from = ["first"]
every = 16
seconds = "50 ms"
on = ["near"]
)";
  const Problem problem = problem_of(workflow, two_sites());
  const Simulated single = simulated(problem), grouped = simulated(problem, {.most_items = 500});
  EXPECT_NEAR(grouped.end, single.end, 0.02 * single.end);
  EXPECT_NEAR(grouped.cost, single.cost, 0.01 * single.cost);
  EXPECT_NEAR(grouped.energy, single.energy, 0.01 * single.energy);
  EXPECT_NEAR(grouped.link_busy[0][0], single.link_busy[0][0], 0.02 * single.link_busy[0][0]);
  EXPECT_EQ(single.tasks[1].firings, 625);
  EXPECT_NEAR(grouped.tasks[1].firings, 625, 1);
  // The times of single items come from the first ones.
  const Plan plan = problem.plan_of({0, 0});
  const Simulated both = simulate_whole_and_head(plan, {.most_items = 500});
  EXPECT_NEAR(figure_of({.wish = Wish::latency, .task = 1}, both),
              figure_of({.wish = Wish::latency, .task = 1}, single), 0.05 * single.tasks[1].slowest.total());
  EXPECT_NEAR(both.end, grouped.end, 1e-9);
}

TEST(Simulations, OfTheSameDrawAreTheSameBits) {
  const Problem problem = problem_of(stream(500, "10 /s", "seconds = \"10..50 ms\"\non = [\"far\"]"),
                                     two_sites({}, "fails = { every = \"20 s\", lasts = \"1 s\" }",
                                               "fails = { every = \"10 s\", lasts = \"1 s\" }"));
  const Simulated a = simulated(problem, {.seed = 5, .draw = 9}),
                  b = simulated(problem, {.seed = 5, .draw = 9});
  EXPECT_EQ(a.end, b.end);
  EXPECT_EQ(a.tasks[0].latencies, b.tasks[0].latencies);
  EXPECT_NE(a.end, simulated(problem, {.seed = 5, .draw = 10}).end);
}

TEST(Simulations, TellWhereTheTimeWent) {
  const std::string workflow = stream(1, "", "seconds = \"3 s\"\nas = \"job\"\non = [\"far\"]");
  const std::string sized = std::string(workflow).replace(workflow.find("count"), 0, "bytes = \"2 MB\"\n");
  const Simulated all =
      simulated(sized, two_sites("[queue.q]\nmedian = \"7 s\"\n", "queue = \"q\"\nstart = \"1 s\""));
  EXPECT_NEAR(all.last.moved, 2, 1e-9);
  EXPECT_NEAR(all.last.queued, 7, 1e-9);
  EXPECT_NEAR(all.last.computed, 4, 1e-9);
  EXPECT_NEAR(all.last.total() + all.last.born, all.end, 1e-9);
}

}  // namespace
}  // namespace superstep::facility
