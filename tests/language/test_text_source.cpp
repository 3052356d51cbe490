// Texts as blocks of tokens, and SQuAD's questions.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "superstep/base/error.h"
#include "superstep/base/file.h"
#include "superstep/file/source/sample_source.h"
#include "superstep/language/text/text_source.h"
#include "tests/expect_error.h"
#include "tests/language/models.h"
#include "tests/scratch.h"

namespace superstep::language {
namespace {

std::shared_ptr<const Tokenizer> gpt2() {
  return std::make_shared<const Tokenizer>(Tokenizer::from_file(models / "gpt2" / "tokenizer.json"));
}

std::shared_ptr<const Tokenizer> pieces() {
  return std::make_shared<const Tokenizer>(Tokenizer::from_vocabulary(
      "[PAD]\n[UNK]\n[CLS]\n[SEP]\nthe\ncrystal\nturns\nin\nbeam\nwhat\n?\n.\nmu\n##ller\nsees\nit\n", {},
      "words"));
}

std::vector<std::int32_t> row_of(const data::SampleSource& source, std::size_t array, std::int64_t row) {
  const std::int64_t rows[] = {row};
  const Tensor read = data::read_rows(source, array, rows);
  return {read.as<std::int32_t>().begin(), read.as<std::int32_t>().end()};
}

class Texts : public testing::Test {
 protected:
  void write(const std::string& name, const std::string& text) const {
    std::filesystem::create_directories((folder / name).parent_path());
    write_file_atomically(folder / name, std::string_view(text));
  }
  const ScratchFolder folder;
};

// Every token but a document's first is told once, and no block holds two documents.
TEST_F(Texts, AreBlocksOfTokensOfOneDocument) {
  std::string a, b;
  for (int i = 0; i < 90; ++i) a += fmt::format("word {} of it, ", i), b += fmt::format("line {}\n", i * i);
  write("t/a.txt", a);
  write("t/deep/b.txt", b);
  write("t/.hidden", "not read");
  write("t/empty.txt", "");
  const auto tokenizer = gpt2();
  for (const std::int64_t length : {8, 33, 5000}) {
    const auto source = open_text_blocks(folder / "t", {.tokenizer = tokenizer, .length = length});
    ASSERT_EQ(source->arrays().size(), 1u);
    EXPECT_EQ(source->arrays()[0].name, "tokens");
    std::vector<std::int32_t> told;
    for (std::int64_t row = 0; row < source->arrays()[0].rows; ++row) {
      const std::vector<std::int32_t> block = row_of(*source, 0, row);
      const auto end = std::ranges::find(block, -1);
      ASSERT_GE(end - block.begin(), 2);
      EXPECT_TRUE(std::all_of(end, block.end(), [](std::int32_t token) { return token == -1; }));
      told.insert(told.end(), block.begin() + 1, end);
    }
    std::vector<std::int32_t> expected;
    for (const std::string& text : {a, b}) {
      const auto tokens = tokenizer->encode(text);
      expected.insert(expected.end(), tokens.begin() + 1, tokens.end());
    }
    EXPECT_EQ(told, expected) << length;
    // In any order they are the same.
    const std::int64_t last = source->arrays()[0].rows - 1;
    const auto again = open_text_blocks(folder / "t", {.tokenizer = tokenizer, .length = length});
    const auto backwards = row_of(*again, 0, last);
    EXPECT_EQ(row_of(*again, 0, 0), row_of(*source, 0, 0));
    EXPECT_EQ(backwards, row_of(*source, 0, last));
    EXPECT_NE(source->place(0, last).find("b.txt"), std::string::npos) << source->place(0, last);
  }
}

TEST_F(Texts, AFullBlockDoesNotEndWithTheTokenThatPads) {
  const auto tokenizer = gpt2();
  const std::int32_t mark = tokenizer->encode("<|endoftext|>").at(0);
  ASSERT_EQ(mark, 0);
  std::string text = "a";
  for (int i = 0; i < 40; ++i) text += i % 7 < 4 ? "<|endoftext|>" : " b";
  for (int i = 0; i < 20; ++i) text += "<|endoftext|>";
  write("a.txt", text + " end");
  const auto source = open_text_blocks(folder / "a.txt", {.tokenizer = tokenizer, .length = 9});
  for (std::int64_t row = 0; row < source->arrays()[0].rows; ++row)
    EXPECT_NE(row_of(*source, 0, row).back(), 0);
}

TEST_F(Texts, LongOnesAreCutAtTheEndsOfLines) {
  std::string text;
  while (text.size() < (std::size_t{5} << 19))
    text += fmt::format("line {} of a long text with µ\n", text.size());
  write("long.txt", text);
  const auto source = open_text_blocks(folder / "long.txt", {.tokenizer = gpt2(), .length = 64});
  EXPECT_EQ(source->shards().size(), 3u);
  std::string back;
  std::int64_t row = 0;
  for (; row < source->shards()[1]; ++row) {
    std::vector<std::int32_t> block = row_of(*source, 0, row);
    block.erase(std::ranges::find(block, -1), block.end());
    back += gpt2()->decode(row == 0 ? block : std::vector<std::int32_t>(block.begin() + 1, block.end()));
    if (row > 40) break;
  }
  EXPECT_TRUE(text.starts_with(back.substr(0, 1000)));
  // A text without lines is cut between characters.
  std::string words;
  while (words.size() < (std::size_t{5} << 18)) words += "µµµ ";
  write("words.txt", words);
  EXPECT_EQ(open_text_blocks(folder / "words.txt", {.tokenizer = gpt2(), .length = 64})->shards().size(), 2u);
}

TEST_F(Texts, AreRefusedWhereTheyAreNone) {
  write("bad.txt", "a\xff\xfe b");
  write("empty.txt", "");
  std::filesystem::create_directories(folder / "nothing");
  const auto open = [&](const std::string& name) {
    open_text_blocks(folder / name, {.tokenizer = gpt2(), .length = 16});
  };
  expect_error(ErrorCode::bad_file, {"bad.txt"}, [&] { open("bad.txt"); });
  for (const char* name : {"empty.txt", "nothing"})
    expect_error(ErrorCode::bad_file, {name, "no text of two tokens"}, [&] { open(name); });
  expect_error(ErrorCode::not_found, {"none.txt"}, [&] { open("none.txt"); });
}

nlohmann::json squad() {
  const auto answer = [](const char* text, int start) {
    return nlohmann::json{{{"text", text}, {"answer_start", start}}};
  };
  nlohmann::json asked = nlohmann::json::array();
  asked.push_back({{"id", "a"}, {"question", "What turns?"}, {"answers", answer("The crystal", 0)}});
  asked.push_back({{"id", "b"}, {"question", "What sees it?"}, {"answers", answer("Müller", 27)}});
  asked.push_back(
      {{"id", "c"}, {"question", "What?"}, {"is_impossible", true}, {"answers", nlohmann::json::array()}});
  asked.push_back({{"id", "d"}, {"question", "What?"}, {"answers", answer("crystal", 2)}});
  return {{"version", "1.1"},
          {"data",
           {{{"title", "t"},
             {"paragraphs",
              {{{"context", "The crystal turns in it. Ü Müller sees the beam."}, {"qas", asked}}}}}}}};
}

TEST_F(Texts, QuestionsAreWindowsThatHoldTheirAnswers) {
  write("squad.json", squad().dump());
  EXPECT_TRUE(is_squad(folder / "squad.json"));
  const auto source = open_squad(folder / "squad.json", {.tokenizer = pieces(), .length = 24, .stride = 4});
  ASSERT_EQ(source->arrays().size(), 6u);
  ASSERT_EQ(source->arrays()[0].rows, 2);
  // [CLS] what turns ? [SEP] the crystal turns in it . [UNK] mu ##ller sees the beam . [SEP]
  EXPECT_EQ(row_of(*source, 0, 0), (std::vector<std::int32_t>{2,  9,  6,  10, 3, 4,  5, 6, 7, 15, 11, 1,
                                                              12, 13, 14, 4,  8, 11, 3, 0, 0, 0,  0,  0}));
  EXPECT_EQ(row_of(*source, 1, 0)[18], 1);
  EXPECT_EQ(row_of(*source, 1, 0)[19], 0);
  EXPECT_EQ(row_of(*source, 2, 0)[4], 0);
  EXPECT_EQ(row_of(*source, 2, 0)[5], 1);
  EXPECT_EQ(row_of(*source, 3, 0)[0], 5);
  EXPECT_EQ(row_of(*source, 4, 0)[0], 6);
  // Characters before the answer are counted, not bytes: it is two pieces of a word.
  const auto tokens = row_of(*source, 0, 1);
  EXPECT_EQ(tokens[static_cast<std::size_t>(row_of(*source, 3, 1)[0])], 12);
  EXPECT_EQ(tokens[static_cast<std::size_t>(row_of(*source, 4, 1)[0])], 13);
  ASSERT_EQ(source->notes().size(), 2u);
  EXPECT_NE(source->notes()[0].find("1 questions that have no answer"), std::string::npos);
  EXPECT_NE(source->notes()[1].find("1 answers that are not where"), std::string::npos);
}

TEST_F(Texts, AnAnswerOfSeveralWindowsIsInEachThatHoldsIt) {
  write("squad.json", squad().dump());
  const auto source = open_squad(folder / "squad.json", {.tokenizer = pieces(), .length = 14, .stride = 2});
  ASSERT_GT(source->arrays()[0].rows, 3);
  for (std::int64_t row = 0; row < source->arrays()[0].rows; ++row) {
    const auto tokens = row_of(*source, 0, row);
    const bool second = tokens[2] == 14;
    EXPECT_EQ(tokens[static_cast<std::size_t>(row_of(*source, 3, row)[0])], second ? 12 : 4);
    EXPECT_EQ(tokens[static_cast<std::size_t>(row_of(*source, 4, row)[0])], second ? 13 : 5);
  }
}

TEST_F(Texts, DamagedQuestionsAreReadOrRefused) {
  const std::string whole = squad().dump();
  for (std::size_t at = 0; at < whole.size(); at += 3) {
    std::string changed = whole;
    changed[at] = at % 2 == 0 ? '{' : '7';
    for (const std::string& text : {changed, whole.substr(0, at)}) {
      write("damaged.json", text);
      try {
        open_squad(folder / "damaged.json", {.tokenizer = pieces(), .length = 24});
      } catch (const Error& error) {
        EXPECT_NE(std::string(error.what()).find("damaged.json"), std::string::npos) << error.what();
      }
    }
  }
  for (const char* text : {"{\"data\": [{\"paragraphs\": 7}]}", "{\"data\": [[]]}", "[]", "{\"data\": []}"}) {
    write("wrong.json", text);
    expect_error(ErrorCode::bad_file, {"wrong.json"},
                 [&] { open_squad(folder / "wrong.json", {.tokenizer = pieces(), .length = 24}); });
  }
}

}  // namespace
}  // namespace superstep::language
