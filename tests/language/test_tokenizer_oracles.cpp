// Tokenizers of every kind, with added tokens of every kind, beside Hugging Face's tokenizers and
// sentencepiece, on 400 prompts of odd letters each (make_tokenizers.py). Skipped where tools/setup-oracles
// has not installed them.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "superstep/base/file.h"
#include "superstep/language/tokenizer/tokenizer.h"
#include "tests/language/models.h"
#include "tests/language/written_model.h"
#include "tests/python.h"
#include "tests/scratch.h"

namespace superstep::language {
namespace {

using nlohmann::json;

std::string shown(const std::vector<std::int32_t>& ids) {
  std::string text;
  for (const std::int32_t id : ids) text += std::to_string(id) + " ";
  return text;
}

// How many prompts differ; a few of them are shown.
int differences(const Tokenizer& tokenizer, const json& rows, const std::string& name) {
  int differing = 0;
  for (const json& row : rows) {
    const auto text = row["text"].get<std::string>();
    const auto ids = row["ids"].get<std::vector<std::int32_t>>();
    std::vector<std::int32_t> found;
    std::string why;
    try {
      found = tokenizer.encode(text);
    } catch (const Error& error) {
      why = error.what();
    }
    const bool same = found == ids && (!row.contains("decoded") || tokenizer.decode(ids) == row["decoded"]);
    if (same) continue;
    if (++differing <= 3)
      ADD_FAILURE() << name << ": " << json(text).dump() << "\n  theirs " << shown(ids) << "\n  ours   "
                    << shown(found) << why << "\n  theirs " << row.value("decoded", json()).dump()
                    << "\n  ours   "
                    << json(tokenizer.decode(ids)).dump(-1, ' ', false, json::error_handler_t::replace);
  }
  return differing;
}

TEST(TokenizerOracles, SayTheSameOfOddTexts) {
  const std::string python = python_with("tokenizers, sentencepiece");
  if (python.empty())
    GTEST_SKIP()
        << "no Python with the packages tokenizers, sentencepiece was found: tools/setup-oracles installs "
           "them";
  const ScratchFolder folder;
  const std::string script = SUPERSTEP_SOURCE "/tests/language/make_tokenizers.py";
  ASSERT_TRUE(run_python(
      python, folder / "",
      fmt::format("import runpy, sys\nsys.argv = ['', '.']\nrunpy.run_path('{}', run_name='__main__')",
                  script)));
  int kinds = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder / "")) {
    const std::string name = entry.path().filename().string();
    if (!name.ends_with(".rows.json")) continue;
    const std::string kind = name.substr(0, name.size() - 10);
    const json rows = json::parse(read_text_file(entry.path()));
    ASSERT_EQ(rows.size(), 400u) << kind;
    EXPECT_EQ(differences(Tokenizer::from_file(folder / (kind + ".json")), rows, kind), 0) << kind;
    ++kinds;
  }
  EXPECT_EQ(kinds, 26);
  const json sp = json::parse(read_text_file(folder / "sp.json"));
  GgufWriter file;
  file.note("general.architecture", "llama");
  file.note("tokenizer.ggml.model", "llama");
  file.list("tokenizer.ggml.tokens", sp["tokens"].get<std::vector<std::string>>());
  file.list("tokenizer.ggml.scores", sp["scores"].get<std::vector<float>>());
  file.list("tokenizer.ggml.token_type", sp["kinds"].get<std::vector<std::uint32_t>>());
  file.note("tokenizer.ggml.bos_token_id", 1u);
  file.write(folder / "sp.gguf");
  const Tokenizer tokenizer = Tokenizer::from_notes(data::WeightFile::open(folder / "sp.gguf"));
  EXPECT_GT(sp["rows"].size(), 200u);
  EXPECT_EQ(differences(tokenizer, sp["rows"], "sentencepiece"), 0);
}

TEST(TokenizerFields, WhatIsNotHonoredIsRefusedByName) {
  const auto refused = [](const char* entry, std::initializer_list<std::string> parts) {
    const std::string text =
        fmt::format(R"({{"model":{{"type":"BPE","vocab":{{"a":0,"▁":1}},"merges":[]}},{}}})", entry);
    try {
      Tokenizer::from_json(text, "tokenizer.json");
      ADD_FAILURE() << entry << " was read";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::unsupported) << error.what();
      for (const std::string& part : parts)
        EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
    }
  };
  refused(R"("post_processor":{"type":"RobertaProcessing"})", {"post_processor 'RobertaProcessing'"});
  refused(R"("decoder":{"type":"CTC"})", {"decoder 'CTC'"});
  refused(R"("decoder":{"type":"Strip","content":" ","start":2,"stop":0})", {"strips more"});
  refused(R"("pre_tokenizer":{"type":"Metaspace","replacement":"▁","prepend_scheme":"sometimes"})",
          {"'sometimes'"});
  refused(R"("pre_tokenizer":{"type":"Metaspace","replacement":"▁","mode":3})", {"'mode' of a Metaspace"});
  refused(R"("pre_tokenizer":{"type":"Digits"})", {"'Digits'"});
  refused(R"("normalizer":{"type":"Lowercase"})", {"'Lowercase'"});
  refused(R"("added_tokens":[{"id":0,"content":"a","fuzzy":true}])", {"'fuzzy' of an added token"});
  refused(R"("sampling":1)", {"'sampling' of the file"});
  refused(
      R"("pre_tokenizer":{"type":"Sequence","pretokenizers":[{"type":"Split","pattern":{"Regex":"a"},"behavior":"Isolated"},{"type":"ByteLevel"}]})",
      {"adds spaces"});
}

}  // namespace
}  // namespace superstep::language
