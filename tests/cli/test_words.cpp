// Help however it is asked for, and what is said to what nobody understands.
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "tests/cli/program.h"
#include "tests/contains.h"
#include "tests/scratch.h"

namespace superstep {
namespace {

class Words : public ::testing::Test {
 protected:
  Outcome run(const std::string& arguments, const std::string& before = "") {
    return run_program(folder_ / "", arguments, before);
  }
  // With streams of its own: "list >/dev/full".
  Outcome run_redirected(const std::string& call) { return run(call + " )", "("); }
  // Refused as a wrong call, with these words.
  void refuses(const std::string& arguments, std::initializer_list<const char*> words) {
    const Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.code, 2) << arguments << "\n" << outcome.errors;
    for (const char* word : words)
      EXPECT_TRUE(contains(outcome.errors, word)) << arguments << "\n" << outcome.errors;
  }
  void prints(const std::string& arguments, std::initializer_list<const char*> words) {
    const Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.code, 0) << arguments << "\n" << outcome.errors;
    for (const char* word : words)
      EXPECT_TRUE(contains(outcome.output, word)) << arguments << "\n" << outcome.output;
  }
  ScratchFolder folder_;
};

// The page of the zoo shows the table as the program prints it, whole.
TEST_F(Words, ThePageHasTheZooAsItIsListed) {
  std::istringstream lines(run("list workloads").output);
  std::string shown = "    $ superstep list workloads\n";
  for (std::string line; std::getline(lines, line);) shown += "    " + line + "\n";
  EXPECT_TRUE(contains(content_of(SUPERSTEP_SOURCE "/docs/workloads.md"), shown)) << shown;
}

// The options of a command as its help prints them: names, and what stands behind them from column 30 on.
std::vector<std::pair<std::string, std::string>> options_in(const std::string& help) {
  constexpr std::size_t column = 30;
  std::vector<std::pair<std::string, std::string>> options;
  std::istringstream lines(help);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t name = line.find("--");
    const bool begins = name != std::string::npos && name < 8 && line.starts_with("  ");
    if (begins) options.emplace_back(line.substr(name, line.find_first_of(" ,", name) - name), "");
    const bool goes_on = !begins && !options.empty() && line.starts_with(std::string(column, ' '));
    const bool text_here = begins && line.size() > column && line[column - 1] == ' ' && line[column] != ' ';
    if (goes_on || text_here) options.back().second += line.substr(column);
  }
  return options;
}

// What it is stands first, in one line that a terminal holds.
TEST_F(Words, TextsOfOptionsAreOneLineThatBeginsWithWhatItIs) {
  std::size_t seen = 0;
  std::istringstream lines(run("--help").output);
  std::vector<std::string> commands;
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with("  ") && line.size() > 30 && line[2] >= 'a' && line[2] <= 'z' && line[29] == ' ')
      commands.push_back(line.substr(2, line.find(' ', 2) - 2));
  EXPECT_GT(commands.size(), 30U);
  for (const std::string name :
       {"machine measure", "records show", "records export", "onnx check", "onnx export"})
    commands.push_back(name);
  for (const std::string& command : commands)
    for (const auto& [option, text] : options_in(run("help " + command).output)) {
      EXPECT_FALSE(text.starts_with("of ")) << command << " " << option << ": " << text;
      EXPECT_LE(text.size(), 100U) << command << " " << option << ": " << text;
      seen += !text.empty();
    }
  EXPECT_GT(seen, 500U);
}

TEST_F(Words, HelpIsGivenHoweverItIsAskedFor) {
  const std::string all = run("--help").output, train = run("train --help").output;
  EXPECT_FALSE(contains(all, "Subcommands:")) << "a command without a group";
  for (const char* group : {"Train and use models:", "Serve them:", "Study a problem:",
                            "Predict accelerators:", "Measure and look inside:", "About the program:"})
    EXPECT_TRUE(contains(all, group)) << group;
  EXPECT_TRUE(contains(train, "--epochs"));
  for (const char* call : {"", "help", "-h", "help --help"}) {
    const Outcome outcome = run(call);
    EXPECT_EQ(outcome.code, 0) << call;
    EXPECT_EQ(outcome.output, all) << call;
  }
  for (const char* call : {"help train", "-h train", "--help train", "train -h"})
    EXPECT_EQ(run(call).output, train) << call;
  prints("records", {"export", "import"});
  prints("help records export", {"--format"});
}

TEST_F(Words, MisspeltCommandsAreGuessed) {
  refuses("trian", {"there is no such command", "did you mean 'train'?"});
  refuses("Train mlp", {"did you mean 'train'?"});
  refuses("help trian", {"did you mean 'train'?"});
  refuses("onnx chekc model.onnx", {"did you mean 'check'?"});
  refuses("braggnn", {"this is a workload", "superstep train braggnn"});
  refuses("mine.onnx", {"superstep show mine.onnx"});
}

