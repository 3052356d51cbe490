// What goes wrong with plug-ins and devices: each a clear error. By a plug-in of our own that is told to
// fail; every case runs in a process of its own, for a library is opened once a process.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <functional>

#include "superstep/base/file.h"
#include "superstep/op/core/builder.h"
#include "superstep/op/elementwise/arithmetic.h"
#include "superstep/target/pjrt/ahead.h"
#include "superstep/target/pjrt/pjrt.h"
#include "superstep/target/target.h"
#include "tests/expect_error.h"
#include "tests/scratch.h"

namespace superstep {
namespace {

// One output, and a state that a run replaces.
graph::Graph counted(std::int64_t batch) {
  graph::Graph graph("counted");
  op::Builder b(graph);
  const op::Var x = b.input("x", ElementType::f32, {batch, 2});
  const op::Var state = b.state("seen", Tensor::scalar(1.0f));
  b.update(state, state + 1.0);
  b.output("y", x * 2.0);
  return graph;
}

std::unique_ptr<target::Executable> compiled() {
  return target::find_target(std::string("pjrt:") + FAKE_PLUGIN).compile(counted, {.batch = 3});
}

void run_times(target::Executable& executable, int times) {
  const std::vector<Tensor> inputs{Tensor(ElementType::f32, {3, 2})};
  std::vector<Tensor> outputs{Tensor(ElementType::f32, {3, 2})};
  for (int i = 0; i < times; ++i) executable.run(inputs, outputs);
}

// In a child whose exit status says whether expectations failed.
void apart(const char* fault, const std::function<void()>& body) {
  const pid_t child = fork();
  if (child == 0) {
    setenv("FAKE_PJRT", fault, 1);
    body();
    std::_Exit(testing::Test::HasFailure() ? 1 : 0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << fault;
}

void refused(const char* fault, ErrorCode code, std::initializer_list<std::string> words) {
  apart(fault, [&] { expect_error(code, words, [] { run_times(*compiled(), 1); }); });
}

TEST(PluginFaults, AnInterfaceThatIsNotUnderstoodIsNamed) {
  refused("old", ErrorCode::unsupported, {"fake_pjrt_plugin", "PJRT 0.12", "0.54"});
  refused("other_major", ErrorCode::unsupported, {"PJRT 1.81"});
  refused("empty", ErrorCode::unsupported, {"no table of functions"});
}

TEST(PluginFaults, AMissingFunctionIsRefusedWhereItIsWanted) {
  refused("short", ErrorCode::unsupported, {"running the program: it has no such function", "newer release"});
}

TEST(PluginFaults, ThePluginsOwnWordsComeThrough) {
  refused("no_client", ErrorCode::unsupported, {"plug-in ", "No visible GPU devices."});
  refused("throws", ErrorCode::io, {"looking for its devices: the card is not there"});
  refused("nothing", ErrorCode::unsupported, {"it finds no device"});
  refused("bad_program", ErrorCode::internal, {"compiling the program: error: expected ':'", "report it"});
  refused("no_memory", ErrorCode::out_of_memory, {"Out of memory", "smaller --batch"});
}

// What was there when the device was lost cannot be trusted: nobody may read it as a state.
TEST(PluginFaults, ADeviceLostInMidRunIsAnErrorThenAndLater) {
  apart("dies:7", [] {
    const auto executable = compiled();
    run_times(*executable, 6);
    EXPECT_EQ(executable->state("seen").shape(), Shape{});
    expect_error(ErrorCode::io, {"running the program: the device fell off the bus"},
                 [&] { run_times(*executable, 1); });
    expect_error(ErrorCode::io, {"an earlier run failed", "--resume"}, [&] { executable->state("seen"); });
    expect_error(ErrorCode::io, {"an earlier run failed"}, [&] { run_times(*executable, 1); });
  });
}

// What it records goes through as it is; what it says of costs, too.
TEST(PluginProfilers, RecordWhileProgramsRun) {
  apart("profiler", [] {
    const auto executable = compiled();
    const target::pjrt::ProgramFacts facts = target::pjrt::program_facts(*executable);
    ASSERT_TRUE(facts.has_profiler);
    ASSERT_EQ(facts.costs.size(), 2u);
    EXPECT_EQ(facts.costs[0].name, "flops");
    EXPECT_EQ(facts.costs[0].value, 12);
    EXPECT_EQ(facts.costs[1].value, 3);
    int runs = 0;
    EXPECT_EQ(target::pjrt::device_trace(*executable, [&] { run_times(*executable, ++runs); }), "cse");
    EXPECT_EQ(runs, 1);
  });
  apart("profiler_fails", [] {
    const auto executable = compiled();
    expect_error(ErrorCode::io, {"stopping its profiler: the recorder is out of tape"},
                 [&] { target::pjrt::device_trace(*executable, [] {}); });
  });
  apart("", [] {
    const auto executable = compiled();
    EXPECT_FALSE(target::pjrt::program_facts(*executable).has_profiler);
    expect_error(ErrorCode::unsupported, {"has no profiler"},
                 [&] { target::pjrt::device_trace(*executable, [] {}); });
  });
}

// It says nothing of its platform: a record has what it says, and the run goes on.
TEST(PluginFaults, WhatAPluginDoesNotSayIsLeftOutOfRecords) {
  apart("", [] {
    const auto executable = compiled();
    const auto devices = target::pjrt::devices_in_use(std::string("pjrt:") + FAKE_PLUGIN);
    ASSERT_EQ(devices.size(), 1u);
    EXPECT_EQ(devices[0].name, "pjrt:0");
    EXPECT_EQ(devices[0].kind, "a fake");
    EXPECT_EQ(devices[0].platform, "");
    EXPECT_TRUE(target::pjrt::devices_in_use("pjrt:/nowhere/else.so").empty());
  });
}

TEST(PluginFaults, AFileThatIsNoPluginIsNamed) {
  const ScratchFolder scratch;
  const std::filesystem::path text = scratch / "plugin.so";
  write_file_atomically(text, "not a library");
  expect_error(ErrorCode::io, {text.string(), "cannot be loaded"},
               [&] { target::find_target("pjrt:" + text.string()).compile(counted, {.batch = 3}); });
  expect_error(ErrorCode::not_found, {"/nowhere/plugin.so"},
               [&] { target::find_target("pjrt:/nowhere/plugin.so").compile(counted, {.batch = 3}); });
}

TEST(PluginFaults, ADeviceThatIsNotThereIsNamed) {
  apart("", [] {
    setenv("SUPERSTEP_PJRT_PLUGIN", FAKE_PLUGIN, 1);
    expect_error(ErrorCode::invalid_argument, {"pjrt:4", "there is no device 4; it has 1"},
                 [] { target::find_target("pjrt:4").compile(counted, {.batch = 3}); });
  });
}

// ---- compiling for a device that is not there

// A folder in which the fake is the plug-in for TPUs.
void as_tpu_plugin(const ScratchFolder& scratch) {
  std::filesystem::create_directories(scratch / "libtpu");
  std::filesystem::create_symlink(FAKE_PLUGIN, scratch / "libtpu/libtpu.so");
  setenv("SUPERSTEP_PJRT_PLUGINS", (scratch / "").c_str(), 1);
}

TEST(AbsentDevices, SayWhatTheCompilerSays) {
  const ScratchFolder scratch;
  apart("ahead", [&] {
    as_tpu_plugin(scratch);
    const auto report = target::pjrt::compile_ahead(target::pjrt::find_absent_device("tpu-v5e"), counted(2));
    EXPECT_EQ(report.memory.arguments, 1000);
    EXPECT_EQ(report.memory.bytes(), 1000 + 400 - 300 + 20 + 7);
    EXPECT_EQ(report.cycles, 1234);
    EXPECT_EQ(report.kernels, 2);
    expect_error(ErrorCode::internal, {"describing the device tpu-v6e: no such topology: v6e:2x2"}, [] {
      target::pjrt::compile_ahead(target::pjrt::find_absent_device("tpu-v6e"), counted(2));
    });
  });
}

TEST(AbsentDevices, AProgramThatFindsNoRoomIsAnErrorOfItsOwn) {
  const ScratchFolder scratch;
  apart("too_large", [&] {
    as_tpu_plugin(scratch);
    expect_error(ErrorCode::out_of_memory, {"compiling the program: Ran out of memory"}, [] {
      target::pjrt::compile_ahead(target::pjrt::find_absent_device("tpu-v5e"), counted(2));
    });
  });
}

TEST(AbsentDevices, AreKnownByName) {
  expect_error(ErrorCode::invalid_argument, {"tpu-v5", "did you mean 'tpu-v5e'"},
               [] { target::pjrt::find_absent_device("tpu-v5"); });
}

// The control: without a fault it runs.
TEST(PluginFaults, WithoutAFaultItRuns) {
  apart("", [] { run_times(*compiled(), 3); });
}

}  // namespace
}  // namespace superstep
