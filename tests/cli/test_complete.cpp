// superstep complete, --weights and show on the weights of other programs: from the command line, as
// docs/language.md has it, and what is said when something is wrong.
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <regex>

#include "superstep/base/file.h"
#include "tests/cli/page_commands.h"
#include "tests/cli/program.h"
#include "tests/contains.h"
#include "tests/scratch.h"

namespace superstep {
namespace {

namespace fs = std::filesystem;

const fs::path source = SUPERSTEP_SOURCE;
const fs::path models = source / "tests/language/models";

constexpr std::string_view page_text =
    "The beam leaves the ring and meets the crystal. The crystal turns; 12 peaks are seen, then 345 more.\n";

// The models and the text under the names that the page has.
void put_models(const ScratchFolder& folder) {
  for (const char* name : {"llama", "llama3", "gpt2", "distilbert", "bert"})
    fs::copy(models / name, folder / name);
  write_file_atomically(folder / "page.txt", page_text);
  fs::copy_file(models / "gguf/model.gguf", folder / "model.gguf");
}

nlohmann::json result_of(const ScratchFolder& folder, const std::string& call) {
  const Outcome outcome = run_program(folder / "", call + " --json result.json");
  EXPECT_EQ(outcome.code, 0) << call << "\n" << outcome.errors;
  return nlohmann::json::parse(read_text_file(folder / "result.json"));
}

TEST(Complete, TheSameSeedGivesTheSameText) {
  const ScratchFolder folder;
  put_models(folder);
  const std::string call = "complete llama3 --prompt \"The beam\" --most 20 --temperature 1 --seed ";
  const Outcome a = run_program(folder / "", call + "3 --threads 1"),
                b = run_program(folder / "", call + "3 --threads 2"),
                c = run_program(folder / "", call + "4");
  EXPECT_EQ(a.code, 0) << a.errors;
  EXPECT_EQ(a.output, b.output);
  EXPECT_NE(a.output, c.output);
  EXPECT_TRUE(contains(a.errors, "tokens of the prompt"));
}

TEST(Complete, TokensGoInAndComeOut) {
  const ScratchFolder folder;
  put_models(folder);
  const nlohmann::json of_text =
      result_of(folder, "complete llama --prompt \"Once upon a time\" --most 5 --quiet");
  const auto prompt = of_text["prompt_tokens"].get<std::vector<int>>();
  std::string list;
  for (const int token : prompt) list += (list.empty() ? "" : ",") + std::to_string(token);
  fs::remove(folder / "llama" / "tokenizer.json");
  const nlohmann::json of_numbers =
      result_of(folder, "complete llama --tokens " + list + " --most 5 --quiet");
  EXPECT_EQ(of_text["tokens"], of_numbers["tokens"]);
  EXPECT_EQ(of_text["tokens"].size(), 5u);
}

// The context is 64 tokens: 63 more fit behind one, and the scores after the last say one more.
TEST(Complete, EndsWhereTheContextIsFull) {
  const ScratchFolder folder;
  put_models(folder);
  const nlohmann::json result =
      result_of(folder, "complete llama --tokens 5 --most 200 --ignore-end --quiet");
  EXPECT_EQ(result["tokens"].size(), 64u);
  EXPECT_EQ(result["ended"], "the context is full");
}

TEST(Complete, SaysWhatIsWrong) {
  const ScratchFolder folder;
  put_models(folder);
  write_file_atomically(folder / "bad.txt", std::string_view("ab\xff"));
  fs::copy(folder / "llama", folder / "shard");
  fs::remove(folder / "shard" / "model-00002-of-00003.safetensors");
  fs::copy(folder / "gpt2", folder / "bare");
  fs::remove(folder / "bare" / "config.json");
  fs::copy(folder / "gpt2", folder / "mute");
  fs::remove(folder / "mute" / "tokenizer.json");
  fs::copy_file(folder / "model.gguf", folder / "cut.gguf");
  fs::resize_file(folder / "cut.gguf", fs::file_size(folder / "cut.gguf") - 1000);
  struct Wrong {
    const char* call;
    int code;
    const char* said;
  };
  for (const Wrong& wrong : {
           Wrong{"complete llama", 2, "--prompt, --prompt-file and --tokens"},
           Wrong{"complete llama --prompt a --tokens 3", 2, "two beginnings"},
           Wrong{"complete llama --tokens 3,x", 2, "'x' is no number of a token"},
           Wrong{"complete llama --tokens 384", 2, "token 384 is not in the model's vocabulary of 384"},
           Wrong{"complete llama --tokens 1,2,3 --context 2", 2, "3 tokens is longer than the context of 2"},
           Wrong{"complete llama --prompt-file bad.txt", 2, "bad.txt: the text is no UTF-8: byte 2 is 0xff"},
           Wrong{"complete llama --prompt-file none.txt", 1, "none.txt"},
           Wrong{"complete none --prompt a", 1, "none"},
           Wrong{"complete distilbert --prompt a", 1, "models of the kind 'distilbert' are not continued"},
           Wrong{"complete shard --prompt a", 1, "a shard is missing"},
           Wrong{"complete cut.gguf --prompt a", 1, "it is cut short"},
           Wrong{"complete bare --prompt a", 1, "the sizes of the model are not known"},
           Wrong{"complete mute --prompt a", 1, "the model's tokens are not known"},
           Wrong{"complete llama --prompt a --top-p 0", 2, "--top-p"},
           Wrong{"infer llama --weights llama", 1, "arrays differ"},
           Wrong{"infer mlp --weights llama", 1, "no names are known"},
           Wrong{"show cut.gguf --out p.html", 1, "it is cut short"},
       }) {
    const Outcome outcome = run_program(folder / "", wrong.call);
    EXPECT_EQ(outcome.code, wrong.code) << wrong.call << "\n" << outcome.errors;
    EXPECT_TRUE(contains(outcome.errors, wrong.said)) << wrong.call << "\n" << outcome.errors;
  }
}

// Another model's tokenizer has more tokens than the model knows.
TEST(Complete, RefusesTheTokenizerOfALargerVocabulary) {
  const ScratchFolder folder;
  put_models(folder);
  nlohmann::json tokenizer = nlohmann::json::parse(read_text_file(folder / "gpt2" / "tokenizer.json"));
  tokenizer["added_tokens"].push_back({{"id", 400}, {"content", "<more>"}, {"special", true}});
  write_file_atomically(folder / "gpt2" / "tokenizer.json", tokenizer.dump());
  const Outcome outcome = run_program(folder / "", "complete gpt2 --prompt a");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_TRUE(contains(outcome.errors, "the tokenizer has 401 tokens and the model 384")) << outcome.errors;
}

TEST(Complete, CommandsOfThePageRun) {
  const ScratchFolder folder;
  put_models(folder);
  const std::string page = content_of(source / "docs/language.md");
  std::size_t tried = 0;
  for (std::string command : commands_of(page)) {
    command = std::regex_replace(command, std::regex("--steps \\d+"), "--steps 2");
    if (command.starts_with("train")) command += " --samples 40 --batch 4";
    const Outcome outcome = run_program(folder / "", command + " --threads 2");
    EXPECT_EQ(outcome.code, 0) << command << "\n" << outcome.errors;
    ++tried;
  }
  EXPECT_GE(tried, 8U);
}

// What the page shows of calls is what they say; times are left out.
TEST(Complete, ThePageShowsRealOutput) {
  const ScratchFolder folder;
  put_models(folder);
  const std::string page = content_of(source / "docs/language.md");
  const auto expect_shown = [&](const std::string& said, std::initializer_list<const char*> lines) {
    for (const char* line : lines) {
      EXPECT_TRUE(contains(said, line)) << line << "\n" << said;
      EXPECT_TRUE(contains(page, line)) << line;
    }
  };
  expect_shown(run_program(folder / "", "show model.gguf --out model.html").output,
               {"GGUF: 21 arrays, 43,168 numbers, 51.7 kB",
                "blk.0.attn_k.weight       [16,32]   q8_0  -0.719917 to 0.564888",
                "token_embd.weight         [384,32]  f16   -0.913574 to 0.845215"});
  expect_shown(
      run_program(
          folder / "",
          "infer llama --weights llama --set layers=1 --set width=16 --set vocabulary=384 --set inner=28")
          .errors,
      {"superstep: error: llama: the file does not fit the model: 3 of 12 arrays differ",
       "  layer0.gate.weight [16,28] is model.layers.0.mlp.gate_proj.weight [24,16] in the file",
       "  build the model with the --set options of the file's sizes"});
  const Outcome answers =
      run_program(folder / "", "answer bert --context page.txt --question \"What turns?\" --best 3");
  expect_shown(answers.output,
               {"0.0205  29-47  meets the crystal.", "0.0182  29-75  meets the crystal. The"});
  expect_shown(answers.errors, {"23 tokens of text behind 6 of the question in windows: 1 of 64"});
  const Outcome text = run_program(folder / "", "complete llama3 --prompt \"crystal turns\" --most 8");
  expect_shown(text.output, {" turns turns turns turns turns turns turns turns"});
  expect_shown(text.errors,
               {"5 tokens of the prompt in", "8 tokens after it: as many tokens as were asked for"});
}

}  // namespace
}  // namespace superstep
