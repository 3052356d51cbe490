// Loading, running, what the host connects, options, reports.
#include <memory>

#include "tests/poplar/machine.h"

using namespace poplar;
using namespace poplar::program;
using Values = std::vector<int>;

namespace {

struct Stream : Machine {
  Stream() {
    t = variable(INT, {2}, "t");
    graph.createHostRead("t", t);
    const DataStream in = graph.addHostToDeviceFIFO("in", INT, 2),
                     out = graph.addDeviceToHostFIFO("out", INT, 2);
    programs = {Copy(in, t), Copy(t, out)};
  }
  Tensor t;
  std::vector<Program> programs;
};

}  // namespace

TEST(PoplarEngine, LoadPutsInitialValuesBack) {
  Machine machine;
  Tensor t = machine.counting({3}, "t");
  machine.graph.createHostRead("t", t);
  Engine engine(machine.graph, Copy(t.slice(0, 2), t.slice(1, 3)));
  Values values(3);
  for (int turn = 0; turn < 2; ++turn) {
    engine.load(machine.device);
    engine.run();
    engine.run();
    engine.readTensor("t", values.data(), values.data() + 3);
    EXPECT_EQ(values, (Values{0, 0, 0}));
    engine.load(machine.device);
    engine.readTensor("t", values.data(), values.data() + 3);
    EXPECT_EQ(values, (Values{0, 1, 2}));
  }
}

TEST(PoplarEngine, NothingRunsBeforeLoad) {
  Stream s;
  Engine engine(s.graph, s.programs);
  Values values(2);
  expect_throw<application_runtime_error>([&] { engine.run(); }, "before load");
  expect_throw<application_runtime_error>([&] { engine.readTensor("t", &values[0], &values[0] + 2); },
                                          "'t' before load");
  expect_throw<application_runtime_error>([&] { engine.deploy(); }, "before prepare");
  engine.connectStream("in", values.data());  // may come earlier
  engine.prepare(s.device);
  engine.deploy();
  EXPECT_NO_THROW(engine.run());
  expect_throw<application_runtime_error>([&] { engine.run(2); }, "no program 2");
}

TEST(PoplarEngine, AStreamIsConnectedBeforeItIsUsed) {
  Stream s;
  Engine engine(s.graph, s.programs);
  engine.load(s.device);
  expect_throw<stream_connection_error>([&] { engine.run(0); }, "stream in");
  Values values = {5, 6, 7, 8}, results(2);
  engine.connectStream("in", values.data(), values.data() + 4);
  engine.connectStream("out", results.data());
  for (const Values& expected : {Values{5, 6}, Values{7, 8}, Values{5, 6}}) {
    engine.run(0);
    engine.run(1);
    EXPECT_EQ(results, expected);
  }
  engine.connectStream("in", &values[2]);
  engine.run(0);
  engine.run(0);
  engine.run(1);
  EXPECT_EQ(results, (Values{7, 8}));
}

TEST(PoplarEngine, ConnectionsThatDoNotFitAreRefused) {
  Stream s;
  Engine engine(s.graph, s.programs);
  Values values(3);
  expect_throw<stream_connection_error>([&] { engine.connectStream("ni", values.data()); }, "'ni'");
  expect_throw<stream_connection_error>([&] { engine.connectStream("in", &values[0], &values[0] + 3); },
                                        "12 B");
  expect_throw<stream_connection_error>([&] { engine.connectStream("in", 1, &values[0], &values[0] + 2); },
                                        "replica 1");
  EXPECT_EQ(engine.listStreams(), (std::vector<std::string>{"in", "out"}));
}

TEST(PoplarEngine, HandlesHaveTheirTensorsSize) {
  Stream s;
  Engine engine(s.graph, s.programs);
  engine.load(s.device);
  Values values(3);
  expect_throw<application_runtime_error>([&] { engine.readTensor("t", &values[0], &values[0] + 1); }, "8 B");
  expect_throw<application_runtime_error>([&] { engine.writeTensor("t", &values[0], &values[0] + 2); },
                                          "no such handle");
  values = {-1, -1, -1};
  EXPECT_NO_THROW(engine.readTensor("t", &values[0], &values[0] + 3));  // there is more room than it takes
  EXPECT_EQ(values[2], -1);
  EXPECT_NO_THROW(engine.readTensor("t", &values[0], &values[0] + 2));
}

TEST(PoplarEngine, CallbacksFeedAndTake) {
  Stream s;
  Engine engine(s.graph, s.programs);
  engine.load(s.device);
  int next = 1, seen = 0;
  engine.connectStreamToCallback("in", [&](void* buffer) {
    static_cast<int*>(buffer)[0] = next;
    static_cast<int*>(buffer)[1] = 10 * next++;
  });
  engine.connectStreamToCallback("out", [&](void* buffer) { seen = static_cast<int*>(buffer)[1]; });
  engine.run(0);
  engine.run(0);
  engine.run(1);
  EXPECT_EQ(seen, 20);
}

