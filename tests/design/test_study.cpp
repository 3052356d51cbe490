// Problems as people write them, and studies from the first trial to the target.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "superstep/base/file.h"
#include "superstep/base/system/interrupt.h"
#include "superstep/design/latin_hypercube.h"
#include "superstep/design/minimise.h"
#include "superstep/design/study.h"
#include "superstep/design/study_files.h"
#include "superstep/design/study_page.h"
#include "tests/contains.h"
#include "tests/expect_error.h"
#include "tests/scratch.h"

namespace superstep::design {
namespace {

using nlohmann::json;

// Small enough for a test: 6 cycles, few trials.
json small_case() {
  json source = published_case();
  source["cycles"] = 6, source["initial"] = 12, source["batch"] = 3;
  return source;
}

Problem problem_of(const json& source) { return problem_from_json(source, "mine.json"); }

void expect_refused(json source, std::initializer_list<std::string> parts) {
  expect_error(ErrorCode::bad_file, parts, [&] { problem_of(source); });
}

TEST(Minimise, FindsTheFootOfRosenbrocksValleyAndStaysWithinBounds) {
  const auto valley = [](std::span<const double> x, std::span<double> slope) {
    const double along = x[1] - x[0] * x[0];
    slope[0] = -400 * along * x[0] - 2 * (1 - x[0]), slope[1] = 200 * along;
    return 100 * along * along + (1 - x[0]) * (1 - x[0]);
  };
  const std::vector<Bounds> wide(2, Bounds{-3, 3}), narrow{{-3, 0.5}, {-3, 3}};
  const std::vector<double> start{-1.2, 1};
  const Minimum free = minimise(valley, wide, start);
  EXPECT_NEAR(free.at[0], 1, 1e-3);
  EXPECT_NEAR(free.at[1], 1, 1e-3);
  const Minimum bounded = minimise(valley, narrow, start);
  EXPECT_LE(bounded.at[0], 0.5);
  EXPECT_NEAR(bounded.value, 0.25, 1e-3);  // at (0.5, 0.25)
}

TEST(Minimise, AvoidsWhatIsNotFiniteAndSaysWhenNothingIs) {
  const auto half = [](std::span<const double> x, std::span<double> slope) {
    slope[0] = 1 / (2 * std::sqrt(x[0])) - 1;
    return std::sqrt(x[0]) - x[0];  // NaN below 0
  };
  const std::vector<Bounds> bounds{{-1, 4}};
  EXPECT_NEAR(minimise(half, bounds, std::vector<double>{2.0}).at[0], 4, 1e-2);
  const auto never = [](std::span<const double>, std::span<double> slope) {
    slope[0] = 0;
    return std::nan("");
  };
  expect_error(ErrorCode::diverged, {"finite nowhere"},
               [&] { minimise(never, bounds, std::vector<double>{2.0}); });
}

TEST(LatinHypercube, HasOnePointInEverySlice) {
  const Eigen::MatrixXd points = latin_hypercube(20, 3, 7, 1);
  for (Eigen::Index d = 0; d < 3; ++d) {
    std::vector<int> slices(20);
    for (Eigen::Index k = 0; k < 20; ++k) ++slices[static_cast<std::size_t>(points(k, d) * 20)];
    EXPECT_EQ(slices, std::vector<int>(20, 1));
  }
  EXPECT_EQ(points, latin_hypercube(20, 3, 7, 1));
  EXPECT_NE(points, latin_hypercube(20, 3, 8, 1));
}

TEST(Problem, ThePublishedCaseHasItsCurve) {
  const Problem problem = problem_of(published_case());
  ASSERT_EQ(problem.points(), 50U);
  EXPECT_NEAR(problem.target[0], 2.4173, 1e-4);
  EXPECT_NEAR(problem.target[1], 3.1030, 1e-4);
  EXPECT_NEAR(problem.target[49], 3.1031, 1e-4);
  std::vector<double> edge = problem.target;
  edge[3] *= 1.1;
  EXPECT_NEAR(problem.distance(edge), 1, 1e-12);
  EXPECT_NEAR(problem.deviation(edge), 0.1, 1e-12);
  edge[4] = std::nan("");
  EXPECT_TRUE(std::isinf(problem.distance(edge)));
}

TEST(Problem, SaysWhichMemberIsWrong) {
  json source = small_case();
  source["tolerence"] = 0.2;
  expect_refused(source, {"mine.json", "'tolerence'", "did you mean 'tolerance'?"});
  source = small_case();
  source["unknowns"]["purge_a"] = {0.5, 0.05};
  expect_refused(source, {"'unknowns.purge_a'", "low below high"});
  source = small_case();
  source["unknowns"]["purge_c"] = {0, 1};
  expect_refused(source, {"'unknowns.purge_c'", "did you mean 'purge_a'?"});
  source = small_case();
  source["process"]["chemistry"] = "Al2O3";
  expect_refused(source, {"'process.chemistry'", "Al2O3-100C"});
  source = small_case();
  source["process"]["presure_a"] = 3;
  expect_refused(source, {"'process.presure_a'", "pressure_a"});
  source = small_case();
  source["process"] = {{"purge_a", 1}};
  expect_refused(source, {"'process'", "name a chemistry"});
  source = small_case();
  source["target"] = {{"settings", {{"purge_a", 0.2}}}};
  expect_refused(source, {"'target.settings'", "lacks 'mass_a'"});
  source["target"] = {{"settings", {{"dose", 0.2}}}};
  expect_refused(source, {"'target.settings.dose'", "none of the unknowns"});
  source["target"] = {{"curve", {1, 2, 3}}};
  expect_refused(source, {"'target.curve'", "3 points", "6"});
  source["target"] = {{"curve", {1, 2, 3, 4, 0, 6}}};
  expect_refused(source, {"'target'", "at 0", "largest"});
  source["target"] = json::object();
  expect_refused(source, {"'target'", "either 'settings' or 'curve'"});
  source = small_case();
  source["unknowns"]["dose_time_a"] = {0.1, 1e9};
  expect_refused(source, {"'unknowns'", "cannot be simulated"});
  source = small_case();
  source["noise"] = "little";
  expect_refused(source, {"'noise'", "number"});
  source = small_case();
  source.erase("process");
  expect_refused(source, {"is of a simulated 'process'"});
}

TEST(Problem, AFileThatIsNoJsonSaysWhere) {
  const ScratchFolder folder;
  const std::string path = folder / "mine.json";
  write_file_atomically(path, std::string_view("{\"unknowns\": }"));
  expect_error(ErrorCode::bad_file, {"mine.json", "byte 14"}, [&] { read_problem(path); });
  expect_error(ErrorCode::not_found, {"none.json"}, [&] { read_problem(folder / "none.json"); });
}

TEST(Problem, TheTraceOfACycleIsATargetToo) {
  json source = published_case();
  source["curve"] = "trace", source["points"] = 40;
  const Problem problem = problem_of(source);
  EXPECT_EQ(problem.points(), 40U);
  EXPECT_NEAR(problem.target.back(), 3.1031, 1e-4) << "all that a cycle gains";
  EXPECT_EQ(problem.half_width[0], 0.1 * problem.target.back()) << "relative to the largest";
  EXPECT_NEAR(problem.positions.back(), 1, 1e-12);
}

TEST(Study, MeetsThePublishedTargetWithinFiveIterationsForEightOfTenSeeds) {
  const Problem problem = problem_of(published_case());
  ThreadPool pool(2);
  int met = 0;
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    Study study;
    study.seed = seed;
    run_study(problem, study, 5, pool);
    if (!study.converged()) continue;
    const double true_deviation = problem.deviation(problem.simulate(study.answer(problem).settings));
    EXPECT_LE(true_deviation, 0.1) << "without the noise of its measurement, seed " << seed;
    ++met;
  }
  EXPECT_GE(met, 8);
}

TEST(Study, MeetsANarrowerToleranceThanAsManyTrialsWithoutAModelDo) {
  json source = published_case();
  source["tolerance"] = 0.03;
  const Problem problem = problem_of(source);
  ThreadPool pool(2);
  int met = 0, floor_met = 0;
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    Study study;
    study.seed = seed;
    run_study(problem, study, 5, pool);
    const References beside = references(problem, seed, static_cast<int>(study.trials.size()));
    met += study.converged();
    floor_met += beside.floor <= 0.03;
    EXPECT_LT(beside.ceiling, 1e-3);
  }
  EXPECT_GT(met, floor_met);
}

