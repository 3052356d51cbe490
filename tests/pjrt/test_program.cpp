// The program on a device behind a plug-in, as a user runs it.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <nlohmann/json.hpp>
#include <thread>

#include "superstep/file/safetensors.h"
#include "superstep/run/ranks/communicator.h"
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
}

TEST(ProgramOnDevice, WritesItsProgram) {
  const ScratchFolder folder;
  const Outcome written = run_program(folder / "", "graph mlp --mode train --format stablehlo");
  EXPECT_EQ(written.code, 0) << written.errors;
  for (const char* part :
       {"func.func public @main(", "tf.aliasing_output", "stablehlo.dot_general", "HIGHEST"})
    EXPECT_TRUE(contains(written.output, part));
}

void expect_refused(const ScratchFolder& folder, const std::string& call, int code,
                    std::initializer_list<const char*> words) {
  const Outcome outcome = run_program(folder / "", call);
  EXPECT_EQ(outcome.code, code) << call << outcome.errors;
  for (const char* word : words) EXPECT_TRUE(contains(outcome.errors, word)) << call << outcome.errors;
}

// What only a cost model knows is refused with the call that asks it, before anything is compiled.
TEST(ProgramOnDevice, CompilesForNoMachineWithoutACompiler) {
  const ScratchFolder folder;
  for (const char* devices : {"mi300x", "tpu-v5e,mi300x"})
    expect_refused(folder, std::string("compile mlp --batch 64 --for ") + devices, 1,
                   {"mi300x: AMD's compiler", "ROCm",
                    "superstep predict mlp --on mi300x --mode train --batch 64 --precision f32"});
  expect_refused(folder, "compile mlp --for gc200", 1, {"gc200", "without the device", "superstep predict"});
  expect_refused(folder, "compile mlp --for h101", 2, {"h101", "did you mean 'h100'"});
}

TEST(ProgramOnDevice, SaysWhereAStepsTimeGoes) {
  NEEDS_CPU_PLUGIN();
  const ScratchFolder folder;
  const Outcome profiled =
      run_program(folder / "", "profile mlp --on pjrt-cpu --runs 5 --out out --json profile.json");
  ASSERT_EQ(profiled.code, 0) << profiled.errors;
  for (const char* part : {"inputs to the device", "compute", "outputs from the device",
                           "with the next inputs sent meanwhile", "no profiler"})
    EXPECT_TRUE(contains(profiled.output, part)) << profiled.output;
  const auto record = nlohmann::json::parse(content_of(folder / "profile.json"));
  for (const char* metric : {"step_time", "time_to_device", "time_to_compute", "step_time_sending_ahead"})
    EXPECT_GT(record["metrics"][metric]["value"].get<double>(), 0) << metric;
  EXPECT_EQ(record["environment"]["device"][0]["name"], "pjrt-cpu:0");
  const auto trace = nlohmann::json::parse(content_of(folder / "out" / "trace.json"));
  EXPECT_EQ(trace["traceEvents"].size(), 5u);
  EXPECT_TRUE(contains(content_of(folder / "out" / "profile.html"), "Parts of a run"));
  EXPECT_FALSE(fs::exists(folder / "out" / "device.xplane.pb"));
}

// ---- several devices

double loss_of(const fs::path& result) {
  return nlohmann::json::parse(content_of(result))["metrics"]["loss"]["value"];
}

constexpr const char* steps = "train mlp --on pjrt-cpu --samples 640 --batch 64 --seed 3 --quiet ";

TEST(ProgramOnDevices, ReplicasTrainWhatOneDeviceTrains) {
  NEEDS_CPU_PLUGIN();
  const ScratchFolder folder;
  ASSERT_EQ(run_program(folder / "", std::string(steps) + "--steps 8 --no-out --json one.json").code, 0);
  const Outcome two =
      run_program(folder / "", std::string(steps) + "--steps 8 --replicas 2 --out two --json two.json");
  ASSERT_EQ(two.code, 0) << two.errors;
  EXPECT_NEAR(loss_of(folder / "two.json"), loss_of(folder / "one.json"),
              1e-5 * loss_of(folder / "one.json"));
  const auto devices = nlohmann::json::parse(content_of(folder / "two.json"))["environment"]["device"];
  ASSERT_EQ(devices.size(), 2u) << "a record names its devices";
  EXPECT_EQ(devices[1]["name"], "pjrt-cpu:1");
  EXPECT_TRUE(contains(devices[0]["interface"].get<std::string>(), "PJRT "));
  // The same steps, the last of them on four devices, parameters in pieces.
  const Outcome begun =
      run_program(folder / "", std::string(steps) + "--steps 5 --replicas 2 --shard parameters --out cut");
  ASSERT_EQ(begun.code, 0) << begun.errors;
  const Outcome resumed =
      run_program(folder / "", "train mlp --resume cut --steps 8 --replicas 4 --json cut.json");
  ASSERT_EQ(resumed.code, 0) << resumed.errors;
  EXPECT_TRUE(contains(resumed.errors, "4 devices, not 2")) << resumed.errors;
  EXPECT_TRUE(contains(resumed.output, "4 devices")) << resumed.output;
  EXPECT_NEAR(loss_of(folder / "cut.json"), loss_of(folder / "one.json"),
              1e-4 * loss_of(folder / "one.json"));
}