TEST(PoplarEngine, WhatACallbackThrowsArrives) {
  Stream s;
  Engine engine(s.graph, s.programs);
  engine.load(s.device);
  engine.connectStreamToCallback("in", [](void*) { throw std::logic_error("no data"); });
  EXPECT_THROW(engine.run(0), std::logic_error);
}

TEST(PoplarEngine, OptionsHaveNamesAndValues) {
  Stream s;
  const auto with = [&](const OptionFlags& options) { Engine engine(s.graph, s.programs, options); };
  EXPECT_NO_THROW(with({{"debug.instrument", "true"}, {"streamCallbacks.numWorkerThreads", "2"}}));
  expect_throw<invalid_option>([&] { with({{"debg.instrument", "true"}}); }, "debug.instrument");
  expect_throw<invalid_option>([&] { with({{"debug.instrment", "true"}}); }, "debug.instrument");
  expect_throw<invalid_option>([&] { with({{"opt.neverHeardOf", "1"}}); }, "opt.neverHeardOf");
  expect_throw<invalid_option>([&] { with({{"debug.allowOutOfMemory", "maybe"}}); }, "take true or false");
  expect_throw<invalid_option>([&] { OptionFlags().at("x"); }, "'x' is not set");
}

// An option that would change results is not ignored without a word.
TEST(PoplarEngine, SaysWhichOptionsAreNotComputed) {
  Stream s;
  testing::internal::CaptureStderr();
  for (int i = 0; i < 2; ++i) Engine engine(s.graph, s.programs, {{"prng.enableStochasticRounding", "true"}});
  Engine quiet(s.graph, s.programs, {{"debug.nanOverflowException", "false"}});
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "poplar: the engine option prng.enableStochasticRounding has no effect: results are rounded to "
            "nearest, ties to even\n");
}

TEST(PoplarEngine, ATileThatIsTooFullIsRefusedUnlessItIsAllowed) {
  Machine machine;
  Tensor t = machine.graph.addVariable(FLOAT, {160000}, "large");  // 640,000 B of 638,976 B
  machine.graph.setTileMapping(t, 2);
  machine.graph.createHostRead("t", t);
  expect_throw<graph_memory_allocation_error>([&] { Engine(machine.graph, Copy(t, t)); }, "variable 'large'");
  EXPECT_NO_THROW(Engine(machine.graph, Copy(t, t), {{"debug.allowOutOfMemory", "true"}}));
  machine.graph.setTileMapping(t.slice(0, 80000), 1);
  EXPECT_NO_THROW(Engine(machine.graph, Sequence()));
}

TEST(PoplarEngine, ADeviceOfAnotherSizeIsRefused) {
  Stream s;
  Engine engine(s.graph, s.programs);
  expect_throw<application_runtime_error>([&] { engine.load(small_device(2)); }, "1 chips of 4 tiles");
  EXPECT_NO_THROW(engine.load(s.device));
}

TEST(PoplarEngine, EnginesShareAnExecutable) {
  Stream s;
  Executable executable = compileGraph(s.graph, s.programs);
  Engine engine(std::move(executable));
  engine.load(s.device);
  expect_throw<poplar_error>([] { Engine none{Executable()}; }, "not there");
}

TEST(PoplarEngine, TheSummaryHasItsSections) {
  Stream s;
  Engine engine(s.graph, s.programs);
  engine.load(s.device);
  Values values(2);
  engine.connectStream("in", values.data());
  engine.run();
  std::ostringstream out;
  engine.printProfileSummary(out, {{"showExecutionSteps", "true"}});
  for (const char* section : {"Target:", "Graph:", "Memory Usage:", "Execution:"})
    EXPECT_NE(out.str().find(section), std::string::npos) << section;
  expect_throw<invalid_option>(
      [&] {
        engine.printProfileSummary(out, {{"showExecutionStep", "true"}});
      },
      "did you mean 'showExecutionSteps'");
}

TEST(PoplarEngine, TimeIsTakenOfTheHostAndTheDevice) {
  Machine machine;
  Tensor t = machine.counting({4}, "t");
  Engine engine(machine.graph, Copy(t[0], t[3]));
  engine.load(machine.device);
  const TimerTimePoint before = engine.getTimeStamp();
  engine.run();
  const TimerTimePoint after = engine.getTimeStamp();
  EXPECT_EQ(before.cycles(), 0u);
  EXPECT_EQ(after.cycles(), engine.getExecutionProfile()["simulation"]["cycles"].asUint());
  EXPECT_GT(after.cycles(), 0u);
  EXPECT_NE(engine.reportTiming(before, after).find(std::to_string(after.cycles()) + " cycles"),
            std::string::npos);
  EXPECT_NE(engine.reportTiming(after, after).find(" 0 cycles (0.0 us)"), std::string::npos);
}

