// A program for the bulk-synchronous machine against the installed library: scales a vector on every tile.
#include <superstep/bsp.h>

#include <cstdio>

using namespace superstep::bsp;

struct Scale : Vertex {
  InOut<Vector<float>> data;
  float factor = 1;
  void fields(FieldList& list) { list("data", data)("factor", factor); }
  void compute() {
    for (float& x : data) x *= factor;
  }
  static PerfEstimate cycles(const VertexFields& f, const Device&) { return 20 + 2 * f.size("data"); }
};

int main() try {
  constexpr std::int64_t n = 1472 * 8;
  Graph graph(gc200_device());
  graph.add_codelets({vertex_class<Scale>("Scale")});
  const Tensor x = graph.add_variable(Type::f32, {n}, VariableMappingMethod::linear, "x");
  graph.create_host_write("x", x);
  graph.create_host_read("x", x);
  const ComputeSet scale = graph.add_compute_set("scale");
  const TileMapping mapping = graph.tile_mapping(x);
  for (std::uint32_t tile = 0; tile < graph.num_tiles(); ++tile)
    for (const Interval& share : mapping[tile]) {
      const VertexRef vertex = graph.add_vertex(scale, "Scale", {{"data", x.slice(share)}});
      graph.set_initial_value(field(vertex, "factor"), 3);
      graph.set_tile_mapping(vertex, tile);
    }
  const Program programs[] = {Execute(scale)};
  Engine engine(graph, programs);
  std::vector<float> values(n, 2);
  engine.write_tensor<float>("x", values);
  engine.run();
  engine.read_tensor<float>("x", values);
  for (const float value : values)
    if (value != 6) return 1;
  std::printf("every value is 6; %llu cycles\n",
              static_cast<unsigned long long>(engine.profile().total_cycles()));
  return 0;
} catch (const superstep::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
