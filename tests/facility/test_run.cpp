// Workflows that are done for real: what their commands give, what is done again and what is not.
#include <gtest/gtest.h>

#include <atomic>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "superstep/base/error.h"
#include "superstep/base/file.h"
#include "superstep/base/system/interrupt.h"
#include "superstep/facility/run/run.h"
#include "tests/facility/files.h"

namespace superstep::facility {
namespace {

namespace fs = std::filesystem;

class WorkflowRuns : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(testing::TempDir()) / testing::UnitTest::GetInstance()->current_test_info()->name();
    fs::remove_all(folder_);
    fs::create_directories(folder_ / "in");
    for (int k = 0; k < 4; ++k)
      write("in/" + std::string(1, static_cast<char>('a' + k)) + ".txt", fmt::format("item{}\n", k));
    write("facility.toml", two_sites());
  }
  void TearDown() override { clear_interrupt(); }

  void write(const std::string& name, const std::string& text) { std::ofstream(folder_ / name) << text; }
  RunSettings settings() const {
    RunSettings all{.out = folder_ / "ran"};
    all.place.workflow = folder_ / "workflow.toml";
    all.place.facility = folder_ / "facility.toml";
    all.place.assess.draws = 0;
    return all;
  }
  std::string item(const std::string& task, int number) const {
    return read_text_file(folder_ / "ran/work" / task / fmt::format("{:05}", number) / "out");
  }

  fs::path folder_;
};

constexpr const char* upper_and_all = R"(name = "w"
[source.letters]
at = "near"
files = "in/*.txt"
count = 4
[task.upper]
from = ["letters"]
seconds = "10 ms"
run = "echo once >> count; tr a-z A-Z < $IN > $OUT"
copies = 1
on = ["near"]
[task.all]
from = ["upper"]
every = "end"
seconds = "10 ms"
run = "cat $IN_upper > $OUT; echo $TASK $NUMBER $DEVICES"
as = "service"
on = ["near"]
)";

TEST_F(WorkflowRuns, GiveWhatTheirCommandsGive) {
  write("workflow.toml", upper_and_all);
  const Ran ran = run(settings());
  EXPECT_EQ(item("upper", 2), "ITEM2\n");
  EXPECT_EQ(item("all", 0), "ITEM0\nITEM1\nITEM2\nITEM3\n");
  EXPECT_EQ(read_text_file(folder_ / "ran/work/all/00000/log"), "all 0 1\n");
  EXPECT_EQ(ran.actual.tasks[0].firings, 4);
  EXPECT_TRUE(ran.measured.contains("upper"));
  const auto prov = nlohmann::json::parse(read_text_file(folder_ / "ran/prov.json"));
  EXPECT_EQ(prov["activity"].size(), 5u);
  EXPECT_EQ(prov["used"].size(), 8u);
  EXPECT_EQ(prov["wasGeneratedBy"].size(), 5u);
  // Called again it has nothing left to do.
  const Ran again = run(settings());
  EXPECT_EQ(again.went_on, 5u);
  EXPECT_EQ(read_text_file(folder_ / "count"), "once\nonce\nonce\nonce\n");
  // Another workflow in the same folder is refused.
  std::string other = upper_and_all;
  write("workflow.toml", other.replace(other.find("count = 4"), 9, "count = 3"));
  EXPECT_THROW(run(settings()), Error);
}

TEST_F(WorkflowRuns, GoOnAfterACommandThatFails) {
  std::string text = upper_and_all;
  text.replace(text.find("tr a-z"), 0,
               "if grep -q item2 $IN && [ ! -e mended ]; then echo broken lens; exit 3; fi; ");
  write("workflow.toml", text);
  try {
    run(settings());
    FAIL() << "was done";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("upper ended with 3: broken lens"), std::string::npos)
        << error.what();
  }
  write("mended", "");
  const Ran ran = run(settings());
  EXPECT_EQ(ran.went_on, 2u);
  EXPECT_EQ(item("all", 0), "ITEM0\nITEM1\nITEM2\nITEM3\n");
  EXPECT_EQ(read_text_file(folder_ / "count"),
            "once\nonce\nonce\nonce\nonce\n");  // the one that failed, twice
}

