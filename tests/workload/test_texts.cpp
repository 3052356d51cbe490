// Texts of others in the workloads of language: padding beside tokens that are 0, text by its places rather
// than its signs, and no words that are not in the data.
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "superstep/base/thread_pool.h"
#include "superstep/baseline/language/next_word.h"
#include "superstep/file/hdf5/hdf5.h"
#include "superstep/page/page.h"
#include "superstep/workload/task.h"
#include "superstep/workload/workload.h"
#include "tests/contains.h"
#include "tests/scratch.h"

namespace superstep::workload {
namespace {

constexpr std::int64_t blocks = 20, length = 16, vocabulary = 64;

Tensor integers(const Shape& shape, std::int32_t value) {
  return Tensor::full(ElementType::i32, shape, value);
}

std::vector<std::int64_t> all_of(const Task& task) {
  std::vector<std::int64_t> indices(static_cast<std::size_t>(task.size()));
  std::iota(indices.begin(), indices.end(), 0);
  return indices;
}

double metric(const std::vector<Metric>& metrics, const std::string& name) {
  for (const Metric& each : metrics)
    if (each.name == name) return each.value;
  return NAN;
}

TEST(Texts, PaddingIsNegativeWhereATokenIsZero) {
  EXPECT_EQ(baseline::used_tokens(std::vector<std::int32_t>{5, 0, 0, 7, -1, -1}), 4u);
  EXPECT_EQ(baseline::used_tokens(std::vector<std::int32_t>{5, 0, 0, -1}), 3u);
  EXPECT_EQ(baseline::used_tokens(std::vector<std::int32_t>{5, 6, 7, 0, 0}), 3u);
  EXPECT_EQ(baseline::used_tokens(std::vector<std::int32_t>{5, 0, 7, 0, 0}), 3u);
  EXPECT_EQ(baseline::used_tokens(std::vector<std::int32_t>{-1}), 0u);
  EXPECT_EQ(baseline::used_tokens(std::vector<std::int32_t>{}), 0u);
}

TEST(Texts, TokensOfOthersAreToldIncludingThatWhichIsZero) {
  const ScratchFolder folder;
  Tensor tokens = integers({blocks, length}, 9);
  for (std::int64_t block = 0; block < blocks; ++block) {
    tokens.set(block * length + 3, 0);
    for (std::int64_t i = 10; i < length; ++i) tokens.set(block * length + i, -1);
  }
  data::Hdf5Writer writer(folder / "tokens.h5");
  writer.write("tokens", tokens);
  writer.close();
  ThreadPool pool(1);
  const auto task = open_task(find_workload("gpt2"), {.data = folder / "tokens.h5",
                                                      .samples = 0,
                                                      .seed = 1,
                                                      .model_options = {"length=16", "vocabulary=64"},
                                                      .labels_required = true,
                                                      .pool = &pool});
  const std::int64_t index[] = {2};
  Tensor batch[] = {Tensor(ElementType::i64, {1, length}), Tensor(ElementType::i64, {1, length})};
  task->fill(index, 0, false, batch);
  EXPECT_EQ(batch[0].at(3), 0);
  EXPECT_EQ(batch[0].at(12), 0);  // padding is some token to the model
  EXPECT_EQ(batch[1].at(2), 0);
  EXPECT_EQ(batch[1].at(8), 9);
  EXPECT_LT(batch[1].at(9), 0);  // nothing is told of padding
  const Tensor scores(ElementType::f32, {blocks, length, vocabulary});
  const auto indices = all_of(*task);
  const auto said = task->quality(indices, std::span(&scores, 1));
  EXPECT_NEAR(metric(said, "perplexity"), vocabulary, 1e-3);
  EXPECT_TRUE(std::isnan(metric(said, "perplexity_bound")));
  page::Page page("x");
  task->present({.model = "gpt2", .indices = indices, .outputs = std::span(&scores, 1)}, pool, page);
  EXPECT_TRUE(contains(page.to_html(), "#9"));  // its number: nobody said what it is called
}

TEST(Texts, QuestionsOfOthersAreAnsweredInTheirText) {
  const ScratchFolder folder;
  // [CLS] 7 8 [SEP] 20 3 21 22 [SEP], with signs of another tokenizer: 101 and 102 are not 2 and 3.
  const std::vector<std::int32_t> block = {101, 7, 8, 102, 20, 3, 21, 22, 102};
  Tensor ids = integers({blocks, 24}, 0), mask = ids.clone(), types = ids.clone();
  for (std::int64_t row = 0; row < blocks; ++row)
    for (std::size_t i = 0; i < block.size(); ++i) {
      const std::int64_t at = row * 24 + static_cast<std::int64_t>(i);
      ids.set(at, block[i]);
      mask.set(at, 1);
      types.set(at, i >= 4 ? 1 : 0);
    }
  data::Hdf5Writer writer(folder / "q.h5");
  writer.write("input_ids", ids);
  writer.write("attention_mask", mask);
  writer.write("token_type_ids", types);
  writer.write("start", integers({blocks}, 5));
  writer.write("end", integers({blocks}, 6));
  writer.close();
  ThreadPool pool(1);
  const auto task = open_task(find_workload("bert-base-squad"), {.data = folder / "q.h5",
                                                                 .samples = 0,
                                                                 .seed = 1,
                                                                 .model_options = {"length=24"},
                                                                 .labels_required = true,
                                                                 .pool = &pool});
  const auto indices = all_of(*task);
  Tensor outputs[] = {Tensor(ElementType::f32, {blocks, 24}), Tensor(ElementType::f32, {blocks, 24})};
  for (std::int64_t row = 0; row < blocks; ++row) {
    outputs[0].set(row * 24 + 5, 1), outputs[1].set(row * 24 + 6, 1);
    // What is no part of the text is no answer, whatever the model says.
    for (const std::int64_t at : {0, 2, 3, 8, 12})
      outputs[0].set(row * 24 + at, 9), outputs[1].set(row * 24 + at, 9);
  }
  const auto said = task->quality(indices, outputs);
  EXPECT_EQ(metric(said, "exact_match"), 1);
  EXPECT_EQ(metric(said, "f1"), 1);
  EXPECT_TRUE(std::isnan(metric(said, "exact_bound")));
  EXPECT_FALSE(task->references(indices, pool).conventional);
  page::Page page("x");
  task->present({.model = "bert", .indices = indices, .outputs = outputs}, pool, page);
  EXPECT_TRUE(contains(page.to_html(), "#3 #21")) << page.to_html();
}

}  // namespace
}  // namespace superstep::workload
