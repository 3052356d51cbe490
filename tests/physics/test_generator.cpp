#include <gtest/gtest.h>

#include <cstring>
#include <nlohmann/json.hpp>

#include "superstep/base/random.h"
#include "superstep/base/system/interrupt.h"
#include "superstep/file/hdf5/hdf5.h"
#include "superstep/physics/generator.h"
#include "tests/scratch.h"

namespace superstep::data {
namespace {

// Two fields: the sample's index, and numbers of its own stream.
class Counting final : public Generator {
 public:
  std::string_view name() const override { return "counting"; }
  int version() const override { return 3; }
  std::span<const Field> fields() const override {
    static const std::vector<Field> table{{"index", ElementType::i64, {}, "", "which sample"},
                                          {"noise", ElementType::f32, {2, 3}, "counts", "its numbers"}};
    return table;
  }
  void sample(std::uint64_t seed, std::uint64_t index, std::span<std::byte* const> out) const override {
    if (index == fail_at) throw Error(ErrorCode::internal, "made to fail");
    std::memcpy(out[0], &index, sizeof index);
    RandomStream random(seed, index);
    for (int i = 0; i < 6; ++i) reinterpret_cast<float*>(out[1])[i] = static_cast<float>(random.uniform());
  }
  nlohmann::json parameters() const override { return {{"width", 3}}; }
  std::map<std::string, Tensor> shared_arrays(std::uint64_t) const override {
    return {{"probe", Tensor::full(ElementType::f64, {4}, 2.5)}};
  }
  std::uint64_t fail_at = ~std::uint64_t{0};
};

TEST(Generator, WritesEveryFieldWithProvenance) {
  const ScratchFolder folder;
  ThreadPool pool(2);
  const Counting generator;
  const std::uint64_t samples = 700000;  // more than one block
  generator.write({folder / "a.h5", 7, samples, &pool});
  const Hdf5File file(folder / "a.h5");
  EXPECT_EQ(std::get<std::int64_t>(file.attributes().at("synthetic")), 1);
  EXPECT_EQ(std::get<std::int64_t>(file.attributes().at("version")), 3);
  EXPECT_EQ(std::get<std::int64_t>(file.attributes().at("seed")), 7);
  EXPECT_EQ(std::get<std::string>(file.attributes().at("generator")), "counting");
  EXPECT_EQ(std::get<std::string>(file.attributes().at("parameters")), R"({"width":3})");
  EXPECT_EQ(std::get<std::string>(file.attributes("noise").at("unit")), "counts");
  EXPECT_EQ(file.read("probe", ElementType::f32).as<float>()[3], 2.5f);
  const Tensor index = file.read("index", ElementType::i64);
  for (std::uint64_t i = 0; i < samples; i += 997) ASSERT_EQ(index.at(static_cast<std::int64_t>(i)), i);
  RandomStream random(7, samples - 1);
  EXPECT_EQ(file.read_rows("noise", ElementType::f32, samples - 1, 1).as<float>()[0],
            static_cast<float>(random.uniform()));
}

TEST(Generator, LeavesNothingBehindWhenItFails) {
  const ScratchFolder folder;
  ThreadPool pool(2);
  Counting generator;
  generator.fail_at = 1000;
  EXPECT_THROW(generator.write({folder / "a.h5", 1, 2000, &pool}), Error);
  EXPECT_EQ(folder.file_count(), 0);
}

TEST(Generator, LeavesNothingBehindWhenInterrupted) {
  const ScratchFolder folder;
  ThreadPool pool(2);
  request_interrupt();
  try {
    Counting().write({folder / "a.h5", 1, 2000, &pool});
    FAIL() << "an interrupted generation ended as if it had not been";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::interrupted);
  }
  clear_interrupt();
  EXPECT_EQ(folder.file_count(), 0);
}

TEST(Generator, UnknownNameIsRefused) { EXPECT_THROW(find_generator("no such workload"), Error); }

}  // namespace
}  // namespace superstep::data