TEST(PoplarEngine, ARunIsStopped) {
  Stream s;
  Engine engine(s.graph, Repeat(1000, s.programs[1]));
  int transfers = 0;
  engine.connectStreamToCallback("out", [&](void*) {
    if (++transfers == 3) engine.stop();
  });
  engine.load(s.device);
  engine.stop();  // nothing runs: nothing happens
  expect_throw<application_runtime_error>([&] { engine.run(); }, "stopped by Engine::stop");
  EXPECT_EQ(transfers, 3);
}

TEST(PoplarEngine, OneInitialValueForAllIsSetAsItIs) {
  Machine machine;
  Tensor big = machine.variable(LONGLONG, {2}, "big"), part = machine.counting({6}, "part"),
         flags = machine.variable(BOOL, {2}, "flags"), halves = machine.variable(HALF, {2}, "halves");
  const long long more_than_a_double_holds = (1LL << 62) + 1;
  machine.graph.setInitialValue(big, more_than_a_double_holds);
  machine.graph.setInitialValue(part.slice(1, 3), 7);
  machine.graph.setInitialValue(part.slice(4, 6).reverse(0), 8);
  machine.graph.setInitialValue(flags, true);
  machine.graph.setInitialValue(halves, 0.1f);
  const Program nothing = Sequence();
  EXPECT_EQ(machine.run<long long>(nothing, big), (std::vector<long long>(2, more_than_a_double_holds)));
  EXPECT_EQ(machine.run(nothing, part), (Values{0, 7, 7, 3, 8, 8}));
  EXPECT_EQ(machine.run<char>(nothing, flags), (std::vector<char>{1, 1}));
  EXPECT_EQ(machine.run<std::uint16_t>(nothing, halves), (std::vector<std::uint16_t>(2, 0x2e66)));
  expect_throw<overflow_error>([&] { machine.graph.setInitialValue(part, 1LL << 40); }, "part");
  expect_throw<poplar_error>(
      [&] { machine.graph.setInitialValue(machine.graph.addConstant(INT, {2}, 1, "fixed"), 2); }, "fixed");
}

TEST(PoplarEngine, OneConstantForAllIsAsItIs) {
  Machine machine;
  const long long more_than_a_double_holds = -(1LL << 61) - 3;
  Tensor big = machine.graph.addConstant(LONGLONG, {3}, more_than_a_double_holds),
         small = machine.graph.addConstant(FLOAT, {2, 2}, 0.1f);
  machine.graph.setTileMapping(big, 0);
  machine.graph.setTileMapping(small, 1);
  EXPECT_EQ(machine.run<long long>(Sequence(), big), (std::vector<long long>(3, more_than_a_double_holds)));
  EXPECT_EQ(machine.run<float>(Sequence(), small), (std::vector<float>(4, 0.1f)));
  expect_throw<overflow_error>([&] { machine.graph.addConstant(UNSIGNED_CHAR, {2}, 300, "much"); }, "much");
}

TEST(PoplarEngine, TensorsAreMovedWholeWithoutAnEnd) {
  Machine machine;
  Tensor t = machine.counting({3}, "t");
  machine.graph.createHostRead("t", t);
  machine.graph.createHostWrite("t", t);
  Engine engine(machine.graph, Sequence());
  engine.load(machine.device);
  const Values sent = {7, 8, 9};
  Values values(4, -1);
  engine.writeTensor("t", sent.data());
  engine.readTensor("t", values.data());
  EXPECT_EQ(values, (Values{7, 8, 9, -1}));
  expect_throw<application_runtime_error>([&] { engine.readTensor("u", values.data()); }, "no such handle");
}

TEST(PoplarEngine, StreamsOfNothingMoveNothing) {
  Machine machine;
  Tensor none = machine.counting({3}).slice(0, 0);
  const DataStream in = machine.graph.addHostToDeviceFIFO("in", INT, 0),
                   out = machine.graph.addDeviceToHostFIFO("out", INT, 0);
  Engine engine(machine.graph, Sequence{Copy(in, none), Copy(none, out)});
  Values values;
  engine.connectStream("in", values.data(), values.data());
  engine.connectStream("out", values.data());
  engine.load(machine.device);
  EXPECT_NO_THROW(engine.run());
}
