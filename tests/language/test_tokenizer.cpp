// Tokenizers against those of Hugging Face: the same tokens and the same text back (make_models.py).
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "superstep/base/file.h"
#include "superstep/base/random.h"
#include "superstep/language/decode/decoder.h"
#include "superstep/language/tokenizer/pair_merges.h"
#include "superstep/language/tokenizer/tokenizer.h"
#include "superstep/language/tokenizer/tokenizer_state.h"
#include "tests/damage.h"
#include "tests/expect_error.h"
#include "tests/language/models.h"
#include "tests/scratch.h"

namespace superstep::language {
namespace {

Tokenizer tokenizer_of(const std::string& model) {
  return Tokenizer::beside(data::WeightFile::open(models / model));
}

class Tokenizers : public ::testing::TestWithParam<const char*> {};

TEST_P(Tokenizers, SayWhatThoseOfHuggingFaceSay) {
  const Tokenizer tokenizer = tokenizer_of(GetParam());
  const auto rows = nlohmann::json::parse(read_text_file(models / GetParam() / "expected_tokens.json"));
  ASSERT_GT(rows.size(), 5u);
  for (const auto& row : rows) {
    const auto ids = row["ids"].get<std::vector<std::int32_t>>();
    const auto text = row["text"].get<std::string>();
    // A GGUF file puts no sign of a space before a text that follows an added token; Hugging Face's file
    // does.
    if (std::string(GetParam()) == "gguf" && text.starts_with("</s>")) continue;
    if (std::string(GetParam()) == "gguf" && text.empty()) continue;
    EXPECT_EQ(tokenizer.encode(text), ids) << text;
    EXPECT_EQ(tokenizer.decode(ids), row["decoded"].get<std::string>()) << text;
  }
}

INSTANTIATE_TEST_SUITE_P(Models, Tokenizers, ::testing::Values("llama", "llama3", "gpt2", "gguf", "bert"),
                         [](const auto& test) { return std::string(test.param); });

// A vocab.txt, with letters as they are: the tokenizer_config.json beside it says so.
TEST(Tokenizer, ReadsVocabulariesOfWordPieces) {
  const std::filesystem::path path = models / "bert/cased/vocab.txt";
  const WordForm form = word_form_beside(path);
  EXPECT_FALSE(form.lowercase);
  EXPECT_FALSE(form.strip_accents);
  const Tokenizer tokenizer = Tokenizer::from_vocabulary(read_text_file(path), form, "vocab.txt");
  EXPECT_EQ(tokenizer.size(), 384);
  const auto rows = nlohmann::json::parse(read_text_file(models / "bert/cased/expected_tokens.json"));
  for (const auto& row : rows) {
    const auto ids = row["ids"].get<std::vector<std::int32_t>>();
    const auto text = row["text"].get<std::string>();
    EXPECT_EQ(tokenizer.encode(text), ids) << text;
    EXPECT_EQ(tokenizer.decode(ids), row["decoded"].get<std::string>()) << text;
  }
  // The control: in small letters the tokens are others.
  EXPECT_NE(Tokenizer::from_vocabulary(read_text_file(path), {}, "vocab.txt").encode("The ring"),
            tokenizer.encode("The ring"));
  EXPECT_TRUE(word_form_beside("nowhere/vocab.txt").lowercase);
  expect_error(ErrorCode::bad_file, {"vocab.txt", "no line [UNK]"},
               [] { Tokenizer::from_vocabulary("[CLS]\n[SEP]\n", {}, "vocab.txt"); });
}

TEST(Tokenizer, KnowsWhereItsWordsStand) {
  const Tokenizer tokenizer = tokenizer_of("bert");
  const std::string text = "  The cr\u00ffstal, TURNS\u200b!";
  std::vector<std::string> words;
  for (const Tokenizer::Place& place : tokenizer.places_of(text))
    if (words.empty() || words.back() != text.substr(place.begin, place.end - place.begin))
      words.push_back(text.substr(place.begin, place.end - place.begin));
  EXPECT_EQ(words, (std::vector<std::string>{"The", "cr\u00ffstal", ",", "TURNS", "!"}));
  EXPECT_EQ(tokenizer.first_token(), 2);
  EXPECT_EQ(tokenizer.separator(), 3);
  expect_error(ErrorCode::unsupported, {"no pieces of words"}, [] { tokenizer_of("gpt2").places_of("a"); });
  expect_error(ErrorCode::invalid_argument, {"no UTF-8", "byte 1"}, [&] { tokenizer.places_of("a\xff"); });
}

TEST(WordPieces, FormsOfWords) {
  const auto cut = [](std::string_view text, const WordForm& form) {
    std::vector<std::string> words;
    for (const Word& word : words_of(text, form)) words.push_back(word.text);
    return words;
  };
  using Words = std::vector<std::string>;
  EXPECT_EQ(cut("\u00c9t\u00e9 a\u0301b", {}), (Words{"ete", "ab"}));
  EXPECT_EQ(cut("\u00c9t\u00e9", {.strip_accents = false}), (Words{"\u00e9t\u00e9"}));
  EXPECT_EQ(cut("\u00c9t\u00e9", {.lowercase = false, .strip_accents = false}), (Words{"\u00c9t\u00e9"}));
  EXPECT_EQ(cut("a\u6771b", {}), (Words{"a", "\u6771", "b"}));
  EXPECT_EQ(cut("a\u6771b", {.ideographs = false}), (Words{"a\u6771b"}));
  EXPECT_EQ(cut("don't\u00a0stop\u3000now\x0b", {}), (Words{"don", "'", "t", "stop", "now"}));
  EXPECT_EQ(cut("", {}), Words{});
}

// Whatever a text is, its bytes come back.
TEST(Tokenizer, TextsComeBack) {
  const Tokenizer tokenizer = tokenizer_of("llama3");
  RandomStream random(11);
  constexpr const char* parts[] = {"a", "Z", " ", "\n", "7", "é", "東", "🙂", "'s", "\t", "​", "."};
  for (int round = 0; round < 200; ++round) {
    std::string text;
    for (std::uint64_t i = random.below(40); i > 0; --i) text += parts[random.below(std::size(parts))];
    EXPECT_EQ(tokenizer.decode(tokenizer.encode(text)), text);
  }
}

TEST(Tokenizer, RefusesWhatIsNoText) {
  const Tokenizer tokenizer = tokenizer_of("gpt2");
  for (const char* bad :
       {"ab\xff", "ab\xc0\x80", "ab\xed\xa0\x80", "ab\xe2\x82", "ab\xf5\x80\x80\x80", "ab\x80"})
    expect_error(ErrorCode::invalid_argument, {"no UTF-8", "byte 2"}, [&] { tokenizer.encode(bad); });
}

TEST(Tokenizer, NamesWhatItDoesNotKnow) {
  const auto read = [](const char* text) { return Tokenizer::from_json(text, "tokenizer.json"); };
  expect_error(ErrorCode::bad_file, {"tokenizer.json", "no JSON"}, [&] { read("{"); });
  expect_error(ErrorCode::bad_file, {"tokenizer.json", "no tokenizer"}, [&] { read("{}"); });
  expect_error(ErrorCode::unsupported, {"'Unigram'"},
               [&] { read(R"({"model":{"type":"Unigram","vocab":[]}})"); });
  expect_error(ErrorCode::unsupported, {"WordPiece without"},
               [&] { read(R"({"model":{"type":"WordPiece","vocab":{}}})"); });
  expect_error(ErrorCode::bad_file, {"begins with token 7, of 1"}, [&] {
    read(R"({"post_processor":{"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"s"}}],
      "special_tokens":{"s":{"ids":[7]}}},"model":{"type":"BPE","vocab":{"a":0},"merges":[]}})");
  });
  expect_error(ErrorCode::unsupported, {"'NFC'"}, [&] {
    read(R"({"normalizer":{"type":"NFC"},"model":{"type":"BPE","vocab":{},"merges":[]}})");
  });
  expect_error(ErrorCode::bad_file, {"merge 0", "'a'", "'b'"},
               [&] { read(R"({"model":{"type":"BPE","vocab":{"a":0},"merges":["a b"]}})"); });
  expect_error(ErrorCode::bad_file, {"number -4"},
               [&] { read(R"({"model":{"type":"BPE","vocab":{"a":-4},"merges":[]}})"); });
  const char* pattern = R"({"pre_tokenizer":{"type":"Split","pattern":{"Regex":"(a"},"behavior":"Isolated"},
    "model":{"type":"BPE","vocab":{},"merges":[]}})";
  expect_error(ErrorCode::bad_file, {"pattern", "character 2"}, [&] { read(pattern); });
}

