// Profiles: floors, sums over steps, and what is written of them.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "superstep/base/error.h"
#include "superstep/base/file.h"
#include "superstep/lab/profile/drawing.h"
#include "superstep/lab/profile/model.h"
#include "superstep/lab/profile/profile.h"
#include "superstep/lab/profile/report.h"
#include "tests/browser.h"
#include "tests/contains.h"
#include "tests/scratch.h"

namespace superstep::lab {
namespace {

// A thousand million operations a second, and three levels of memory.
MachineFloor made_up_machine() {
  return {.threads = 2,
          .f32_flops = 1e9,
          .bf16_flops = 2e9,
          .i8_flops = 0,
          .levels = {{"L1", 1000, 1e9}, {"L2", 10000, 1e8}, {"memory", ~std::size_t{0}, 1e7}}};
}

target::PlanStep step(double flops, double bytes, ElementType arithmetic = ElementType::f32) {
  return {.node = "layer",
          .op = "Conv+Relu",
          .kernel = "k",
          .flops = flops,
          .bytes = bytes,
          .arithmetic = arithmetic};
}

TEST(Floor, IsTheLargerOfComputeAndMemory) {
  const StepFloor compute = floor_of(step(1000, 10), made_up_machine());
  EXPECT_DOUBLE_EQ(compute.seconds(), 1e-6);
  EXPECT_STREQ(compute.bound(), "compute");
  const StepFloor memory = floor_of(step(1000, 5000), made_up_machine());
  EXPECT_DOUBLE_EQ(memory.seconds(), 5e-5);
  EXPECT_STREQ(memory.bound(), "memory");
}

TEST(Floor, BytesCountAtTheNearestLevelThatHoldsThem) {
  EXPECT_DOUBLE_EQ(floor_of(step(0, 1000), made_up_machine()).seconds(), 1e-6);
  EXPECT_DOUBLE_EQ(floor_of(step(0, 1001), made_up_machine()).seconds(), 1001e-8);
  EXPECT_DOUBLE_EQ(floor_of(step(0, 20000), made_up_machine()).seconds(), 2e-3);
}

TEST(Floor, EachArithmeticHasItsPeak) {
  EXPECT_DOUBLE_EQ(floor_of(step(2000, 1, ElementType::bf16), made_up_machine()).seconds(), 1e-6);
  // Without an instruction for bytes they run as f32 does.
  EXPECT_DOUBLE_EQ(floor_of(step(2000, 1, ElementType::i8), made_up_machine()).seconds(), 2e-6);
}

TEST(Floor, IsMeasured) {
  const MachineFloor machine = measure_floor(1);
  EXPECT_GT(machine.f32_flops, 1e8);
  ASSERT_GE(machine.levels.size(), 3u);
  for (std::size_t i = 1; i < machine.levels.size(); ++i)
    EXPECT_GT(machine.levels[i].capacity, machine.levels[i - 1].capacity);
  for (const LevelBandwidth& level : machine.levels) EXPECT_GT(level.bytes_per_second, 1e8) << level.name;
}

Profile profile_of(const char* mode, int threads, std::int64_t micro_batch = 0) {
  ProfileRequest request{.model = "mlp", .mode = mode, .batch = 64};
  const ProfiledModel model = open_profiled_model(request);
  return measure_profile(target::find_target("cpu"), model,
                         {.batch = request.batch, .micro_batch = micro_batch, .threads = threads, .runs = 3},
                         made_up_machine());
}

TEST(Profile, CountsEveryExecution) {
  const Profile profile = profile_of("train", 1, 16);
  ASSERT_FALSE(profile.steps.empty());
  bool body = false, update = false;
  for (const StepProfile& step : profile.steps) {
    body = body || step.step.part == target::PlanPart::body;
    update = update || step.step.part == target::PlanPart::update;
    EXPECT_EQ(step.executions, step.step.part == target::PlanPart::body ? 4 : 1) << step.step.op;
    EXPECT_GE(step.seconds, 0);
  }
  EXPECT_TRUE(body);
  EXPECT_TRUE(update);
  EXPECT_EQ(profile.plan.micro_batch, 16);
}

TEST(Profile, OperatorsAddUpToTheSteps) {
  const Profile profile = profile_of("train", 1);
  double steps = 0, operators = 0;
  for (const StepProfile& step : profile.steps) steps += step.total();
  for (const OperatorProfile& entry : profile.operators) operators += entry.seconds;
  EXPECT_NEAR(operators, steps, 1e-9 * steps);
  EXPECT_NEAR(profile.busy_seconds, steps, 1e-9 * steps);
  for (std::size_t i = 1; i < profile.operators.size(); ++i)
    EXPECT_GE(profile.operators[i - 1].seconds, profile.operators[i].seconds);
}

TEST(Profile, EventsLieWithinTheRun) {
  const Profile profile = profile_of("train", 2);
  double last = 0;
  for (const target::StepEvent& event : profile.timeline.events) {
    EXPECT_LT(event.step, profile.timeline.steps.size());
    EXPECT_GE(event.begin, 0);
    EXPECT_LE(event.begin + event.seconds, profile.timeline.seconds + 1e-9);
    EXPECT_LT(event.thread, 2);
    last = std::max(last, event.begin + event.seconds);
  }
  EXPECT_GT(last, 0);
}

TEST(Profile, InferenceHasNoUpdate) {
  for (const StepProfile& step : profile_of("infer", 1).steps)
    EXPECT_EQ(step.step.part, target::PlanPart::body) << step.step.op;
}

TEST(Profile, TargetsThatDoNotMeasureAreRefused) {
  ProfileRequest request{.model = "mlp", .mode = "infer", .batch = 4};
  const ProfiledModel model = open_profiled_model(request);
  try {
    measure_profile(target::find_target("reference"), model, {.batch = 4, .runs = 3}, made_up_machine());
    FAIL();
  } catch (const Error& error) {
    EXPECT_TRUE(contains(error.what(), "does not measure its steps"));
  }
}

TEST(Profile, WrongRequestsAreRefused) {
  const auto message = [](ProfileRequest request) {
    try {
      open_profiled_model(request);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("nothing was wrong");
  };
  EXPECT_TRUE(contains(message({.model = "mlp", .mode = "trian"}), "did you mean 'train'?"));
  EXPECT_TRUE(contains(message({.model = "mpl"}), "did you mean 'mlp'?"));
  EXPECT_TRUE(contains(message({.model = "mlp", .precision = "f8"}), "f8"));
  EXPECT_TRUE(
      contains(message({.model = "mlp", .mode = "train", .precision = "int8"}), "int8 is for serving"));
}

TEST(ProfilePage, HoldsEveryStepAndNoNetwork) {
  const ScratchFolder folder;
  const Profile profile = profile_of("train", 2);
  write_profile_page(profile, folder / "profile.html");
  const std::string html = read_text_file(folder / "profile.html");
  EXPECT_TRUE(html.starts_with("<!DOCTYPE html>"));
  for (const StepProfile& step : profile.steps) EXPECT_TRUE(contains(html, step.step.kernel));
  for (const char* part :
       {"Time by operator", "Timeline", "What this machine can do", "prefers-color-scheme"})
    EXPECT_TRUE(contains(html, part));
  EXPECT_EQ(html.find("http://"), std::string::npos);
  EXPECT_EQ(html.find("https://"), std::string::npos);
  EXPECT_EQ(html.find("<script"), html.rfind("<script")) << "the page's own alone";
}

TEST(ProfilePage, SaysWhatItIsOfAndWhatItsClocksTook) {
  const ScratchFolder folder;
  const Profile profile = profile_of("train", 2);
  EXPECT_GT(profile.clock_seconds, 0);
  EXPECT_LT(profile.clock_seconds, 1e-4);
  write_profile_page(profile, folder / "p.html", "Processor 9000");
  const std::string html = read_text_file(folder / "p.html");
  EXPECT_TRUE(contains(html, fmt::format("<h1>Profile of mlp, train, f32, batch {} on Processor 9000</h1>",
                                         profile.plan.batch)));
  EXPECT_TRUE(contains(html, "two readings of the clock around each"));
  EXPECT_TRUE(contains(html, "<tr class=\"main\">"));
  for (const char* name : {"superstep.", ">columns<", ">pack<", ">unpack<", ">scalars<", ">accumulate<"})
    EXPECT_FALSE(contains(html, name)) << name;
}

TEST(ProfilePage, OperatorsHaveWords) {
  EXPECT_EQ(shown_op("Conv"), "Conv");
  EXPECT_EQ(shown_op("superstep.Adam"), "Adam");
  EXPECT_EQ(shown_op("superstep.ConvWeightGradient"), "Conv weight gradient");
  EXPECT_EQ(shown_op("superstep.LSTMGradient"), "LSTM gradient");
  EXPECT_EQ(shown_op("superstep.MaxPoolGradient+Add"), "Max pool gradient+Add");
  EXPECT_EQ(shown_op("columns"), "lay out windows");
}

TEST(ProfilePage, IsReadableInABrowser) {
  if (!test::has_browser()) GTEST_SKIP() << "chromium is not installed";
  const ScratchFolder folder;
  write_profile_page(profile_of("train", 2), folder / "p.html");
  const std::string html = read_text_file(folder / "p.html");
  for (const auto& [width, scheme] :
       {std::pair(1800, test::Scheme::light), std::pair(400, test::Scheme::dark)})
    test::expect_readable(test::shown(html, width, scheme), scheme);
}

TEST(ProfilePage, NamesAreMadeSafe) {
  Profile profile = profile_of("infer", 1);
  profile.name = "<script>alert(1)</script>";
  for (target::PlanStep& step : profile.timeline.steps) step.node = "<b>\"&";
  for (StepProfile& step : profile.steps) step.step.node = "<b>\"&";
  const ScratchFolder folder;
  write_profile_page(profile, folder / "p.html");
  const std::string html = read_text_file(folder / "p.html");
  EXPECT_EQ(html.find("<script>alert"), std::string::npos);
  EXPECT_EQ(html.find("<b>"), std::string::npos);
  EXPECT_TRUE(nlohmann::json::accept(profile_trace(profile)));
}

TEST(ProfileTrace, IsAJsonObjectOfEvents) {
  const Profile profile = profile_of("train", 2);
  const auto trace = nlohmann::json::parse(profile_trace(profile));
  std::size_t complete = 0;
  for (const auto& event : trace.at("traceEvents")) {
    if (event.at("ph") != "X") continue;
    ++complete;
    EXPECT_GE(event.at("dur").get<double>(), 0);
    EXPECT_TRUE(event.at("args").contains("kernel"));
    EXPECT_TRUE(event.contains("pid") && event.contains("tid") && event.contains("ts"));
  }
  EXPECT_EQ(complete, profile.timeline.events.size());
}

// Ten thousand events of a hundredth of what can be seen, and one that can.
TEST(ProfileDrawing, JoinsWhatCannotBeSeenApart) {
  Profile profile = profile_of("infer", 1);
  std::vector<target::StepEvent> events;
  for (int i = 0; i < 10000; ++i) events.push_back({.step = 0, .begin = i * 1e-6, .seconds = 0.9e-6});
  events.push_back({.step = 0, .begin = 0.01, .seconds = 0.01});
  const std::string drawing = draw_timeline(profile, events, 0, 0.02);
  std::size_t boxes = 0;
  for (std::size_t at = 0; (at = drawing.find("<rect", at)) != std::string::npos; ++at) ++boxes;
  EXPECT_LT(boxes, 2000u);
  EXPECT_GT(boxes, 100u);
  EXPECT_TRUE(contains(drawing, "short steps"));
  EXPECT_TRUE(contains(drawing, "10 ms"));
}

TEST(ProfileText, ShowsTheStepsThatTakeTheMost) {
  const Profile profile = profile_of("train", 1);
  const std::string text = profile_text(profile, 2);
  EXPECT_TRUE(contains(text, "mlp train"));
  EXPECT_TRUE(contains(text, "shorter steps"));
  for (const char* name : {"step_time", "throughput", "flops_rate", "share_of_floor"})
    EXPECT_TRUE(std::ranges::any_of(profile_metrics(profile), [&](const Metric& m) {
      return m.name == name;
    })) << name;
}

}  // namespace
}  // namespace superstep::lab