TEST(Study, MeetsTheTraceOfACycle) {
  json source = published_case();
  source["curve"] = "trace", source["points"] = 40, source["cycles"] = 5, source["tolerance"] = 0.05;
  const Problem problem = problem_of(source);
  ThreadPool pool(2);
  Study study;
  run_study(problem, study, 8, pool);
  EXPECT_TRUE(study.converged());
  EXPECT_LE(problem.deviation(problem.simulate(study.answer(problem).settings)), 0.05);
}

TEST(Study, IsTheSameStoppedOrNotAndOnAnyNumberOfThreads) {
  json source = small_case();
  source["tolerance"] = 0.004, source["noise"] = 0.002;  // out of reach of three iterations
  const Problem problem = problem_of(source);
  const ScratchFolder folder;
  ThreadPool one(1), three(3);
  Study whole, stopped;
  run_study(problem, whole, 3, one);
  ASSERT_EQ(whole.iterations.size(), 3U);
  run_study(problem, stopped, 1, three,
            [&](const Study& study) { save_state(folder / "run", study, problem); });
  std::optional<Study> resumed = load_state(folder / "run", problem, 1);
  ASSERT_TRUE(resumed);
  EXPECT_EQ(resumed->iterations.size(), 1U);
  run_study(problem, *resumed, 3, three);
  EXPECT_EQ(to_json(*resumed, problem), to_json(whole, problem));
}

