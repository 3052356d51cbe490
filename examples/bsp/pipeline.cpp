// Two stages on two chips, many micro-batches: while the second chip works on one, the first works on the
// next. Both stages are vertices of one compute set, so that they share a superstep; the copy between the
// chips goes over their links. The same work one stage after the other takes longer.
#include <vector>

#include "examples/bsp/report.h"

using namespace superstep::bsp;

struct Scale : MultiVertex {
  Input<Vector<float>> in;
  Output<Vector<float>> out;
  float factor;
  void fields(FieldList& list) { list("in", in)("out", out)("factor", factor); }
  void compute(unsigned worker) {
    for (std::size_t i = worker; i < in.size(); i += num_workers()) out[i] = factor * in[i];
  }
  // As if each element took 200 cycles of work.
  static PerfEstimate cycles(const VertexFields& f, const Device& device) {
    return 50 + device.workers * 200 * ((f.size("in") + device.workers - 1) / device.workers);
  }
};

constexpr std::int64_t width = 1472 * 12, micro_batches = 32;

struct Machine {
  Graph graph{gc200_device(2)};
  Graph chips[2] = {graph.create_virtual_graph(0, 1472), graph.create_virtual_graph(1472, 2944)};
  Tensor in[2], out[2];
  DataStream source, sink;

  Machine() {
    graph.add_codelets({vertex_class<Scale>("Scale")});
    for (int chip = 0; chip < 2; ++chip) {
      in[chip] = chips[chip].add_variable(Type::f32, {width}, VariableMappingMethod::linear,
                                          fmt::format("in {}", chip));
      out[chip] = chips[chip].add_variable(Type::f32, {width}, VariableMappingMethod::linear,
                                           fmt::format("out {}", chip));
    }
    source = graph.add_host_to_device_fifo("source", Type::f32, width);
    sink = graph.add_device_to_host_fifo("sink", Type::f32, width);
  }

  void stage(int chip, ComputeSet set, float factor) {
    const TileMapping mapping = chips[chip].tile_mapping(in[chip]);
    for (std::uint32_t tile = 0; tile < chips[chip].num_tiles(); ++tile)
      for (const Interval& share : mapping[tile]) {
        const VertexRef vertex = chips[chip].add_vertex(
            set, "Scale", {{"in", in[chip].slice(share)}, {"out", out[chip].slice(share)}});
        chips[chip].set_initial_value(field(vertex, "factor"), factor);
        chips[chip].set_tile_mapping(vertex, tile);
      }
  }

  std::vector<float> run(const Program& program, const char* title, int results) {
    std::vector<float> data(static_cast<std::size_t>(width * micro_batches)),
        result(static_cast<std::size_t>(width * results));
    for (std::int64_t m = 0; m < micro_batches; ++m)
      std::fill_n(data.begin() + m * width, width, static_cast<float>(m));
    const Program programs[] = {program};
    Engine engine(graph, programs, {.threads = 2});
    engine.connect_stream("source", std::span<float>(data));
    engine.connect_stream("sink", std::span<float>(result));
    engine.run();
    fmt::print("{}\n", title);
    example::print_steps(engine);
    return result;
  }
};

static void one_after_the_other() {
  Machine m;
  const ComputeSet first = m.graph.add_compute_set("first stage"),
                   second = m.graph.add_compute_set("second stage");
  m.stage(0, first, 2);
  m.stage(1, second, 3);
  const Program turn =
      Sequence{Copy(m.source, m.in[0], "source"), Execute(first), Copy(m.out[0], m.in[1], "between chips"),
               Execute(second), Copy(m.out[1], m.sink, "sink")};
  const auto result = m.run(Repeat(micro_batches, turn), "one after the other", micro_batches);
  for (std::int64_t i = 0; i < micro_batches; ++i)
    example::require(result[static_cast<std::size_t>(i * width + 7)] == 6.f * static_cast<float>(i),
                     "a result is wrong");
}

static void pipelined() {
  Machine m;
  const ComputeSet both = m.graph.add_compute_set("both stages");
  m.stage(0, both, 2);
  m.stage(1, both, 3);
  m.graph.set_initial_value(m.in[1], 0);  // before the first micro-batch has arrived
  const Program turn = Sequence{Copy(m.source, m.in[0], "source"), Execute(both),
                                Copy(m.out[1], m.sink, "sink"), Copy(m.out[0], m.in[1], "between chips")};
  // One turn more than micro-batches: the first result is of the pipeline's filling.
  const auto result = m.run(Repeat(micro_batches + 1, turn), "pipelined", micro_batches + 1);
  for (std::int64_t i = 0; i < micro_batches; ++i)
    example::require(result[static_cast<std::size_t>((i + 1) * width + 7)] == 6.f * static_cast<float>(i),
                     "a result is wrong");
}

static void run() {
  one_after_the_other();
  pipelined();
}

int main() { return example::guarded(run); }
