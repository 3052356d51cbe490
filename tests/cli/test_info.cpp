// superstep info: what the program says of itself, to people and to programs.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/cli/program.h"
#include "tests/contains.h"
#include "tests/scratch.h"

namespace superstep {
namespace {

TEST(InfoCommand, SaysWhatItWasBuiltOfAndFinds) {
  const ScratchFolder folder;
  const Outcome said = run_program(folder / "", "info --json info.json");
  ASSERT_EQ(said.code, 0) << said.errors;
  for (const char* subject :
       {"compiler", "libraries", "instruction sets", "MPI", "forms of files", "processors"})
    EXPECT_TRUE(contains(said.output, subject));
  const auto info = nlohmann::json::parse(content_of(folder / "info.json"));
  EXPECT_EQ(info["command"], "info");
  for (const char* member : {"program", "compiler", "libraries", "instruction_sets", "mpi", "optional_forms",
                             "plug_ins", "limits", "folders"})
    EXPECT_TRUE(info.contains(member)) << member << '\n' << info.dump(1);
  EXPECT_FALSE(info["instruction_sets"]["available"].empty());
  EXPECT_GE(info["limits"]["processors"], 1);
}

TEST(InfoCommand, HeedsWhatAJobMayUse) {
  const ScratchFolder folder;
  ASSERT_EQ(run_program(folder / "", "info --quiet --json info.json", "env SLURM_CPUS_PER_TASK=1").code, 0);
  EXPECT_EQ(nlohmann::json::parse(content_of(folder / "info.json"))["limits"]["threads"], 1);
  ASSERT_EQ(run_program(folder / "", "info --quiet --private --json private.json").code, 0);
  EXPECT_FALSE(content_of(folder / "private.json").find((folder / "home").string()) != std::string::npos)
      << "paths are of people";
}

}  // namespace
}  // namespace superstep
