// Searches: what a range draws, which trials go on, and what the shared file keeps.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <limits>
#include <map>
#include <set>

#include "superstep/base/error.h"
#include "superstep/study/kept.h"
#include "superstep/study/search/search.h"
#include "tests/expect_error.h"
#include "tests/scratch.h"

namespace superstep::study {
namespace {

TEST(SearchSpaces, AreReadFromWords) {
  const Parameter rate = parse_parameter("learning-rate=1e-4..1e-2:log");
  EXPECT_EQ(rate.kind, Parameter::Kind::real);
  EXPECT_TRUE(rate.log);
  EXPECT_EQ(range_words(rate), "0.0001 to 0.01 (log)");
  EXPECT_EQ(rate.extremes(), (std::vector<std::string>{"0.0001", "0.01"}));
  EXPECT_EQ(parse_parameter("width=8..64").kind, Parameter::Kind::whole);
  EXPECT_EQ(parse_parameter("batch=16,32").choices, (std::vector<std::string>{"16", "32"}));
  EXPECT_EQ(parse_parameter("weights=../run").choices, (std::vector<std::string>{"../run"}));
  EXPECT_EQ(parse_parameter("schedule=cosine:warm_up=2").choices.size(), 1U);
}

TEST(SearchSpaces, AreRefusedByName) {
  for (const char* const text :
       {"rate", "=3", "rate=", "rate=1..x", "rate=2..1", "rate=1..1", "rate=-1..1:log", "rate=0..1:lin",
        "batch=16,,32", "batch=16,16", "rate=1e999..2"}) {
    EXPECT_THROW(parse_parameter(text), Error) << text;
  }
}

// Within their ends, evenly, and the same for whoever draws.
TEST(SearchSpaces, AreDrawnEvenly) {
  const Parameter rate = parse_parameter("rate=1e-4..1e-2:log"), width = parse_parameter("width=1..4"),
                  kind = parse_parameter("kind=a,b");
  std::map<std::string, int> widths, kinds;
  int small = 0;
  constexpr int trials = 4000;
  for (int i = 0; i < trials; ++i) {
    const double value = std::strtod(drawn(rate, 1, i, 0).c_str(), nullptr);
    ASSERT_GE(value, 1e-4);
    ASSERT_LE(value, 1e-2);
    small += value < 1e-3 ? 1 : 0;
    ++widths[drawn(width, 1, i, 1)];
    ++kinds[drawn(kind, 1, i, 2)];
  }
  EXPECT_NEAR(small, trials / 2, 150) << "half of a logarithm's range lies below its middle";
  EXPECT_EQ(widths.size(), 4U);
  for (const auto& [value, count] : widths) EXPECT_NEAR(count, trials / 4, 150) << value;
  EXPECT_NEAR(kinds["a"], trials / 2, 150);
  EXPECT_EQ(drawn(rate, 1, 7, 0), drawn(rate, 1, 7, 0));
  EXPECT_NE(drawn(rate, 1, 7, 0), drawn(rate, 2, 7, 0));
}

TEST(Halving, HasRungsThatRise) {
  EXPECT_EQ(halving_of(27, 1, 3).epochs, (std::vector<int>{1, 3, 9, 27}));
  EXPECT_EQ(halving_of(27, 3, 3).epochs, (std::vector<int>{3, 9, 27}));
  EXPECT_EQ(halving_of(27, 1, 1).epochs, (std::vector<int>{27}));
  EXPECT_EQ(halving_of(0.5, 1, 3).epochs, (std::vector<int>{1}));
}

Standing paused(std::int64_t number, std::vector<double> losses) {
  return {.number = number,
          .rung = static_cast<int>(losses.size()) - 1,
          .state = Standing::State::paused,
          .losses = std::move(losses)};
}

TEST(Halving, LetsTheBestOfSoManyGoOn) {
  const Halving halving = halving_of(9, 1, 3);
  std::vector<Standing> trials{paused(0, {3}), paused(1, {2})};
  EXPECT_FALSE(promoted(trials, halving)) << "of two, a third is none";
  trials.push_back(paused(2, {1}));
  EXPECT_EQ(promoted(trials, halving), 2);
  trials[2] = {.number = 2, .rung = 1, .state = Standing::State::running, .losses = {1}};
  EXPECT_FALSE(promoted(trials, halving)) << "the best one has gone on";
  trials.push_back(paused(3, {std::numeric_limits<double>::infinity()}));
  trials.back().state = Standing::State::over;
  trials.push_back(paused(4, {2.5}));
  trials.push_back(paused(5, {9}));
  EXPECT_EQ(promoted(trials, halving), 1) << "who diverged counts among those that came as far";
  // The highest rung first.
  trials = {paused(0, {1, 5}), paused(1, {2, 4}), paused(2, {3, 3}),
            paused(3, {0.5}),  paused(4, {9}),    paused(5, {9})};
  EXPECT_EQ(promoted(trials, halving), 2);
}

TEST(Halving, TrainsOneToTheEnd) {
  const Halving halving = halving_of(9, 1, 3);
  std::vector<Standing> trials{paused(0, {3}), paused(1, {2}), paused(2, {4, 3})};
  EXPECT_EQ(last_promoted(trials, halving), 2);
  trials[2].losses.push_back(1);
  trials[2].state = Standing::State::over;
  EXPECT_FALSE(last_promoted(trials, halving));
}

SearchStorage open(const ScratchFolder& folder, const std::string& epochs) {
  return SearchStorage(folder / "search.db", {.name = "mlp",
                                              .what = {{"what is trained", "mlp"}, {"--epochs", epochs}},
                                              .higher_is_better = false,
                                              .parameters = 3,
                                              .rungs = 2});
}

TEST(SearchStorages, KeepTrialsAsTheyAre) {
  const ScratchFolder folder;
  const std::vector<Parameter> parameters{parse_parameter("rate=1e-4..1e-2:log"),
                                          parse_parameter("batch=16,32"), parse_parameter("width=8..64")};
  {
    SearchStorage storage = open(folder, "9");
    Trial trial = storage.add(parameters, {"0.001", "32", "10"});
    EXPECT_EQ(trial.number, 0);
    trial.qualities = {0.5};
    trial.state = TrialState::paused;
    trial.seconds = 2;
    storage.update(trial, 3);
    Trial other = storage.add(parameters, {"0.01", "16", "64"});
    EXPECT_EQ(other.number, 1);
    other.state = TrialState::diverged;
    other.words = "at step 3";
    other.qualities = {std::nan("")};
    storage.update(other, 3);
  }
  const std::vector<Trial> trials = open(folder, "9").trials();
  ASSERT_EQ(trials.size(), 2U);
  EXPECT_EQ(trials[0].values, (std::vector<std::string>{"0.001", "32", "10"}));
  EXPECT_EQ(trials[0].state, TrialState::paused);
  EXPECT_EQ(trials[0].qualities, std::vector<double>{0.5});
  EXPECT_EQ(trials[1].words, "at step 3");
  EXPECT_TRUE(std::isnan(trials[1].qualities.at(0)));
  const auto standings = standings_of(trials, false);
  EXPECT_EQ(standings[0].losses, std::vector<double>{0.5});
  EXPECT_TRUE(std::isinf(standings[1].losses.at(0)));
  EXPECT_EQ(standings_of(trials, true)[0].losses, std::vector<double>{-0.5});
}

TEST(SearchStorages, RefuseAnotherSearchByWhatItIs) {
  const ScratchFolder folder;
  open(folder, "9");
  expect_error(ErrorCode::invalid_argument, {"holds another search (--epochs: 9 there, 8.5 here)"},
               [&] { open(folder, "8.5"); });
  EXPECT_NO_THROW(open(folder, "9"));
}

// The file is open to Optuna, its dashboard and whoever writes SQLite.
TEST(SearchStorages, RefuseTrialsThatTheSearchCannotHave) {
  const ScratchFolder folder;
  const std::vector<Parameter> parameters{parse_parameter("rate=1e-4..1e-2:log"),
                                          parse_parameter("batch=16,32"), parse_parameter("width=8..64")};
  {
    SearchStorage storage = open(folder, "9");
    Trial trial = storage.add(parameters, {"0.001", "32", "10"});
    trial.qualities = {0.5};
    trial.state = TrialState::paused;
    storage.update(trial, 3);
  }
  const auto set = [&](const std::string& column, const std::string& value) {
    record::Database database(folder / "search.db");
    record::Statement(database, "update superstep_trials set \"" + column + "\" = ?").bind(value).run();
  };
  struct Damage {
    const char *column, *value, *sound, *words;
  };
  for (const Damage& each : {Damage{"values", "not a list", R"(["0.001","32","10"])", "a list of values"},
                             {"values", R"({"a":1})", R"(["0.001","32","10"])", "a list of values"},
                             {"values", R"(["0.001"])", R"(["0.001","32","10"])", "1 values of 3"},
                             {"values", "[]", R"(["0.001","32","10"])", "0 values of 3"},
                             {"qualities", "0.5", "[0.5]", "a list of values"},
                             {"qualities", "", "[0.5]", "a list of values"},
                             {"qualities", "[0.5,0.4,0.3]", "[0.5]", "with 3 qualities"},
                             {"qualities", "[]", "[0.5]", "with 0 qualities"},
                             {"rung", "2", "0", "on rung 2, and there are 2"},
                             {"rung", "-1", "0", "on rung -1"},
                             {"state", "running", "paused", "running on rung 0 with 1 qualities"},
                             {"state", "lost", "paused", "'lost'"}}) {
    set(each.column, each.value);
    expect_error(ErrorCode::bad_file, {"search.db", each.words}, [&] { open(folder, "9").trials(); });
    set(each.column, each.sound);
    EXPECT_EQ(open(folder, "9").trials().size(), 1U) << each.column;
  }
}

TEST(SearchStorages, RefuseAQueueWithoutNames) {
  const ScratchFolder folder;
  open(folder, "9");
  const auto fix = [&](const std::string& values) {
    record::Database database(folder / "search.db");
    database.execute("delete from trials; delete from trial_system_attributes", "write");
    database.execute("insert into trials (trial_id, number, study_id, state) values (1, 0, 1, 'WAITING')",
                     "write");
    record::Statement(database, "insert into trial_system_attributes values (1, 1, 'fixed_params', ?)")
        .bind(values)
        .run();
  };
  fix(R"({"batch": "16", "rate": 0.001})");
  const auto queued = open(folder, "9").queued();
  ASSERT_TRUE(queued);
  EXPECT_EQ(queued->values, (std::map<std::string, std::string>{{"batch", "16"}, {"rate", "0.001"}}));
  for (const char* const damaged : {"[16]", "16", "{"}) {
    fix(damaged);
    expect_error(ErrorCode::bad_file, {"search.db", "trial 0"}, [&] { open(folder, "9").queued(); });
  }
}

TEST(Failures, AreSaidInOneLine) {
  const auto words = [](const std::string& message) { return failure_words(Error(ErrorCode::io, message)); };
  EXPECT_EQ(
      words("a process ended with 2:\n  superstep: note: slow\nsuperstep: error: no such file (look)\n"),
      "no such file (look)");
  EXPECT_EQ(words("a process ended with 137:\n  "), "a process ended with 137");
  EXPECT_EQ(words("a process ended with 1:\n  killed\n by\n"), "a process ended with 1: killed by");
}

}  // namespace
}  // namespace superstep::study
