// Completion for shells, asked as the shells ask it.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "tests/cli/program.h"
#include "tests/contains.h"
#include "tests/scratch.h"

namespace superstep {
namespace {

bool has_shell(const std::string& name) {
  return std::system(("command -v " + name + " > /dev/null 2>&1").c_str()) == 0;
}

// The script of `shell` in a file of the folder.
std::string script_of(const ScratchFolder& folder, const std::string& shell) {
  const Outcome outcome = run_program(folder / "", "completion " + shell);
  EXPECT_EQ(outcome.code, 0) << outcome.errors;
  std::ofstream(folder / "script") << outcome.output;
  return (folder / "script").string();
}

// What fish offers behind a line that has been typed so far.
std::string offered(const ScratchFolder& folder, const std::string& script, const std::string& line) {
  std::ofstream(folder / "ask.fish") << "source " << script << "\ncomplete -C '" << line << "'\n";
  const Outcome outcome = run_program(folder / "", "&& fish --no-config ask.fish", "true");
  EXPECT_EQ(outcome.code, 0) << outcome.errors;
  EXPECT_EQ(outcome.errors, "");
  return outcome.output;
}

TEST(Completion, OfFishOffersCommandsOptionsAndTheirWords) {
  if (!has_shell("fish")) GTEST_SKIP() << "there is no fish here";
  const ScratchFolder folder;
  const std::string script = script_of(folder, "fish");
  EXPECT_TRUE(contains(offered(folder, script, "superstep trai"), "train"));
  EXPECT_TRUE(contains(offered(folder, script, "superstep serv"), "serve"));
  const std::string options = offered(folder, script, "superstep train --");
  EXPECT_TRUE(contains(options, "--until")) << options;
  EXPECT_FALSE(contains(options, "--peer-memory")) << "an option of another command";
  EXPECT_TRUE(contains(offered(folder, script, "superstep predict --mode "), "infer"));
}

// Text of an option may hold any character: a quotation mark of a script ends nothing.
TEST(Completion, IsAScriptThatItsShellReads) {
  const ScratchFolder folder;
  const std::pair<const char*, const char*> shells[] = {
      {"bash", "-n"}, {"zsh", "-n"}, {"fish", "--no-execute"}};
  for (const auto& [shell, option] : shells) {
    const std::string script = script_of(folder, shell);
    if (!has_shell(shell)) continue;
    const Outcome outcome =
        run_program(folder / "", std::string("&& ") + shell + " " + option + " " + script, "true");
    EXPECT_EQ(outcome.code, 0) << shell << outcome.errors;
    EXPECT_EQ(outcome.errors, "") << shell;
  }
}

}  // namespace
}  // namespace superstep
