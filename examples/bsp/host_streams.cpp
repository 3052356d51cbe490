// Data that does not fit: blocks come from the host through a stream, are summed into a tensor that stays on
// the tiles, and every block is kept in streaming memory, from where the last one is read back.
#include <vector>

#include "examples/bsp/report.h"

using namespace superstep::bsp;

struct Accumulate : Vertex {
  InOut<Vector<float>> sum;
  Input<Vector<float>> block;
  void fields(FieldList& list) { list("sum", sum)("block", block); }
  void compute() {
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += block[i];
  }
  static PerfEstimate cycles(const VertexFields& f, const Device&) { return 20 + 2 * f.size("sum"); }
};

struct Next : Vertex {
  InOut<unsigned> row;
  Output<bool> more;
  unsigned rows;
  void fields(FieldList& list) { list("row", row)("more", more)("rows", rows); }
  void compute() {
    row = row + 1;
    more = row < rows;
  }
  static PerfEstimate cycles(const VertexFields&, const Device&) { return 15; }
};

static void run() {
  constexpr std::int64_t n = 1472 * 64;
  constexpr unsigned blocks = 10;
  Graph graph(bow_device());
  graph.add_codelets({vertex_class<Accumulate>("Accumulate"), vertex_class<Next>("Next")});
  const Tensor sum = graph.add_variable(Type::f32, {n}, VariableMappingMethod::linear, "sum");
  const Tensor block = graph.add_variable(Type::f32, {n}, VariableMappingMethod::linear, "block");
  const Tensor row = graph.add_variable(Type::u32, {1}, "row"),
               more = graph.add_variable(Type::boolean, {}, "more");
  graph.set_tile_mapping(row, 0);
  graph.set_tile_mapping(more, 0);
  graph.set_initial_value(sum, 0);
  graph.set_initial_value(row, 0);

  const ComputeSet add = graph.add_compute_set("accumulate"), next = graph.add_compute_set("next");
  for (std::uint32_t tile = 0; tile < graph.num_tiles(); ++tile) {
    const Interval share{tile * 64, tile * 64 + 64};
    graph.set_tile_mapping(
        graph.add_vertex(add, "Accumulate", {{"sum", sum.slice(share)}, {"block", block.slice(share)}}),
        tile);
  }
  const VertexRef counter = graph.add_vertex(next, "Next", {{"row", row}, {"more", more}});
  graph.set_initial_value(field(counter, "rows"), blocks);
  graph.set_tile_mapping(counter, 0);

  const DataStream in = graph.add_host_to_device_fifo("blocks", Type::f32, n);
  const DataStream out = graph.add_device_to_host_fifo("sum", Type::f32, n);
  const RemoteBuffer kept = graph.add_remote_buffer("kept", Type::f32, n, blocks);
  const Program one =
      Sequence{Copy(in, block, "a block"), Copy(block, kept, row, "keep"), Execute(add), Execute(next)};
  const Program programs[] = {
      Sequence{RepeatWhileTrue(one, more, Sequence(), "blocks left"), Copy(sum, out, "sum")}};

  Engine engine(graph, programs);
  float value = 0;
  engine.connect_stream_to_callback("blocks", [&](void* data) {
    value += 1;
    std::fill_n(static_cast<float*>(data), n, value);
  });
  std::vector<float> result(n), last(n);
  engine.connect_stream("sum", std::span<float>(result));
  engine.run();
  engine.copy_from_remote_buffer("kept", last.data(), last.size() * sizeof(float), blocks - 1);
  for (std::int64_t i = 0; i < n; ++i)
    example::require(result[static_cast<std::size_t>(i)] == 55.f && last[static_cast<std::size_t>(i)] == 10.f,
                     "wrong");
  fmt::print("{} blocks: every sum is {}, the last block kept is {}\n", blocks, result[0], last[0]);
  example::print_steps(engine);
}

int main() { return example::guarded(run); }
