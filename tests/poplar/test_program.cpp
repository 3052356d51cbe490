// What programs do, and which are refused.
#include "tests/poplar/machine.h"

using namespace poplar;
using namespace poplar::program;
using Values = std::vector<int>;

TEST(PoplarProgram, CopiesNeedEqualCountsNotShapes) {
  Machine machine;
  Tensor a = machine.counting({2, 3}, "a"), b = machine.variable(INT, {3, 2}, "b");
  EXPECT_EQ(machine.run(Copy(a.transpose(), b), b), (Values{0, 3, 1, 4, 2, 5}));
  expect_throw<control_program_error>([&] { Copy(a, b[0]); }, "does not fit");
  Tensor f = machine.variable(FLOAT, {6}, "f");
  expect_throw<control_program_error>([&] { Copy(a, f); }, "float");
}

TEST(PoplarProgram, OverlappingCopiesReadFirst) {
  Machine machine;
  Tensor t = machine.counting({5});
  EXPECT_EQ(machine.run(Copy(t.slice(0, 4), t.slice(1, 5)), t), (Values{0, 0, 1, 2, 3}));
}

TEST(PoplarProgram, ConstantsAndAliasesAreNotWritten) {
  Machine machine;
  Tensor t = machine.counting({2}, "t"), four = machine.counting({4});
  const Tensor c = machine.graph.addConstant(INT, {2}, 1, "c");
  machine.graph.setTileMapping(c, 0);
  expect_throw<control_program_error>([&] { Engine(machine.graph, Copy(t, c)); }, "c");
  expect_throw<control_program_error>([&] { Engine(machine.graph, Copy(four, t.broadcast(2, 0))); },
                                      "two places");
  EXPECT_NO_THROW(Engine(machine.graph, Copy(c, t)));
}

TEST(PoplarProgram, AProgramIsAValue) {
  Machine machine;
  Tensor t = machine.counting({4}, "t"), u = machine.counting({4}, "u");
  Sequence inner({Copy(t.slice(0, 2), u.slice(2, 4))});
  Sequence outer({inner});
  inner.add(Copy(t.slice(3, 4), u.slice(0, 1)));  // not in outer
  EXPECT_EQ(machine.run(outer, u), (Values{0, 1, 0, 1}));
  Sequence twice = inner;
  twice.add(twice);
  EXPECT_EQ(machine.run(inner, t), (Values{0, 1, 2, 3}));
}

TEST(PoplarProgram, RepeatRunsSoManyTimes) {
  Machine machine;
  Tensor t = machine.counting({5});
  EXPECT_EQ(machine.run(Repeat(3, Copy(t.slice(0, 4), t.slice(1, 5))), t), (Values{0, 0, 0, 0, 1}));
  Machine other;
  Tensor u = other.counting({5});
  EXPECT_EQ(other.run(Repeat(0, Copy(u.slice(0, 4), u.slice(1, 5))), u), (Values{0, 1, 2, 3, 4}));
}

TEST(PoplarProgram, BranchesLookAtTheirPredicate) {
  for (const int value : {0, 1, 7}) {
    Machine machine;
    Tensor t = machine.counting({3}, "t"), p = machine.variable(INT, {1}, "p");
    machine.graph.setInitialValue(p, value);
    const Program branch = If(p, Copy(t[1], t[0]), Copy(t[2], t[0]));
    EXPECT_EQ(machine.run(branch, t)[0], value != 0 ? 1 : 2);
  }
}

TEST(PoplarProgram, SwitchTakesItsCaseOrTheDefault) {
  for (const int value : {-5, 0, 3, 4}) {
    Machine machine;
    Tensor t = machine.counting({5}, "t"), p = machine.variable(INT, {}, "p");
    machine.graph.setInitialValue(p, value);
    Switch choice(p, {{3, Copy(t[1], t[0])}}, Copy(t[2], t[0]));
    choice.add(-5, Copy(t[3], t[0]));
    EXPECT_EQ(machine.run(choice, t)[0], value == 3 ? 1 : value == -5 ? 3 : 2);
  }
  Machine machine;
  Tensor p = machine.variable(INT, {}, "p"), f = machine.variable(FLOAT, {}, "f");
  Switch choice(p);
  choice.add(1, Sequence());
  expect_throw<control_program_error>([&] { choice.add(1, Sequence()); }, "case 1 stands twice");
  expect_throw<type_error>([&] { Switch{f}; }, "float");
}