TEST_F(Words, MisspeltNamesAreGuessed) {
  refuses("train BraggNN", {"did you mean 'braggnn'?"});
  refuses("infer unet", {"did you mean 'unet-256' or 'unet-64'?"});
  refuses("predict mlp --on GC200", {"did you mean 'gc200'?"});
  refuses("predict mlp --on a100-40gb --stack poplar",
          {"has no numbers of a stack 'poplar'", "pytorch-eager, pytorch-amp"});
  refuses("predict mlp --on gaudi1 --stack poplar", {"its file has none"});
  refuses("generate bragnn --samples 3 --out x.h5", {"did you mean 'braggnn'?"});
  refuses("baseline Braggnn --input x.h5", {"did you mean 'braggnn'?"});
  refuses("train mlp --on CPU", {"did you mean 'cpu'?"});
  refuses("list operater", {"did you mean 'operators'?"});
}

TEST_F(Words, MisspeltOptionsAreGuessed) {
  refuses("train mlp --smaples 600", {"there is no option '--smaples'", "did you mean '--samples'?"});
  refuses("train mlp --learning_rate=0.1", {"did you mean '--learning-rate'?"});
  refuses("--threads 2 train mlp", {"options follow the command"});
  refuses("train mlp --qqqqqqqqqqqq", {"'superstep train --help' explains it"});
}

TEST_F(Words, UnexpectedArgumentsAreNamedInTheirOrder) {
  refuses("train mlp first second third", {"'first' 'second' 'third'"});
  refuses("list workloads more", {"'more'"});
}

TEST_F(Words, DataWhereAModelIsAskedForIsToldApart) {
  for (const char* name : {"photo.h5", "photo.npz", "weights.safetensors"})
    std::ofstream(folder_ / name) << "anything";
  refuses("infer photo.h5",
          {"this is a file of data, not a model", "--input photo.h5", "superstep show photo.h5"});
  refuses("train photo.npz", {"this is a file of data", "--data photo.npz"});
  refuses("predict weights.safetensors", {"weights without a model"});
  EXPECT_TRUE(contains(run("train absent.npz").errors, "there is no such file"));
}

// What a method finds wrong in its data is said of the file.
TEST_F(Words, ABaselineNamesTheFileItCannotUse) {
  ASSERT_EQ(run("generate image-autoencoder --samples 4 --out few.data").code, 0);
  const Outcome few =
      run("baseline image-autoencoder --input few.data");  // a right call, with too little in it
  EXPECT_EQ(few.code, 1);
  EXPECT_TRUE(contains(few.errors, "few.data: principal components")) << few.errors;
  const Outcome outcome = run("baseline image-autoencoder --input few.data --set nothing=1");
  EXPECT_FALSE(contains(outcome.errors, "few.data")) << outcome.errors;
}

TEST_F(Words, EverythingIsListed) {
  prints("list operators", {"Conv"});
  EXPECT_EQ(run("list operators").output, run("list ops").output);
  prints("list targets", {"target", "reference", "gc200", "pjrt"});
  prints("list devices", {"cuda", "NVIDIA GPUs", "pjrt-cpu"});
  EXPECT_EQ(run("list backends").output, run("list targets").output);  // what they were called
  prints("list generators", {"braggnn"});
  EXPECT_EQ(run("list baselines").output, run("baseline").output);
  refuses("list --constants", {"superstep list machines --constants"});
}

TEST_F(Words, AModelFileIsShown) {
  ASSERT_EQ(run("onnx export mlp --out mlp.onnx").code, 0);
  prints("show mlp.onnx", {"graph '", "operators: ", "can be imported", "written: mlp.html"});
  const std::string page = content_of(folder_ / "mlp.html");
  for (const char* part : {"Inputs and outputs", "Operators", "Nodes, in the order", "Data sets", "Gemm"})
    EXPECT_TRUE(contains(page, part)) << part;
}

TEST_F(Words, AnOutputThatCannotBeWrittenFails) {
  for (const char* call : {"list", "list machines", "--help", "help train", "--version", "graph mlp"}) {
    const Outcome outcome = run_redirected(std::string(call) + " >/dev/full");
    EXPECT_EQ(outcome.code, 1) << call;
    EXPECT_TRUE(contains(outcome.errors, "standard output")) << call << "\n" << outcome.errors;
  }
  EXPECT_EQ(run_redirected("list >&-").code, 1);
}

TEST_F(Words, NobodyNeedsToHearNotes) {
  EXPECT_EQ(
      run_redirected("bench mlp --mode infer --batch 1 --seconds 0.01 --threads 1 --no-peak 2>/dev/full")
          .code,
      0);
  EXPECT_EQ(run_redirected("train mlp --samples 600 --steps 2 --batch 64 --out run 2>&- <&-").code, 0);
  EXPECT_EQ(run_redirected("train nothing 2>/dev/full").code, 2);
}

}  // namespace
}  // namespace superstep
