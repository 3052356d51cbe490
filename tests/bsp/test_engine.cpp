// Programs that run: values, cycles by hand, control flow, streams, remote memory, replicas.
#include <numeric>

#include "superstep/base/system/interrupt.h"
#include "tests/bsp/support.h"

namespace superstep::bsp {
namespace {

struct AddProgram {
  Graph graph = small_graph(4);
  Tensor a, b, out;
  ComputeSet set;
  VertexRef vertex;

  explicit AddProgram(std::uint32_t b_tile = 0, std::uint32_t out_tile = 0) {
    a = mapped(graph, {8}, "a");
    b = mapped(graph, {8}, "b", b_tile);
    out = mapped(graph, {8}, "out", out_tile);
    graph.set_initial_value(a, floats({0, 1, 2, 3, 4, 5, 6, 7}));
    graph.set_initial_value(b, 10);
    set = graph.add_compute_set("add");
    vertex = graph.add_vertex(set, "Add", {{"a", a}, {"b", b}, {"out", out}});
    graph.set_tile_mapping(vertex, 0);
    graph.create_host_read("out", out);
  }
  StepCost cost() const {
    const Program programs[] = {Execute(set)};
    return compile_graph(graph, programs).profile().steps[0].cost;
  }
};

TEST(Engine, AddsOnOneTile) {
  AddProgram p;
  const Program programs[] = {Execute(p.set)};
  Engine engine(p.graph, programs);
  engine.run();
  EXPECT_EQ(read(engine, "out", 8), (std::vector<float>{10, 11, 12, 13, 14, 15, 16, 17}));
  // One worker of six takes 10 + 2 x 8 cycles; nothing moves; one barrier of 10.
  EXPECT_EQ(engine.profile().total_cycles(), 6u * 26 + 10);
}

TEST(Cycles, RemoteInputsAreExchanged) {
  const StepCost local = AddProgram(0).cost(), remote = AddProgram(1).cost();
  EXPECT_EQ(local.exchange, 0u);
  EXPECT_EQ(remote.exchange, 100u + 8 * 4 / 4);  // 8 floats at 4 B a cycle, and the set-up
  EXPECT_EQ(remote.compute, local.compute);
  EXPECT_EQ(remote.sync, 10u);
}

TEST(Cycles, RemoteOutputsAreCopiedBack) {
  const StepCost cost = AddProgram(0, 2).cost();
  EXPECT_EQ(cost.exchange, 100u + 8);
  EXPECT_EQ(cost.sync, 20u);  // a second barrier before the values leave
}

TEST(Cycles, WorkersTakeVerticesInTurn) {
  for (const int vertices : {1, 6, 7, 12, 13}) {
    Graph graph = small_graph(1);
    const ComputeSet set = graph.add_compute_set("all");
    const Tensor data = mapped(graph, {vertices, 4}, "data");
    graph.set_initial_value(data, 1);
    for (int i = 0; i < vertices; ++i) {
      const VertexRef vertex = graph.add_vertex(set, "Scale", {{"data", data[i]}});
      graph.set_tile_mapping(vertex, 0);
      graph.set_perf_estimate(vertex, 100);
    }
    const Program programs[] = {Execute(set)};
    const StepProfile step = compile_graph(graph, programs).profile().steps[0];
    EXPECT_EQ(step.cost.compute, 6u * 100 * static_cast<unsigned>((vertices + 5) / 6)) << vertices;
    EXPECT_EQ(step.compute_cycles_busy, 100u * static_cast<unsigned>(vertices));
  }
}

TEST(Cycles, AMultiVertexHoldsItsTile) {
  Graph graph = small_graph(2);
  const Tensor rows = mapped(graph, {3, 5}, "rows"), out = mapped(graph, {5}, "out");
  graph.set_initial_value(rows, 2);
  const ComputeSet set = graph.add_compute_set("sum");
  graph.set_tile_mapping(graph.add_vertex(set, "ColumnSum", {{"rows", rows}, {"out", out}}), 0);
  graph.create_host_read("out", out);
  const Program programs[] = {Execute(set)};
  Engine engine(graph, programs);
  engine.run();
  EXPECT_EQ(read(engine, "out", 5), std::vector<float>(5, 6.f));
  EXPECT_EQ(engine.profile().compilation.steps[0].cost.compute, 20u + 6 * 15);
}

TEST(Cycles, ABroadcastIsSentOnce) {
  Graph graph = small_graph(5);
  const Tensor source = mapped(graph, {100}, "source", 0);
  const Tensor copies = graph.add_variable(Type::f32, {4, 100}, "copies");
  for (std::uint32_t i = 0; i < 4; ++i) graph.set_tile_mapping(copies[i], i + 1);
  graph.set_initial_value(source, 1);
  const Program programs[] = {Copy(source.expand({0}).broadcast(4, 0), copies)};
  const StepProfile step = compile_graph(graph, programs).profile().steps[0];
  EXPECT_EQ(step.max_bytes_out, 400u);  // all four listen to one sending
  EXPECT_EQ(step.max_bytes_in, 400u);
  EXPECT_EQ(step.exchanged_bytes, 1600u);
  EXPECT_EQ(step.cost.exchange, 100u + 100);
}

TEST(Cycles, AnOnTileCopyTakesTheMemcpyRate) {
  Graph graph = small_graph(2);
  const Tensor a = mapped(graph, {1000}, "a"), b = mapped(graph, {1000}, "b");
  graph.set_initial_value(a, 1);
  const Program programs[] = {Copy(a, b)};
  const StepCost cost = compile_graph(graph, programs).profile().steps[0].cost;
  EXPECT_EQ(cost.compute, 5u + 4000 / 8);
  EXPECT_EQ(cost.exchange, 0u);
}

TEST(Engine, FieldsThatAreNotContiguousAreGatheredAndScattered) {
  Graph graph = small_graph(3);
  const Tensor matrix = mapped(graph, {4, 4}, "matrix");
  std::vector<float> values(16);
  std::iota(values.begin(), values.end(), 0.f);
  graph.set_initial_value(matrix, superstep::Tensor::from<float>({4, 4}, values));
  const ComputeSet set = graph.add_compute_set("columns");
  for (std::uint32_t i = 0; i < 3; ++i) {
    const Tensor column = matrix.slice(i, i + 1, 1);
    const VertexRef vertex = graph.add_vertex(set, "Scale", {{"data", column}});
    graph.set_initial_value(field(vertex, "scale"), 2);
    graph.set_tile_mapping(vertex, i);
  }
  graph.create_host_read("matrix", matrix.transpose());
  const Program programs[] = {Execute(set)};
  Engine engine(graph, programs);
  engine.run();
  EXPECT_EQ(read(engine, "matrix", 16),
            (std::vector<float>{0, 9, 18, 27, 2, 11, 20, 29, 4, 13, 22, 31, 3, 7, 11, 15}));
}

TEST(Engine, OverlappingCopiesReadBeforeTheyWrite) {
  Graph graph = small_graph(2);
  const Tensor x = mapped(graph, {6}, "x");
  graph.set_initial_value(x, floats({0, 1, 2, 3, 4, 5}));
  graph.create_host_read("x", x);
  const Program programs[] = {Copy(x.slice(0, 5), x.slice(1, 6)), Copy(x.reverse(0), x)};
  Engine engine(graph, programs);
  engine.run(0);
  EXPECT_EQ(read(engine, "x", 6), (std::vector<float>{0, 0, 1, 2, 3, 4}));
  engine.run(1);
  EXPECT_EQ(read(engine, "x", 6), (std::vector<float>{4, 3, 2, 1, 0, 0}));
}

struct Loop {
  Graph graph = small_graph(2);
  Tensor counter, flag, sum;
  ComputeSet count, add;
  explicit Loop(int limit) {
    counter = mapped(graph, {}, "counter", 0, Type::i32);
    flag = mapped(graph, {}, "flag", 0, Type::boolean);
    sum = mapped(graph, {3}, "sum", 1);
    graph.set_initial_value(counter, 0);
    graph.set_initial_value(sum, 1);
    count = graph.add_compute_set("count");
    const VertexRef vertex = graph.add_vertex(count, "Count", {{"counter", counter}, {"flag", flag}});
    graph.set_initial_value(field(vertex, "limit"), limit);
    graph.set_tile_mapping(vertex, 0);
    add = graph.add_compute_set("add");
    const VertexRef scale = graph.add_vertex(add, "Scale", {{"data", sum}});
    graph.set_initial_value(field(scale, "scale"), 2);
    graph.set_tile_mapping(scale, 1);
    graph.create_host_read("sum", sum);
  }
};

TEST(Engine, LoopsEndByTheirPredicate) {
  Loop loop(5);
  const Program programs[] = {RepeatWhileTrue(Execute(loop.count), loop.flag, Execute(loop.add))};
  Engine engine(loop.graph, programs);
  engine.run();
  EXPECT_EQ(read(engine, "sum", 3)[0], 16.f);  // four turns
  EXPECT_EQ(engine.profile().runs[0].times, (std::vector<std::uint64_t>{5, 5, 4}));
  // The control: the other kind of loop does not run its body at all.
  Loop other(5);
  const Program opposite[] = {RepeatWhileFalse(Execute(other.count), other.flag, Execute(other.add))};
  Engine second(other.graph, opposite);
  second.run();
  EXPECT_EQ(read(second, "sum", 3)[0], 1.f);
}

TEST(Engine, SaysHowFarItIs) {
  using Reports = std::vector<std::pair<std::size_t, std::size_t>>;
  AddProgram p;
  const Program add = Execute(p.set);
  const Program programs[] = {Sequence({add, Repeat(3, add), Copy(p.a, p.b)})};
  Reports compiled, executed;
  const auto keep = [](Reports& reports) {
    return [&](std::size_t done, std::size_t all) { reports.push_back({done, all}); };
  };
  Engine engine(p.graph, programs, {.progress = keep(executed)}, {.progress = keep(compiled)});
  engine.run();
  EXPECT_EQ(compiled, (Reports{{0, 2}, {1, 2}}));
  EXPECT_EQ(executed, (Reports{{0, 5}, {1, 5}, {2, 5}, {3, 5}, {4, 5}, {5, 5}}));
}

TEST(Engine, StopsWhenTheUserAsks) {
  AddProgram p;
  const Program programs[] = {Execute(p.set)};
  // In the second step: the first has already been done.
  const Program twice[] = {Repeat(2, Execute(p.set))};
  Engine engine(p.graph, twice, {.progress = [](std::size_t done, std::size_t) {
                  if (done == 1) request_interrupt();
                }});
  expect_error(ErrorCode::interrupted, [&] { engine.run(); }, {"stopped while executing"});
  expect_error(ErrorCode::interrupted, [&] { compile_graph(p.graph, programs); },
               {"stopped while compiling"});
  clear_interrupt();
  EXPECT_NO_THROW(engine.reset_execution_profile());
  EXPECT_NO_THROW(compile_graph(p.graph, programs));
}

TEST(Engine, ALoopWithoutEndIsStopped) {
  Loop loop(1 << 30);
  const Program programs[] = {RepeatWhileTrue(Execute(loop.count), loop.flag, Execute(loop.add), "forever")};
  Engine engine(loop.graph, programs, {.iteration_limit = 10});
  expect_error(ErrorCode::invalid_argument, [&] { engine.run(); },
               {"RepeatWhile 'forever'", "after 10 iterations"});
}

TEST(Engine, BranchesSwitchesAndFunctions) {
  Loop loop(5);
  const Function add = loop.graph.add_function(Execute(loop.add));
  const Tensor control = mapped(loop.graph, {}, "control", 0, Type::i32);
  loop.graph.create_host_write("control", control);
  const Program programs[] = {
      Switch(control, {{1, Call(add)}, {7, Sequence{Call(add), Call(add)}}}, Repeat(3, Call(add))),
      If(control, Call(add))};
  Engine engine(loop.graph, programs);
  const auto run_with = [&](int value, int program) {
    engine.load();
    engine.write_tensor("control", &value, sizeof(value));
    engine.run(program);
    return read(engine, "sum", 3)[0];
  };
  EXPECT_EQ(run_with(1, 0), 2.f);
  EXPECT_EQ(run_with(7, 0), 4.f);
  EXPECT_EQ(run_with(8, 0), 8.f);
  EXPECT_EQ(run_with(0, 1), 1.f);
  EXPECT_EQ(run_with(3, 1), 2.f);
}

TEST(Engine, StreamsGoOnWhereTheyEnded) {
  Graph graph = small_graph(2);
  const Tensor x = mapped(graph, {2}, "x", 1);
  const DataStream in = graph.add_host_to_device_fifo("in", Type::f32, 2);
  const DataStream out = graph.add_device_to_host_fifo("out", Type::f32, 2);
  const Program programs[] = {Repeat(3, Sequence{Copy(in, x), Copy(x, out)})};
  Engine engine(graph, programs);
  std::vector<float> source{1, 2, 3, 4}, sink(6), called;
  engine.connect_stream("in", std::span<float>(source));
  expect_error(ErrorCode::invalid_argument, [&] { engine.run(); }, {"stream out", "not connected"});
  engine.connect_stream("out", std::span<float>(sink));
  engine.connect_stream("in", std::span<float>(source));
  engine.run();
  EXPECT_EQ(sink, (std::vector<float>{1, 2, 3, 4, 1, 2}));
  engine.connect_stream_to_callback("out", [&](void* data) {
    called.insert(called.end(), static_cast<float*>(data), static_cast<float*>(data) + 2);
  });
  engine.run();
  EXPECT_EQ(called, (std::vector<float>{3, 4, 1, 2, 3, 4}));
  expect_error(ErrorCode::invalid_argument, [&] { engine.connect_stream("inn", std::span<float>(source)); },
               {"inn", "did you mean 'in'"});
  std::vector<float> odd(3);
  expect_error(ErrorCode::invalid_argument, [&] { engine.connect_stream("in", std::span<float>(odd)); },
               {"12 B does not hold whole transfers of 8 B"});
  EXPECT_GT(engine.profile().total.cost.host_exchange, 0u);
}

TEST(Engine, RemoteBuffersKeepRows) {
  Graph graph = small_graph(2);
  const Tensor rows = mapped(graph, {2, 3}, "rows"), offset = mapped(graph, {2}, "offset", 0, Type::u32);
  const RemoteBuffer buffer = graph.add_remote_buffer("buffer", Type::f32, 3, 4);
  graph.create_host_write("offset", offset);
  graph.create_host_read("rows", rows);
  const Program programs[] = {Copy(buffer, rows, offset), Copy(rows, buffer, offset)};
  Engine engine(graph, programs);
  const std::vector<float> row{7, 8, 9};
  engine.copy_to_remote_buffer(row.data(), 12, "buffer", 3);
  const std::vector<std::uint32_t> at{3, 0}, back{1, 2}, wrong{4, 0};
  engine.write_tensor<std::uint32_t>("offset", at);
  engine.run(0);
  EXPECT_EQ(read(engine, "rows", 6), (std::vector<float>{7, 8, 9, 0, 0, 0}));
  engine.write_tensor<std::uint32_t>("offset", back);
  engine.run(1);
  std::vector<float> kept(3);
  engine.copy_from_remote_buffer("buffer", kept.data(), 12, 1);
  EXPECT_EQ(kept, row);
  engine.write_tensor<std::uint32_t>("offset", wrong);
  expect_error(ErrorCode::invalid_argument, [&] { engine.run(0); }, {"remote buffer buffer", "row 4 of 4"});
}

TEST(Engine, ReplicasHaveTheirOwnDataAndCanMeet) {
  Graph graph = small_graph(2, 4, 4);
  const Tensor x = mapped(graph, {2}, "x"), y = mapped(graph, {2}, "y", 1);
  const DataStream in = graph.add_host_to_device_fifo("in", Type::f32, 2);
  const DataStream all = graph.add_host_to_device_fifo("all", Type::f32, 2, ReplicatedStreamMode::broadcast);
  graph.create_host_read("y", y);
  const Program programs[] = {Sequence{Copy(in, x), CrossReplicaCopy(x, y, {1, 2, 3, 0})}, Copy(all, y),
                              Sequence{Copy(in, y), AssumeEqualAcrossReplicas(y, "y")}};
  Engine engine(graph, programs);
  std::vector<float> data{0, 1, 2, 3, 4, 5, 6, 7}, same{8, 9};
  engine.connect_stream("in", std::span<float>(data));
  engine.connect_stream("all", std::span<float>(same));
  engine.run(0);
  EXPECT_EQ(read(engine, "y", 8), (std::vector<float>{2, 3, 4, 5, 6, 7, 0, 1}));
  engine.run(1);
  EXPECT_EQ(read(engine, "y", 8), (std::vector<float>{8, 9, 8, 9, 8, 9, 8, 9}));
  expect_error(ErrorCode::invalid_argument, [&] { engine.run(2); },
               {"'y'", "differs between replicas 0 and 1"});
  EXPECT_GT(engine.profile().runs[0].cost.global_exchange, 0u);
}

TEST(Engine, PrintsStopsAndAborts) {
  Graph graph = small_graph(1);
  const Tensor x = mapped(graph, {2, 2}, "x"), flag = mapped(graph, {}, "flag", 0, Type::boolean);
  graph.set_initial_value(x, superstep::Tensor::from<float>({2, 2}, {1, 2, 3, 4.5}));
  graph.set_initial_value(flag, 1);
  std::ostringstream text;
  const Program programs[] = {PrintTensor(x, "x"), AbortOnCondition(flag, "too hot"),
                              ErrorProgram("never", x, "stop")};
  Engine engine(graph, programs, {.print_to = &text});
  engine.run(0);
  EXPECT_EQ(text.str(), "x: [[1.0000000 2.0000000]\n [3.0000000 4.5000000]]\n");
  expect_error(ErrorCode::invalid_argument, [&] { engine.run(1); }, {"stopped itself: too hot"});
  expect_error(ErrorCode::invalid_argument, [&] { engine.run(2); }, {"ErrorProgram 'stop'", "never"});
  expect_error(ErrorCode::invalid_argument, [&] { engine.run(3); },
               {"there is no program 3: the engine has 3"});
}

TEST(Engine, TimingOnlyCountsTheSameCycles) {
  AddProgram p(1, 2);
  const Program programs[] = {Repeat(100000, Execute(p.set))};
  Engine timed(p.graph, programs, {.timing_only = true, .trace_events = 10}, {.timing_only = true});
  timed.run();
  Engine data(p.graph, programs);
  data.run();
  EXPECT_EQ(timed.profile().total_cycles(), data.profile().total_cycles());
  EXPECT_EQ(timed.profile().total.times, data.profile().total.times);
  EXPECT_EQ(timed.profile().runs[0].events.size(), 10u);
  expect_error(ErrorCode::invalid_argument, [&] { read(timed, "out", 8); }, {"there is no data"});
  const Executable executable = compile_graph(p.graph, programs, {.timing_only = true});
  expect_error(ErrorCode::invalid_argument, [&] { Engine(executable, {}); }, {"compiled for timing only"});
}

TEST(Engine, AssumedBranchesAreSaid) {
  Loop loop(5);
  const Program programs[] = {RepeatWhileTrue(Execute(loop.count), loop.flag, Execute(loop.add))};
  Engine engine(loop.graph, programs, {.timing_only = true, .assumed_iterations = 4});
  engine.run();
  EXPECT_TRUE(engine.profile().total.assumed);
  EXPECT_EQ(engine.profile().runs[0].times, (std::vector<std::uint64_t>{5, 5, 4}));
}

}  // namespace
}  // namespace superstep::bsp