TEST(PoplarProgram, PredicatesAreOneWholeNumber) {
  Machine machine;
  Tensor two = machine.variable(INT, {2}, "two"), f = machine.variable(FLOAT, {}, "f");
  expect_throw<control_program_error>([&] { If(two, Sequence()); }, "must have one element");
  expect_throw<type_error>([&] { If(f, Sequence()); }, "float");
  expect_throw<type_error>([&] { RepeatWhileTrue(Sequence(), f, Sequence()); }, "RepeatWhileTrue");
  EXPECT_NO_THROW(If(machine.variable(BOOL, {1}), Sequence()));
}

TEST(PoplarProgram, FunctionsAreCalled) {
  Machine machine;
  Tensor t = machine.counting({3});
  const Function shift = machine.graph.addFunction(Copy(t.slice(0, 2), t.slice(1, 3)));
  EXPECT_EQ(machine.run(Sequence({Call(shift), Call(shift)}), t), (Values{0, 0, 0}));
  expect_throw<control_program_error>([] { Call{Function()}; }, "not there");
}

TEST(PoplarProgram, ReplicasSwapTheirValues) {
  const Device device = small_device(2, 2);
  Graph graph(device, replication_factor(2));
  Tensor t = graph.addVariable(INT, {2}, VariableMappingMethod::LINEAR, "t");
  Tensor u = graph.addVariable(INT, {2}, VariableMappingMethod::LINEAR, "u");
  graph.createHostWrite("t", t);
  graph.createHostRead("u", u);
  Engine engine(graph, CrossReplicaCopy(t, u, {{0, 1}, {1, 0}}));
  engine.load(device);
  const Values given = {1, 2, 3, 4};
  engine.writeTensor("t", given.data(), given.data() + 4);
  engine.run();
  Values taken(4);
  engine.readTensor("u", taken.data(), taken.data() + 4);
  EXPECT_EQ(taken, (Values{3, 4, 1, 2}));
  expect_throw<control_program_error>([&] { CrossReplicaCopy(t, u, {{1, 0}}); }, "no replica 0");
}

TEST(PoplarProgram, AbortsStopTheRun) {
  Machine machine;
  Tensor t = machine.counting({2}, "t");
  Engine engine(machine.graph, {AbortOnCondition(t[1], "one is set"), AbortOnCondition(t[0], "never"),
                                ErrorProgram("wrong turn", t)});
  std::ostringstream shown;
  engine.setPrintStream(shown);
  engine.load(machine.device);
  expect_throw<application_runtime_error>([&] { engine.run(0); }, "one is set");
  EXPECT_NO_THROW(engine.run(1));
  expect_throw<application_runtime_error>([&] { engine.run(2); }, "wrong turn");
  EXPECT_NE(shown.str().find("[0 1]"), std::string::npos) << shown.str();
}

TEST(PoplarProgram, StreamsAreAsLargeAsTheirTensors) {
  Machine machine;
  Tensor t = machine.counting({3}, "t");
  const DataStream in = machine.graph.addHostToDeviceFIFO("in", INT, 4);
  const DataStream out = machine.graph.addDeviceToHostFIFO("out", INT, 3);
  expect_throw<control_program_error>([&] { Engine(machine.graph, Copy(in, t)); }, "stream 'in' moves 4 int");
  expect_throw<control_program_error>([&] { Engine(machine.graph, Copy(out, t)); }, "other way");
  EXPECT_NO_THROW(Engine(machine.graph, Copy(t, out)));
}
