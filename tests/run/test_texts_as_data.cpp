// Models that are trained on texts and on questions as they lie in files, with a tokenizer.
#include <gtest/gtest.h>

#include <fstream>

#include "superstep/language/text/text_source.h"
#include "superstep/run/model.h"
#include "superstep/run/user/arrays.h"
#include "tests/expect_error.h"
#include "tests/run/training_runs.h"
#include "tests/scratch.h"

namespace superstep::run {
namespace {

using test::expect_same_states;
using test::newest_checkpoint;

constexpr const char* words[] = {"the", "beam", "hits", "crystal", "detector", "counts", "spots"};

class TextsAsData : public ::testing::Test {
 protected:
  void SetUp() override {
    std::ofstream vocabulary(folder / "vocab.txt");
    for (const char* piece : {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"}) vocabulary << piece << "\n";
    for (const char* word : words) vocabulary << word << "\n";
    std::filesystem::create_directories(folder / "texts");
    for (int document = 0; document < 5; ++document) {
      std::ofstream text(folder / "texts" / (std::to_string(document) + ".txt"));
      for (int i = 0; i < 600; ++i) text << words[(i * i + document) % 7] << (i % 12 == 11 ? "\n" : " ");
    }
    std::ofstream questions(folder / "squad.json");
    questions << R"({"version": "1.1", "data": [{"title": "t", "paragraphs": [)";
    for (int i = 0; i < 24; ++i)
      questions << (i > 0 ? "," : "") << R"({"context": ")" << words[i % 7]
                << R"( hits the crystal", "qas": [{"id": ")" << i
                << R"(", "question": "the beam", "answers": [{"text": ")" << words[i % 7]
                << R"(", "answer_start": 0}]}]})";
    questions << "]}]}";
  }

  TrainSettings of(const char* workload, const char* data) const {
    return {.workload = workload,
            .model_options = {"length=32", "layers=1", "width=32", "heads=2", "vocabulary=64"},
            .data = folder / data,
            .tokenizer = folder / "vocab.txt",
            .batch = 4,
            .replicas = 2,
            .epochs = 5,
            .steps = 20};
  }

  // From memory, and read as it goes by several threads: what both end with.
  Checkpoint trained(const TrainSettings& settings) {
    const std::string out = "run-" + std::to_string(runs_++);
    train(settings, {.out = folder / out, .data_memory = 1e9});
    train(settings, {.out = folder / (out + "b"), .data_memory = 1, .data_threads = 3});
    const Checkpoint held = newest_checkpoint(folder / out);
    EXPECT_EQ(held.step, 20);
    expect_same_states(held, newest_checkpoint(folder / (out + "b")));
    return held;
  }

  const ScratchFolder folder;

 private:
  int runs_ = 0;
};

TEST_F(TextsAsData, TrainModelsThatGoOnWithThem) { trained(of("gpt2", "texts")); }

// Questions have no order of their own: the same windows as arrays give the same bits.
TEST_F(TextsAsData, QuestionsAreTheirWindows) {
  const auto source =
      language::open_squad(folder / "squad.json", {.tokenizer = std::make_shared<const language::Tokenizer>(
                                                       language::Tokenizer::from_file(folder / "vocab.txt")),
                                                   .length = 32,
                                                   .stride = 10});
  NamedTensors windows;
  for (std::size_t i = 0; i < source->arrays().size(); ++i)
    windows.emplace(source->arrays()[i].name, data::read_whole(*source, i));
  write_arrays(folder / "windows.npz", windows);
  TrainSettings arrays = of("bert-base-squad", "windows.npz");
  arrays.tokenizer.clear();
  expect_same_states(trained(of("bert-base-squad", "squad.json")), trained(arrays));
}

TEST_F(TextsAsData, AreRefusedWhereTheyAreNotTaken) {
  const auto refused = [&](const TrainSettings& settings, const char* where) {
    try {
      train(settings, {.out = folder / "run"});
      ADD_FAILURE() << settings.workload << " was trained";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::invalid_argument) << error.what();
      EXPECT_NE(std::string(error.what()).find(where), std::string::npos) << error.what();
    }
  };
  TrainSettings other = of("braggnn", "texts");
  other.model_options.clear();
  refused(other, "--tokenizer");
  refused(of("gpt2", "squad.json"), "squad.json");
  refused(of("bert-base-squad", "texts"), "texts");
}

}  // namespace
}  // namespace superstep::run