TEST(ProgramOnDevices, WhatCannotBeIsRefusedBeforeTheWork) {
  NEEDS_CPU_PLUGIN();
  const ScratchFolder folder;
  const std::string train = "train mlp --on pjrt-cpu --out run ";
  expect_refused(folder, train + "--replicas 4 --batch 66", 2, {"--batch", "66", "4 devices"});
  expect_refused(folder, train + "--replicas 64 --batch 64", 2, {"64 replicas", "list devices"});
  expect_refused(folder, train + "--shard parameters", 2, {"one device", "--replicas"});
  expect_refused(folder, "train mlp --shard parameters --replicas 2", 1, {"--shard", "plug-in"});
  expect_refused(folder, "profile mlp --on pjrt-cpu --simulate 4", 1, {"--simulate", "--on cpu"});
  expect_refused(folder, "profile mlp --on pjrt-cpu --micro-batch 8", 1, {"--micro-batch", "as a whole"});
  expect_refused(folder, "profile mlp --on pjrt-cpu --mode infer --precision int8", 1, {"int8"});
  expect_refused(folder, "profile mlp --on cudda", 2, {"cudda", "did you mean 'cuda'"});
  expect_refused(folder, "profile mlp --on pjrt-cpu --replicas 3", 2, {"--batch", "3 devices"});
  expect_refused(folder, "machine measure --on gc200", 2, {"gc200", "list devices"});
  expect_refused(folder, "machine measure --on pjrt-cpu --probes 3", 2, {"--probes"});
  EXPECT_FALSE(fs::exists(folder / "run" / "checkpoints"));
}

// Two processes, a device each, and the averages through the ranks' exchange.
TEST(ProgramOnDevices, RanksTrainWhatOneProcessTrains) {
  NEEDS_CPU_PLUGIN();
  if (!run::has_ranks() || std::string(MPIRUN).empty()) GTEST_SKIP() << "there is no MPI";
  const ScratchFolder folder;
  const std::string mpirun = "env OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 " MPIRUN
                             " -n 2 --oversubscribe --bind-to none";
  ASSERT_EQ(run_program(folder / "", std::string(steps) + "--steps 8 --no-out --json one.json").code, 0);
  const Outcome two =
      run_program(folder / "", std::string(steps) + "--steps 8 --out two --json two.json", mpirun);
  ASSERT_EQ(two.code, 0) << two.errors;
  EXPECT_NEAR(loss_of(folder / "two.json"), loss_of(folder / "one.json"),
              1e-5 * loss_of(folder / "one.json"));
  const Outcome both =
      run_program(folder / "", std::string(steps) + "--steps 8 --replicas 2 --no-out", mpirun);
  EXPECT_NE(both.code, 0);
  EXPECT_TRUE(contains(both.errors, "a rank trains on one device")) << both.errors;
}

TEST(ProgramOnDevices, ServesThere) {
  NEEDS_CPU_PLUGIN();
  const ScratchFolder folder;
  const Outcome served = run_program(
      folder / "", "serve mlp --on pjrt-cpu --http 127.0.0.1:0 --max-batch 2 --for 0.3 --json served.json");
  EXPECT_EQ(served.code, 0) << served.errors;
  EXPECT_TRUE(contains(served.output, "ready at http")) << served.output;
  const auto result = nlohmann::json::parse(content_of(folder / "served.json"));
  EXPECT_EQ(result["environment"]["device"].size(), 1u);
  expect_refused(folder, "serve mlp --on nowhere", 2, {"nowhere"});
}

}  // namespace
}  // namespace superstep
