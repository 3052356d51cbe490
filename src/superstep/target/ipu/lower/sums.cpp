#include "superstep/target/ipu/lower/sums.h"

#include "superstep/bsp/graph/vertex.h"
#include "superstep/machine/ipu/vertex_cycles.h"

namespace superstep::target::ipu {
namespace {

struct AddInto : bsp::MultiVertex {
  bsp::InOut<bsp::Vector<float>> sum;
  bsp::Input<bsp::Vector<float>> addend;
  void fields(bsp::FieldList& list) { list("sum", sum)("addend", addend); }
  void compute(unsigned worker) {
    for (std::size_t i = worker; i < sum.size(); i += num_workers()) sum[i] += addend[i];
  }
};

struct ScaleBy : bsp::MultiVertex {
  bsp::InOut<bsp::Vector<float>> data;
  float factor = 1;
  void fields(bsp::FieldList& list) { list("data", data)("factor", factor); }
  void compute(unsigned worker) {
    for (std::size_t i = worker; i < data.size(); i += num_workers()) data[i] *= factor;
  }
};

constexpr const char* add_class = "AddInto<float>";
constexpr const char* scale_class = "ScaleBy<float>";

// Calls f(tile, the tensor's elements there, where they are in the flattened tensor).
template <class F>
void for_each_tile(const bsp::Graph& graph, const bsp::Tensor& tensor, F&& f) {
  const bsp::TileMapping mapping = graph.tile_mapping(tensor);
  for (std::size_t tile = 0; tile < mapping.size(); ++tile)
    if (!mapping[tile].empty())
      f(static_cast<std::uint32_t>(tile), bsp::concat(tensor.flatten().slices(mapping[tile])), mapping[tile]);
}

// Two vectors, or one and a number, in place (vertex_cycles.h has the fixed parts).
std::uint64_t cycles_of(const machine::ipu::Hardware& hardware, std::int64_t elements, bool two) {
  return static_cast<std::uint64_t>(
      machine::ipu::elementwise_cycles(hardware, elements, hardware.vector_f32, 1, two ? 41 : 20, 1));
}

}  // namespace

bsp::ComputeSet add_into(bsp::Graph& graph, const machine::ipu::Hardware& hardware,
                         std::span<const bsp::Tensor> sums, std::span<const bsp::Tensor> addends,
                         const std::string& name) {
  if (!graph.has_codelet(add_class)) graph.add_codelets({bsp::vertex_class<AddInto>(add_class)});
  const bsp::ComputeSet set = graph.add_compute_set(name);
  for (std::size_t i = 0; i < sums.size(); ++i)
    for_each_tile(graph, sums[i], [&](std::uint32_t tile, const bsp::Tensor& part, const auto& places) {
      const bsp::VertexRef vertex = graph.add_vertex(
          set, add_class, {{"sum", part}, {"addend", bsp::concat(addends[i].flatten().slices(places))}});
      graph.set_tile_mapping(vertex, tile);
      const std::int64_t count = part.num_elements();
      graph.set_perf_estimate(vertex, cycles_of(hardware, count, true), static_cast<std::uint64_t>(count));
    });
  return set;
}

bsp::ComputeSet scale_by(bsp::Graph& graph, const machine::ipu::Hardware& hardware,
                         std::span<const bsp::Tensor> tensors, double factor, const std::string& name) {
  if (!graph.has_codelet(scale_class)) graph.add_codelets({bsp::vertex_class<ScaleBy>(scale_class)});
  const bsp::ComputeSet set = graph.add_compute_set(name);
  for (const bsp::Tensor& tensor : tensors)
    for_each_tile(graph, tensor, [&](std::uint32_t tile, const bsp::Tensor& part, const auto&) {
      const bsp::VertexRef vertex = graph.add_vertex(set, scale_class, {{"data", part}});
      graph.set_initial_value(bsp::field(vertex, "factor"), factor);
      graph.set_tile_mapping(vertex, tile);
      const std::int64_t count = part.num_elements();
      graph.set_perf_estimate(vertex, cycles_of(hardware, count, false), static_cast<std::uint64_t>(count));
    });
  return set;
}

}  // namespace superstep::target::ipu