TEST(Tokenizer, DamagedFilesAreReadOrRefused) {
  const std::string whole = read_text_file(models / "gpt2/tokenizer.json");
  RandomStream random(3);
  for (int round = 0; round < 300; ++round) {
    std::string text = whole;
    for (int change = 0; change < 3; ++change)
      text[random.below(text.size())] = static_cast<char>(random.next_u32());
    if (round % 3 == 0) text.resize(random.below(text.size()));
    try {
      Tokenizer::from_json(text, "t").encode("the crystal");
    } catch (const Error&) {
    }
  }
}

// Sizes and tokens of GGUF files with bytes changed in their first part, where these stand.
TEST(Tokenizer, DamagedGgufFilesAreReadOrRefused) {
  const ScratchFolder folder;
  const std::string whole = read_text_file(models / "gguf/model.gguf");
  RandomStream random(4);
  int refused = 0;
  for (int round = 0; round < 300; ++round) {
    std::string bytes = whole;
    for (int change = 0; change < 4; ++change)
      bytes[random.below(12000)] = static_cast<char>(random.next_u32());
    write_file_atomically(folder / "d.gguf", bytes);
    try {
      const data::WeightFile file = data::WeightFile::open(folder / "d.gguf");
      Tokenizer::from_notes(file).encode("the crystal");
      const ModelConfig config = model_config(file);
      // Sizes may have become another model's: then the arrays do not fit.
      const std::vector<std::int32_t> tokens{1, 5, 9};
      Decoder(file, config, {}).feed(tokens);
    } catch (const Error&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, 20);
  EXPECT_LT(refused, 300);
}

// The definition: the best pair of all is joined, again and again.
std::vector<std::int32_t> joined_slowly(std::vector<std::int32_t> pieces, const JoinRule& rule) {
  for (;;) {
    Joined best{1e300, -1};
    std::size_t place = 0;
    for (std::size_t i = 0; i + 1 < pieces.size(); ++i)
      if (Joined found{}; rule(pieces[i], pieces[i + 1], found) && found.rank < best.rank)
        best = found, place = i;
    if (best.token < 0) return pieces;
    pieces[place] = best.token;
    pieces.erase(pieces.begin() + static_cast<std::ptrdiff_t>(place) + 1);
  }
}

TEST(PairMerges, JoinTheBestPairFirst) {
  RandomStream random(8);
  // Of small tokens most pairs have a rule, of a rank that their sum decides.
  const JoinRule rule = [](std::int32_t a, std::int32_t b, Joined& joined) {
    joined = {static_cast<double>((a * 7 + b * 13) % 29), a + b + 3};
    return (a + 2 * b) % 3 != 0 && a + b < 60;
  };
  for (int round = 0; round < 300; ++round) {
    std::vector<std::int32_t> pieces(random.below(30));
    for (std::int32_t& piece : pieces) piece = static_cast<std::int32_t>(random.below(12));
    EXPECT_EQ(join_pairs(pieces, rule), joined_slowly(pieces, rule));
  }
}

}  // namespace
}  // namespace superstep::language