TEST_F(WorkflowRuns, TryAgainAsOftenAsTheTaskSays) {
  std::string text = upper_and_all;
  text.replace(text.find("tr a-z"), 0,
               "[ -e tried-$NUMBER ] || [ $NUMBER -gt 4 ] || { touch tried-$NUMBER; exit 1; }; ");
  text.replace(text.find("copies = 1"), 0, "retries = 8\n");
  write("workflow.toml", text);
  run(settings());
  EXPECT_EQ(read_text_file(folder_ / "count").size(), 9 * 5u);  // numbers 0 to 8: the first five fail
}

// A command that outlived its killed run and ended when another had done its work.
TEST_F(WorkflowRuns, TakeNoItemTwiceFromACommandThatEndedLate) {
  write("workflow.toml", upper_and_all);
  run(settings());
  const fs::path first = folder_ / "ran/work/upper/00000", late = folder_ / "ran/work/upper/00009";
  fs::copy(first, late);
  fs::remove(late / "done.json");
  const Ran again = run(settings());
  EXPECT_EQ(again.went_on, 5u);
  EXPECT_FALSE(fs::exists(late / "done.json"));
  EXPECT_FALSE(fs::exists(folder_ / "ran/work/all/00001"));
  // Where nobody else has done it, it counts.
  fs::remove_all(first);
  fs::remove_all(folder_ / "ran/work/all/00000");
  EXPECT_EQ(run(settings()).went_on, 4u);
  EXPECT_EQ(item("all", 0).size(), 4 * 6u);
}

TEST_F(WorkflowRuns, RefuseAnItemThatIsNotThere) {
  std::string text = upper_and_all;
  text.replace(text.find(" > $OUT"), 7, " > /dev/null");
  write("workflow.toml", text);
  try {
    run(settings());
    FAIL() << "was done";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("wrote no $OUT"), std::string::npos) << error.what();
  }
}

TEST_F(WorkflowRuns, GoOnWhereTheyWereStopped) {
  std::string text = upper_and_all;
  text.replace(text.find("tr a-z"), 0, "[ ! -e slow ] || { touch waits; sleep 100; }; ");
  write("workflow.toml", text);
  write("slow", "");
  std::atomic<bool> over = false;
  std::thread stopper([&] {
    while (!over && !fs::exists(folder_ / "waits")) std::this_thread::yield();
    request_interrupt();
  });
  EXPECT_THROW(run(settings()), Error);
  over = true;
  stopper.join();
  clear_interrupt();
  fs::remove(folder_ / "slow");
  run(settings());
  EXPECT_EQ(item("all", 0), "ITEM0\nITEM1\nITEM2\nITEM3\n");
  EXPECT_EQ(read_text_file(folder_ / "count").size(), 5 * 5u);
}

TEST_F(WorkflowRuns, TakeNoLessThanTheirSimulatedTimeElsewhere) {
  std::string facility = two_sites({}, "runs = \"emulated\"");
  write("facility.toml", facility);
  write("workflow.toml", R"(name = "w"
[source.s]
at = "near"
bytes = "100 kB"
count = 2
[task.t]
from = ["s"]
seconds = "300 ms"
run = "cp $IN $OUT"
on = ["far"]
copies = 1
)");
  const Ran ran = run(settings());
  // 0.2 s on the link, which both share, then one after the other.
  EXPECT_GE(ran.actual.end, 0.2 + 0.6 - 1e-6);
  EXPECT_NEAR(ran.simulated.end, 0.2 + 0.6, 1e-6);
  EXPECT_EQ(fs::file_size(folder_ / "ran/work/t/00001/out"), 100'000u);
}

TEST_F(WorkflowRuns, AreRehearsedFasterThanTheyAre) {
  write("workflow.toml", R"(name = "w"
[source.s]
at = "near"
rate = "1 /min"
count = 100
[task.t]
from = ["s"]
seconds = "30 s"
bytes = "5 kB"
on = ["near"]
[task.u]
from = ["t"]
every = 30
seconds = "1 min"
on = ["near"]
)");
  RunSettings rehearsal = settings();
  rehearsal.speed = 1e5;
  rehearsal.most_items = 40;
  const Ran ran = run(rehearsal);
  EXPECT_GE(ran.actual.end, ran.simulated.end - 1e-6);
  EXPECT_EQ(ran.actual.tasks[0].firings, 40);
  EXPECT_EQ(ran.actual.tasks[1].firings, 2);
  EXPECT_EQ(fs::file_size(folder_ / "ran/work/t/00000/out"), 5000u);
  write("workflow.toml", upper_and_all);
  rehearsal.out = folder_ / "other";
  EXPECT_THROW(run(rehearsal), Error);  // commands take their own time
}

}  // namespace
}  // namespace superstep::facility