TEST(Study, AStateOfAnotherProblemOrSeedOrADamagedOneIsRefused) {
  const Problem problem = problem_of(small_case());
  const ScratchFolder folder;
  EXPECT_FALSE(load_state(folder / "none", problem, 1));
  Study study;
  study.trials.push_back({0, Role::initial, {1, 1, 1, 1}, {1, 2, 3, 4, 5, 6}});
  save_state(folder / "run", study, problem);
  EXPECT_EQ(load_state(folder / "run", problem, 1)->trials.size(), 1U);
  expect_error(ErrorCode::invalid_argument, {"another seed"},
               [&] { load_state(folder / "run", problem, 2); });
  json other = small_case();
  other["noise"] = 0.02;
  expect_error(ErrorCode::invalid_argument, {"another problem"},
               [&] { load_state(folder / "run", problem_of(other), 1); });
  json state = to_json(study, problem);
  state["trials"][0]["curve"].erase(2);
  const std::filesystem::path path = folder / "run" / "state.json";
  write_file_atomically(path, state.dump());
  expect_error(ErrorCode::bad_file, {"'trials[0].curve'", "5 numbers, not 6"},
               [&] { load_state(folder / "run", problem, 1); });
  write_file_atomically(path, std::string_view("{\"schema\""));
  expect_error(ErrorCode::bad_file, {"no JSON"}, [&] { load_state(folder / "run", problem, 1); });
}

TEST(Study, StopsWhenAskedAndKeepsWhatWasFinished) {
  const Problem problem = problem_of(small_case());
  ThreadPool pool(1);
  Study study;
  expect_error(ErrorCode::interrupted, {},
               [&] { run_study(problem, study, 5, pool, [](const Study&) { request_interrupt(); }); });
  clear_interrupt();
  EXPECT_EQ(study.trials.size(), 12U);
  EXPECT_TRUE(study.iterations.empty());
}

