// The program on a device behind a plug-in, as a user runs it.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <thread>

#include "superstep/file/safetensors.h"
#include "tests/cli/program.h"
#include "tests/contains.h"
#include "tests/pjrt/plugins.h"
#include "tests/scratch.h"

namespace superstep {
namespace {

namespace fs = std::filesystem;

// The newest checkpoint of a run's folder.
fs::path last_checkpoint(const fs::path& run) {
  fs::path newest;
  std::error_code absent;
  for (const auto& entry : fs::directory_iterator(run / "checkpoints", absent))
    if (entry.path().extension() == ".safetensors" && (newest.empty() || entry.path() > newest))
      newest = entry.path();
  return newest;
}

constexpr const char* training =
    "train mlp --on pjrt-cpu --samples 2000 --epochs 6 --seed 3 --checkpoint-seconds 0 --quiet --out ";

// Kills the run when it has written a checkpoint; one that ends first is as well.
void run_until_killed(const ScratchFolder& folder, const std::string& name) {
  const pid_t child = fork();
  if (child == 0) {
    const std::string command = "cd '" + (folder / "").string() +
                                "' && SUPERSTEP_HOME=home exec " SUPERSTEP_PROGRAM " " + training + name +
                                " 2>killed.txt";
    execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
    std::_Exit(127);
  }
  int status = 0;
  while (last_checkpoint(folder / name).empty() && waitpid(child, &status, WNOHANG) == 0)
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  kill(child, SIGKILL);
  waitpid(child, &status, 0);
}

TEST(ProgramOnDevice, ARunThatWasKilledGoesOnWithTheSameBits) {
  NEEDS_CPU_PLUGIN();
  const ScratchFolder folder;
  const Outcome whole = run_program(folder / "", std::string(training) + "whole");
  ASSERT_EQ(whole.code, 0) << whole.errors;
  run_until_killed(folder, "cut");
  const Outcome resumed = run_program(folder / "", "train mlp --resume cut --quiet");
  ASSERT_EQ(resumed.code, 0) << resumed.errors << content_of(folder / "killed.txt");
  const auto first = data::read_safetensors(last_checkpoint(folder / "whole")),
             second = data::read_safetensors(last_checkpoint(folder / "cut"));
  ASSERT_EQ(first.metadata.at("step"), second.metadata.at("step"));
  ASSERT_EQ(first.tensors.size(), second.tensors.size());
  for (const auto& [name, tensor] : first.tensors)
    EXPECT_EQ(std::memcmp(tensor.bytes(), second.tensors.at(name).bytes(), tensor.byte_count()), 0) << name;
}

TEST(ProgramOnDevice, SaysWhatIsThereAndWhatToInstall) {
  const ScratchFolder folder;
  const Outcome listed = run_program(folder / "", "list devices", "SUPERSTEP_PJRT_PLUGINS=/nowhere");
  EXPECT_EQ(listed.code, 0) << listed.errors;
  EXPECT_TRUE(contains(listed.output, "NVIDIA GPUs"));
  const Outcome refused =
      run_program(folder / "", "train mlp --on tt --out run", "PATH=/nowhere HOME=/nowhere");
  EXPECT_EQ(refused.code, 1);
  EXPECT_TRUE(contains(refused.errors, "there is no PJRT plug-in for Tenstorrent's cards"));
  EXPECT_TRUE(contains(refused.errors, "pip install jax-tt-plugin"));
  const Outcome divided = run_program(folder / "", "train mlp --on cuda --replicas 2 --out run");
  EXPECT_EQ(divided.code, 1);
  EXPECT_TRUE(contains(divided.errors, "--replicas"));
}

TEST(ProgramOnDevice, WritesItsProgram) {
  const ScratchFolder folder;
  const Outcome written = run_program(folder / "", "graph mlp --mode train --format stablehlo");
  EXPECT_EQ(written.code, 0) << written.errors;
  for (const char* part :
       {"func.func public @main(", "tf.aliasing_output", "stablehlo.dot_general", "HIGHEST"})
    EXPECT_TRUE(contains(written.output, part));
}

}  // namespace
}  // namespace superstep
