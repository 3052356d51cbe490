// c = a + b over a million elements: six vertices on each of 1,472 tiles.
#include <numeric>
#include <vector>

#include "examples/bsp/report.h"

using namespace superstep::bsp;

struct Add : Vertex {
  Input<Vector<float>> a, b;
  Output<Vector<float>> c;
  void fields(FieldList& list) { list("a", a)("b", b)("c", c); }
  void compute() {
    for (std::size_t i = 0; i < c.size(); ++i) c[i] = a[i] + b[i];
  }
  // Two elements a vector: two loads, an addition and a store share three bundles.
  static PerfEstimate cycles(const VertexFields& f, const Device& device) {
    const std::int64_t width = device.vector_width(Type::f32);
    return {20 + 3 * ((f.size("c") + width - 1) / width), static_cast<std::uint64_t>(f.size("c"))};
  }
};

static void run() {
  constexpr std::int64_t n = 1000000;
  Graph graph(gc200_device());
  graph.add_codelets({vertex_class<Add>("Add")});
  const Tensor a = graph.add_variable(Type::f32, {n}, VariableMappingMethod::linear, "a");
  const Tensor b = graph.add_variable(Type::f32, {n}, VariableMappingMethod::linear, "b");
  const Tensor c = graph.add_variable(Type::f32, {n}, VariableMappingMethod::linear, "c");
  graph.create_host_write("a", a);
  graph.create_host_write("b", b);
  graph.create_host_read("c", c);

  const ComputeSet add = graph.add_compute_set("add");
  const TileMapping mapping = graph.tile_mapping(c);
  const std::int64_t workers = graph.device().workers;
  for (std::uint32_t tile = 0; tile < graph.num_tiles(); ++tile)
    for (const Interval& share : mapping[tile])
      for (std::int64_t w = 0; w < workers; ++w) {
        const std::int64_t begin = share.begin + share.size() * w / workers;
        const std::int64_t end = share.begin + share.size() * (w + 1) / workers;
        const VertexRef vertex = graph.add_vertex(
            add, "Add", {{"a", a.slice(begin, end)}, {"b", b.slice(begin, end)}, {"c", c.slice(begin, end)}});
        graph.set_tile_mapping(vertex, tile);
      }

  const Program programs[] = {Execute(add)};
  Engine engine(graph, programs);
  std::vector<float> x(n), y(n), z(n);
  std::iota(x.begin(), x.end(), 0.f);
  std::iota(y.rbegin(), y.rend(), 1.f);
  engine.write_tensor<float>("a", x);
  engine.write_tensor<float>("b", y);
  engine.run();
  engine.read_tensor<float>("c", z);
  for (const float value : z) example::require(value == 1000000.f, "a sum is wrong");
  fmt::print("every one of {} sums is 1000000\n", n);
  example::print_steps(engine);
}

int main() { return example::guarded(run); }
