// What others reach is run once a data set, and again whenever anything that it depends on is another.
#include <gtest/gtest.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <numeric>

#include "superstep/base/file.h"
#include "superstep/run/references.h"
#include "tests/scratch.h"

namespace superstep::run {
namespace {

class Fitted : public Task {
 public:
  std::int64_t size() const override { return 10; }
  std::int64_t training_count() const override { return 5; }
  void fill(std::span<const std::int64_t>, std::uint64_t, bool, std::span<Tensor>) const override {}
  void fill_inputs(std::span<const std::int64_t>, std::span<Tensor>, ThreadPool&) const override {}
  std::vector<Metric> quality(std::span<const std::int64_t>, std::span<const Tensor>) const override {
    return {{.name = "r2", .value = 0.5, .unit = ""}};
  }
  References references(std::span<const std::int64_t>, ThreadPool&) const override {
    ++fits;
    return {.floor = Reference{"the mean", 0.1},
            .conventional = Reference{"trees", 1.0 / 3},
            .limit = {},
            .target = 0.7 + 0.1};
  }
  double reference_seconds() const override { return seconds; }
  nlohmann::json describe() const override { return {{"source", source}, {"samples", 10}}; }

  std::string source = "generated, seed 1";
  double seconds = 100;
  mutable int fits = 0;
};

class KnownReferencesTest : public ::testing::Test {
 protected:
  const workload::Workload& uno() { return workload::find_workload("uno"); }
  References get(std::int64_t first = 5) {
    std::vector<std::int64_t> indices(3);
    std::iota(indices.begin(), indices.end(), first);
    return KnownReferences(folder_ / "references.json").get(task_, uno(), indices, pool_);
  }
  ScratchFolder folder_;
  ThreadPool pool_{1};
  Fitted task_;
};

TEST_F(KnownReferencesTest, AreRunOnceForTheSameSamples) {
  const References run = get(), known = get();
  EXPECT_EQ(task_.fits, 1);
  EXPECT_EQ(known.floor->method, "the mean");
  EXPECT_EQ(known.conventional->value, run.conventional->value);  // to the last bit
  EXPECT_EQ(known.target, run.target);
  EXPECT_FALSE(known.limit);
}

TEST_F(KnownReferencesTest, AreRunAgainForOtherSamplesDataAndWorkloads) {
  get();
  get(6);
  EXPECT_EQ(task_.fits, 2);
  task_.source = "generated, seed 2";
  get();
  EXPECT_EQ(task_.fits, 3);
  const std::int64_t indices[] = {5, 6, 7};
  KnownReferences(folder_ / "references.json").get(task_, workload::find_workload("mlp"), indices, pool_);
  EXPECT_EQ(task_.fits, 4);
}

TEST_F(KnownReferencesTest, AreRunAgainWhenAFileOfTheDataIsAnother) {
  const std::filesystem::path data = folder_ / "data";
  std::filesystem::create_directories(data);
  write_file_atomically(data / "a.h5", "one");
  task_.source = data.string();
  get();
  get();
  EXPECT_EQ(task_.fits, 1);
  write_file_atomically(data / "b.h5", "one more");
  get();
  EXPECT_EQ(task_.fits, 2);
  std::filesystem::last_write_time(data / "a.h5",
                                   std::filesystem::last_write_time(data / "a.h5") - std::chrono::hours(1));
  get();
  EXPECT_EQ(task_.fits, 3);
}

TEST_F(KnownReferencesTest, AreNotRememberedWhereTheyTakeAMoment) {
  task_.seconds = 0.5;
  get();
  get();
  EXPECT_EQ(task_.fits, 2);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "references.json"));
}

TEST_F(KnownReferencesTest, AreRunAgainWhereTheFileIsBroken) {
  get();
  std::string text = read_text_file(folder_ / "references.json");
  const std::size_t value = text.find("\"floor\"");
  ASSERT_NE(value, std::string::npos);
  text.replace(value, 7, "\"flaw\"");
  write_file_atomically(folder_ / "references.json", text);
  get();
  EXPECT_EQ(task_.fits, 2);
  write_file_atomically(folder_ / "references.json", "no JSON");
  get();
  get();
  EXPECT_EQ(task_.fits, 3);
}

}  // namespace
}  // namespace superstep::run