// An experiment that nobody simulates here: the response is known to the test alone.
TEST(Proposal, LeadsAReactorOfOnesOwnToItsTarget) {
  const json source = {{"name", "etching"},
                       {"unknowns", {{"power", {10, 90}}, {"flow", {1, 5}}}},
                       {"target", {{"curve", {3, 4, 4.5}}}},
                       {"tolerance", 0.05},
                       {"batch", 2}};
  const Problem problem = problem_of(source);
  EXPECT_FALSE(problem.simulate);
  // The order of the unknowns is that of their names: flow, power. The target is at flow 3, power 50.
  const auto reactor = [](const std::vector<double>& s) {
    const double a = s[1] / 50, b = s[0] / 3;
    return std::vector<double>{3 * a * b, 4 * a * std::sqrt(b), 4.5 * std::sqrt(a)};
  };
  ThreadPool pool(2);
  std::vector<Trial> trials;
  for (const std::vector<double>& s : {std::vector<double>{1.5, 20}, {4.5, 30}, {2, 80}, {4, 70}, {2.5, 40}})
    trials.push_back({0, Role::initial, s, reactor(s)});
  bool met = false;
  for (int round = 1; round <= 6 && !met; ++round) {
    const Iteration next = decide(problem, trials, 1, round, pool);
    trials.push_back({round, Role::target, next.settings, reactor(next.settings)});
    met = problem.distance(trials.back().curve) <= 1;
    for (const std::vector<double>& s : next.learning)
      trials.push_back({round, Role::learning, s, reactor(s)});
  }
  EXPECT_TRUE(met);
  Study study;
  expect_error(ErrorCode::invalid_argument, {"etching", "--trials"},
               [&] { run_study(problem, study, 1, pool); });
}

TEST(Trials, AreReadAsTheyAreWrittenAndProposalsAreTheirForm) {
  const Problem problem = problem_of(small_case());
  const ScratchFolder folder;
  std::vector<Trial> trials{{0, Role::initial, {0.1, 0.2, 0.3, 0.4}, {1, 2, 3, 4, 5, 6}},
                            {1, Role::target, {0.5, 0.6, 0.15, 0.25}, {6, 5, 4, 3, 2, 1}}};
  write_trials(folder / "trials.csv", problem, trials);
  const std::vector<Trial> read = read_trials(folder / "trials.csv", problem);
  ASSERT_EQ(read.size(), 2U);
  EXPECT_EQ(read[1].settings, trials[1].settings);
  EXPECT_EQ(read[1].curve, trials[1].curve);
  Iteration next;
  next.settings = {0.1, 0.2, 0.3, 0.4}, next.learning = {{0.5, 0.5, 0.1, 0.1}};
  write_proposal(folder / "next.csv", problem, next);
  EXPECT_TRUE(read_trials(folder / "next.csv", problem).empty()) << "nothing is measured yet";
}

TEST(Trials, FilesThatDoNotFitAreRefusedByName) {
  const Problem problem = problem_of(small_case());
  const ScratchFolder folder;
  const std::filesystem::path path = folder / "t.csv";
  const auto refuses = [&](std::string_view text, std::initializer_list<std::string> parts) {
    write_file_atomically(path, text);
    expect_error(ErrorCode::bad_file, parts, [&] { read_trials(path, problem); });
  };
  refuses("purge_a,purge_b,mass_a,1,2,3,4,5,6\n", {"t.csv", "mass_b"});
  refuses("purge_a,purge_b,mass_a,mass_b,1,2,3\n", {"t.csv", "3 columns", "6 points"});
  refuses("purge_a,purge_b,mass_a,mass_b,c1,c2,c3,c4,c5,c6\n.1,.1,.1,.1,1,2,3,4,nan,6\n", {"t.csv:2", "c5"});
  refuses("purge_a,purge_b,mass_a,mass_b,c1,c2,c3,c4,c5,c6\n.1,.1,.1,.1,1,2,3,4,,6\n", {"t.csv", "c5"});
}

TEST(Page, ShowsEveryIterationItsCurvesAndTheTrials) {
  const Problem problem = problem_of(small_case());
  ThreadPool pool(2);
  Study study;
  run_study(problem, study, 2, pool);
  const std::string html = page_of(problem, study, references(problem, 1, 20)).to_html();
  for (const char* word : {"target, within 10 %", "predicted, 95 %", "iteration 1", "initial trials", "floor",
                           "ceiling", "purge_a, s", "shapes beyond noise"})
    EXPECT_TRUE(contains(html, word)) << word;
  EXPECT_FALSE(contains(html, "not shown")) << "no value is missing from a plot";
  EXPECT_FALSE(contains(html, "<script src"));
  const ScratchFolder folder;
  write_picture(folder / "1.png", problem, study, study.iterations[0]);
  EXPECT_TRUE(read_text_file(folder / "1.png").starts_with("\x89PNG"));
}

}  // namespace
}  // namespace superstep::design
