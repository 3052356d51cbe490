// A matrix-vector product, 10,000 x 1,000, planned as the vendor's sixth tutorial does: the columns are split
// so that every tile has partial dot products, which a second superstep adds. The plan's worst costs are
// known check values of tile count, workers and exchange rate: 53807 on a GC200, 64373 on a GC2. The best
// plan is then built and run, and its compute cycles are those planned.
#include <algorithm>
#include <vector>

#include "examples/bsp/report.h"

using namespace superstep::bsp;

static std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

struct Cost {
  std::int64_t compute = 0, exchange = 0, reduce = 0, reduce_exchange = 0;
  std::int64_t total() const { return compute + exchange + reduce + reduce_exchange; }
};

static std::int64_t dot_cycles(std::int64_t n) { return 5 + (n + 1) / 2; }

static Cost cost_of(const Device& device, std::int64_t rows, std::int64_t columns, std::int64_t split) {
  const std::int64_t tiles = device.num_tiles(), workers = device.workers,
                     rate = device.exchange_bytes_per_cycle;
  Cost cost;
  const std::int64_t dots = std::max<std::int64_t>(ceil_div(rows * split, tiles), 1);
  const std::int64_t part = ceil_div(columns, split);
  cost.compute = ceil_div(dots, workers) * workers * dot_cycles(part);
  cost.exchange = ceil_div(dots, rows) * part * 4 / rate;
  const std::int64_t sums = std::max<std::int64_t>(ceil_div(rows, tiles), 1);
  cost.reduce = ceil_div(sums, workers) * workers * dot_cycles(split);
  cost.reduce_exchange = sums * split * 4 / rate;
  return cost;
}

static std::int64_t plan(const Device& device, std::int64_t rows, std::int64_t columns) {
  std::int64_t best = 1, worst = 1;
  for (std::int64_t split = 1; split < columns; ++split) {
    const std::int64_t cost = cost_of(device, rows, columns, split).total();
    if (cost < cost_of(device, rows, columns, best).total()) best = split;
    if (cost > cost_of(device, rows, columns, worst).total()) worst = split;
  }
  const Cost b = cost_of(device, rows, columns, best);
  fmt::print("{}: {} tiles\n  Worst cost seen: {} (split {})\n", device.name, device.num_tiles(),
             cost_of(device, rows, columns, worst).total(), worst);
  fmt::print("  best {} at split {}: {} + {} + {} + {}\n", b.total(), best, b.compute, b.exchange, b.reduce,
             b.reduce_exchange);
  return best;
}

struct Dot : Vertex {
  Input<Vector<float>> a, b;
  Output<float> out;
  void fields(FieldList& list) { list("a", a)("b", b)("out", out); }
  void compute() {
    float sum = 0;
    for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
    out = sum;
  }
  static PerfEstimate cycles(const VertexFields& f, const Device&) {
    return {dot_cycles(f.size("a")), 2 * static_cast<std::uint64_t>(f.size("a"))};
  }
};

struct Total : Vertex {
  Input<Vector<float>> in;
  Output<float> out;
  void fields(FieldList& list) { list("in", in)("out", out); }
  void compute() {
    float sum = 0;
    for (const float value : in) sum += value;
    out = sum;
  }
  static PerfEstimate cycles(const VertexFields& f, const Device&) { return dot_cycles(f.size("in")); }
};

static void build_and_run(const Device& device, std::int64_t rows, std::int64_t columns, std::int64_t split) {
  Graph graph(device);
  graph.add_codelets({vertex_class<Dot>("Dot"), vertex_class<Total>("Total")});
  const Tensor matrix = graph.add_variable(Type::f32, {rows, columns}, "matrix");
  const Tensor vector = graph.add_variable(Type::f32, {columns}, "vector");
  const Tensor partial = graph.add_variable(Type::f32, {rows, split}, "partial");
  const Tensor out = graph.add_variable(Type::f32, {rows}, "out");
  graph.create_host_write("matrix", matrix);
  graph.create_host_write("vector", vector);
  graph.create_host_read("out", out);
  const ComputeSet dots = graph.add_compute_set("dot products"), sums = graph.add_compute_set("sums");
  const std::int64_t tiles = graph.num_tiles();
  const std::int64_t share = ceil_div(rows * split, tiles), rows_share = ceil_div(rows, tiles);
  // The tiles behind the last dot product hold the vector, so that every user receives its piece in order.
  const std::int64_t used = ceil_div(rows * split, share), holders = tiles - used;
  for (std::int64_t i = 0; i < holders; ++i)
    graph.set_tile_mapping(vector.slice(columns * i / holders, columns * (i + 1) / holders),
                           static_cast<std::uint32_t>(used + i));
  for (std::int64_t part = 0, number = 0; part < split; ++part)
    for (std::int64_t row = 0; row < rows; ++row, ++number) {
      const auto tile = static_cast<std::uint32_t>(number / share);
      const Interval piece{columns * part / split, columns * (part + 1) / split};
      const Tensor a = matrix[row].slice(piece);
      graph.set_tile_mapping(a, tile);
      graph.set_tile_mapping(partial[row][part], tile);
      graph.set_tile_mapping(
          graph.add_vertex(dots, "Dot", {{"a", a}, {"b", vector.slice(piece)}, {"out", partial[row][part]}}),
          tile);
    }
  for (std::int64_t row = 0; row < rows; ++row) {
    const auto tile = static_cast<std::uint32_t>(row / rows_share);
    graph.set_tile_mapping(out[row], tile);
    graph.set_tile_mapping(graph.add_vertex(sums, "Total", {{"in", partial[row]}, {"out", out[row]}}), tile);
  }
  const Program programs[] = {Sequence{Execute(dots), Execute(sums)}};
  Engine engine(graph, programs, {.threads = 2});
  std::vector<float> m(static_cast<std::size_t>(rows * columns)), v(static_cast<std::size_t>(columns), 2.f),
      result(static_cast<std::size_t>(rows));
  for (std::int64_t i = 0; i < rows * columns; ++i)
    m[static_cast<std::size_t>(i)] = static_cast<float>(i / columns % 8);
  engine.write_tensor<float>("matrix", m);
  engine.write_tensor<float>("vector", v);
  engine.run();
  engine.read_tensor<float>("out", result);
  for (std::int64_t row = 0; row < rows; ++row)
    example::require(result[static_cast<std::size_t>(row)] == static_cast<float>(2 * columns * (row % 8)),
                     "a product is wrong");
  fmt::print("Multiplication result OK\n");
  example::print_steps(engine);
}

static void run() {
  constexpr std::int64_t rows = 10000, columns = 1000;
  for (const Device& device : {gc200_device(), gc2_device()})
    build_and_run(device, rows, columns, plan(device, rows, columns));
}

int main() { return example::guarded(run); }
