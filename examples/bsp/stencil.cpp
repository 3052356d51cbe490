// Heat flow on a plate: the average of four neighbours, again and again. Every tile has a band of rows;
// before each step the engine exchanges the rows next to a band (its halo) because the vertices ask for them.
#include <cmath>
#include <vector>

#include "examples/bsp/report.h"

using namespace superstep::bsp;

// in: the band with one row above and below; out: the band.
struct Average : MultiVertex {
  Vector<Input<Vector<float>>> in;
  Vector<Output<Vector<float>>> out;
  void fields(FieldList& list) { list("in", in)("out", out); }
  void compute(unsigned worker) {
    for (std::size_t r = worker; r < out.size(); r += num_workers()) {
      const std::size_t n = out[r].size();
      for (std::size_t c = 0; c < n; ++c) {
        const bool edge = c == 0 || c + 1 == n;
        out[r][c] =
            edge ? in[r + 1][c] : 0.25f * (in[r][c] + in[r + 2][c] + in[r + 1][c - 1] + in[r + 1][c + 1]);
      }
    }
  }
  // A row a worker at a time, two elements in five bundles.
  static PerfEstimate cycles(const VertexFields& f, const Device& device) {
    const auto rows = static_cast<std::int64_t>(f.count("out"));
    const std::int64_t turns = (rows + device.workers - 1) / device.workers;
    const std::int64_t width = rows > 0 ? f.size("out", 0) : 0;
    return {40 + device.workers * turns * (20 + 5 * ((width + 1) / 2)),
            static_cast<std::uint64_t>(4 * f.size("out"))};
  }
};

static void step(Graph& graph, ComputeSet set, const Tensor& from, const Tensor& to, std::int64_t band) {
  const std::int64_t rows = from.dim(0);
  for (std::int64_t begin = 1; begin < rows - 1; begin += band) {
    const std::int64_t end = std::min(begin + band, rows - 1);
    const VertexRef vertex = graph.add_vertex(
        set, "Average", {{"in", from.slice(begin - 1, end + 1)}, {"out", to.slice(begin, end)}});
    graph.set_tile_mapping(vertex, static_cast<std::uint32_t>((begin - 1) / band));
  }
}

static void run() {
  constexpr std::int64_t rows = 386, columns = 256, band = 6,
                         steps = 100;  // 64 bands of 6 rows, and two borders
  Graph graph(gc200_device());
  graph.add_codelets({vertex_class<Average>("Average")});
  Tensor plates[2];
  for (Tensor& plate : plates) {
    plate = graph.add_variable(Type::f32, {rows, columns}, &plate == plates ? "even" : "odd");
    for (std::int64_t row = 0; row < rows; ++row) {
      const std::int64_t tile = std::clamp<std::int64_t>((row - 1) / band, 0, (rows - 3) / band);
      graph.set_tile_mapping(plate[row], static_cast<std::uint32_t>(tile));
    }
    graph.set_initial_value(plate, 0);
    graph.set_initial_value(plate[0], 100);  // a hot border
  }
  graph.create_host_read("plate", plates[0]);
  const ComputeSet forth = graph.add_compute_set("even to odd"), back = graph.add_compute_set("odd to even");
  step(graph, forth, plates[0], plates[1], band);
  step(graph, back, plates[1], plates[0], band);

  const Program programs[] = {Repeat(steps / 2, Sequence{Execute(forth), Execute(back)})};
  Engine engine(graph, programs, {.threads = 2});
  engine.run();
  std::vector<float> plate(static_cast<std::size_t>(rows * columns));
  engine.read_tensor<float>("plate", plate);
  const auto at = [&](std::int64_t row) {
    return plate[static_cast<std::size_t>(row * columns + columns / 2)];
  };
  // Far from the sides: a plate heated from one side, 100 erfc(row / (2 sqrt(D t))) with D = 1/4, t = 100.
  for (const std::int64_t row : {1, 5, 10, 20}) {
    const double exact = 100 * std::erfc(static_cast<double>(row) / (2 * std::sqrt(0.25 * steps)));
    example::require(std::abs(at(row) - exact) < 0.5, "the temperature is wrong");
    fmt::print("row {:>2}: {:.2f} degrees, {:.2f} in theory\n", row, at(row), exact);
  }
  example::print_steps(engine);
}

int main() { return example::guarded(run); }
