// The sum of a million elements in two supersteps: a partial sum a tile, then one tile adds the partial sums.
#include <vector>

#include "examples/bsp/report.h"

using namespace superstep::bsp;

// All six workers of the tile share the elements; each keeps its own sum, the first adds them up at the end.
struct Sum : MultiVertex {
  Input<Vector<int>> in;
  Output<int> out;
  int total;
  void fields(FieldList& list) { list("in", in)("out", out)("total", total); }
  void compute(unsigned worker) {
    if (worker == 0) total = 0;
    for (std::size_t i = worker; i < in.size(); i += num_workers()) total += in[i];
    if (worker + 1 == num_workers()) out = total;
  }
  static PerfEstimate cycles(const VertexFields& f, const Device& device) {
    const std::int64_t each = (f.size("in") + device.workers - 1) / device.workers;
    return 30 + device.workers * (10 + 2 * each);
  }
};

static void run() {
  constexpr std::int64_t n = 1000000;
  Graph graph(gc200_device());
  graph.add_codelets({vertex_class<Sum>("Sum")});
  const Tensor x = graph.add_variable(Type::i32, {n}, VariableMappingMethod::linear, "x");
  graph.create_host_write("x", x);
  const TileMapping mapping = graph.tile_mapping(x);
  std::int64_t used = 0;
  while (used < static_cast<std::int64_t>(mapping.size()) && !mapping[static_cast<std::size_t>(used)].empty())
    ++used;
  const Tensor partial = graph.add_variable(Type::i32, {used}, "partial");
  const Tensor total = graph.add_variable(Type::i32, {}, "total");
  graph.set_tile_mapping(total, 0);
  graph.create_host_read("total", total);

  const ComputeSet first = graph.add_compute_set("partial sums"), second = graph.add_compute_set("total");
  for (std::int64_t tile = 0; tile < used; ++tile) {
    const auto place = static_cast<std::uint32_t>(tile);
    graph.set_tile_mapping(partial[tile], place);
    const Tensor share = x.slice(mapping[place][0]);
    graph.set_tile_mapping(graph.add_vertex(first, "Sum", {{"in", share}, {"out", partial[tile]}}), place);
  }
  graph.set_tile_mapping(graph.add_vertex(second, "Sum", {{"in", partial}, {"out", total}}), 0);

  const Program programs[] = {Sequence{Execute(first), Execute(second)}};
  Engine engine(graph, programs);
  std::vector<int> values(n);
  for (std::int64_t i = 0; i < n; ++i) values[static_cast<std::size_t>(i)] = static_cast<int>(i % 1000);
  engine.write_tensor<int>("x", values);
  engine.run();
  int sum = 0;
  engine.read_tensor<int>("total", std::span<int>(&sum, 1));
  example::require(sum == 499500000, "the sum is wrong");
  fmt::print("sum {}\n", sum);
  example::print_steps(engine);
}

int main() { return example::guarded(run); }
