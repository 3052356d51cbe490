// superstep answer: others' weights and a run of bert-base-squad, from the command line, and what is said
// when something is wrong.
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "superstep/base/file.h"
#include "tests/cli/program.h"
#include "tests/contains.h"
#include "tests/scratch.h"

namespace superstep {
namespace {

namespace fs = std::filesystem;

const fs::path source = SUPERSTEP_SOURCE;
const std::string text =
    "The beam leaves the ring and meets the crystal. The crystal turns; 12 peaks are seen.";

void put_model(const ScratchFolder& folder) {
  fs::copy(source / "tests/language/models/bert", folder / "bert");
  write_file_atomically(folder / "page.txt", text);
}

nlohmann::json result_of(const ScratchFolder& folder, const std::string& call) {
  const Outcome outcome = run_program(folder / "", call + " --json result.json");
  EXPECT_EQ(outcome.code, 0) << call << "\n" << outcome.errors;
  return nlohmann::json::parse(read_text_file(folder / "result.json"));
}

TEST(Answer, IsAPartOfTheText) {
  const ScratchFolder folder;
  put_model(folder);
  const std::string call =
      "answer bert --context page.txt --question \"What turns?\" --question \"Who?\" --best 4";
  const nlohmann::json result = result_of(folder, call);
  ASSERT_EQ(result["questions"].size(), 2u);
  for (const auto& question : result["questions"]) {
    ASSERT_EQ(question["answers"].size(), 4u);
    double before = 1;
    for (const auto& each : question["answers"]) {
      const auto begin = each["begin"].get<std::size_t>(), end = each["end"].get<std::size_t>();
      EXPECT_EQ(each["text"], text.substr(begin, end - begin));
      EXPECT_LE(each["score"].get<double>(), before);
      before = each["score"].get<double>();
    }
  }
  // The text itself in the place of a file, and one answer: a line.
  const Outcome one = run_program(
      folder / "", "answer --weights bert/model.safetensors --vocab bert/tokenizer.json --context \"" + text +
                       "\" --question \"What turns?\"");
  EXPECT_EQ(one.code, 0) << one.errors;
  EXPECT_EQ(one.output, result["questions"][0]["answers"][0]["text"].get<std::string>() + "\n");
  EXPECT_TRUE(contains(one.errors, "windows: 1 of 64")) << one.errors;
}

// By one window or by several of another stride, the same text is read; what there is to say differs.
TEST(Answer, ReadsLongTextsInWindows) {
  const ScratchFolder folder;
  put_model(folder);
  std::string longer;
  for (int i = 0; i < 40; ++i) longer += text + " ";
  write_file_atomically(folder / "long.txt", longer);
  const nlohmann::json all =
      result_of(folder, "answer bert --context long.txt --question \"What turns?\" --quiet");
  const auto windows = all["questions"][0]["windows"].get<std::vector<int>>();
  ASSERT_GT(windows.size(), 3u);
  EXPECT_EQ(windows[0], 384);
  const nlohmann::json shorter = result_of(
      folder, "answer bert --context long.txt --question \"What turns?\" --length 64 --stride 16 --quiet");
  EXPECT_GT(shorter["questions"][0]["windows"].size(), windows.size());
}

TEST(Answer, OfARunInItsOwnWords) {
  const ScratchFolder folder;
  const std::string options =
      "--set layers=1 --set width=16 --set heads=2 --set vocabulary=128 --set length=32";
  const Outcome trained = run_program(folder / "", "train bert-base-squad " + options +
                                                       " --samples 80 --steps 2 --batch 8 --out run --quiet");
  ASSERT_EQ(trained.code, 0) << trained.errors;
  const nlohmann::json result =
      result_of(folder, "answer run --context \"the a . that\" --question \"who the\"");
  EXPECT_EQ(result["questions"][0]["windows"], (std::vector<int>{32}));
  const Outcome other = run_program(folder / "", "infer mlp --weights run");
  EXPECT_NE(other.code, 0);
}

TEST(Answer, SaysWhatIsWrong) {
  const ScratchFolder folder;
  put_model(folder);
  fs::copy(source / "tests/language/models/gpt2", folder / "gpt2");
  write_file_atomically(folder / "bad.txt", std::string_view("ab\xff"));
  write_file_atomically(folder / "empty.txt", std::string_view(" \n"));
  write_file_atomically(folder / "few.txt", std::string_view("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nthe\n"));
  write_file_atomically(folder / "plain.txt", std::string_view("the\nbeam\n"));
  fs::create_directory(folder / "alone");
  fs::copy_file(folder / "bert" / "model.safetensors", folder / "alone" / "model.safetensors");
  const std::string ask = " --context page.txt --question Who?";
  struct Wrong {
    std::string call;
    int code;
    const char* said;
  };
  for (const Wrong& wrong : {
           Wrong{"answer" + ask, 2, "there is no model to ask"},
           Wrong{"answer bert --weights bert" + ask, 2, "there are two models"},
           Wrong{"answer bert --context page.txt", 2, "there is no question"},
           Wrong{"answer bert --question Who?", 2, "there is no text to look in"},
           Wrong{"answer bert --context none.txt --question Who?", 1, "none.txt: there is no such file"},
           Wrong{"answer bert --context empty.txt --question Who?", 2, "empty.txt: there is no word in it"},
           Wrong{"answer bert --context page.txt --question ''", 2, "the question: there is no word in it"},
           Wrong{"answer bert --context bad.txt --question Who?", 2,
                 "bad.txt: the text is no UTF-8: byte 2 is 0xff"},
           Wrong{"answer bert --vocab few.txt" + ask, 2, "the vocabulary has 6 tokens and the model 384"},
           Wrong{"answer bert --vocab plain.txt" + ask, 1, "plain.txt: it has no line [UNK]"},
           Wrong{"answer alone" + ask, 1, "the model's tokens are not known"},
           Wrong{"answer gpt2" + ask, 1, "questions are not answered by models of the kind 'gpt2'"},
           Wrong{"answer none" + ask, 1, "none"},
           Wrong{"answer bert --lengths 64,x" + ask, 2, "'x' is no number of tokens"},
           Wrong{"answer bert --lengths 500" + ask, 2, "500 is longer than the model's sequences of 384"},
           Wrong{"answer bert --length 8 --context page.txt --question \"What is it that turns?\"", 2,
                 "leave no room for a text"},
           Wrong{"answer bert --set heads=3" + ask, 2, "cannot be divided"},
       }) {
    const Outcome outcome = run_program(folder / "", wrong.call);
    EXPECT_EQ(outcome.code, wrong.code) << wrong.call << "\n" << outcome.errors;
    EXPECT_TRUE(contains(outcome.errors, wrong.said)) << wrong.call << "\n" << outcome.errors;
  }
}

}  // namespace
}  // namespace superstep
