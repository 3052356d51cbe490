// What vertices cost, and what their fields can hold.
#include <limits>
#include <poplar/Graph.hpp>

#include "superstep/base/text.h"
#include "superstep/poplar/codelet/introspector.h"
#include "superstep/poplar/codelet/load_codelets.h"
#include "superstep/poplar/core/guard.h"
#include "superstep/poplar/core/handles.h"
#include "superstep/poplar/replicas/replicas.h"

namespace poplar {
namespace {

VertexPerfEstimate estimated(const PerfEstimateFunc& estimator, const core::bsp::GraphData& graph,
                             const core::bsp::VertexData& vertex, const Target& target) {
  const core::VertexFacts facts{graph, vertex, target.getTargetArchString() == "ipu1"};
  return estimator(VertexIntrospector(facts), target);
}

// The codelet and its field; throws unknown_vertex_type and unknown_field.
const vertex_table::Field& field_of(const core::GraphHandle& handle, StringRef type, StringRef field) {
  const std::string name = core::normal_name(type.cloneAsString());
  const auto codelet = handle.state->classes.find(name);
  if (codelet == handle.state->classes.end()) throw unknown_vertex_type("there is no vertex '" + name + "'");
  const vertex_table::Field* info = codelet->second->find(field.cloneAsString());
  if (!info) throw unknown_field(fmt::format("vertex {} has no field '{}'", name, field.cloneAsString()));
  return *info;
}

bool is_list(const vertex_table::Field& field) {
  return field.shape == vertex_table::VECTOR_LIST || field.shape == vertex_table::SCALAR_LIST ||
         field.shape == vertex_table::STATE_VECTOR_LIST;
}

}  // namespace

void core::use_estimator(GraphState& state, const std::string& type, const Target& target) {
  const auto estimator = state.estimators.find(type);
  if (estimator == state.estimators.end() || !state.classes.contains(type)) return;
  // Asked while the graph is compiled: it is there, and so is the estimator.
  state.graph.set_vertex_estimate(
      type, [&state, target, estimate = &estimator->second](const bsp::VertexData& vertex) {
        const VertexPerfEstimate cost = estimated(*estimate, state.graph.data(), vertex, target);
        return bsp::PerfEstimate(cost.cycles, cost.flops);
      });
}

void Graph::registerPerfEstimator(StringRef type, PerfEstimateFunc estimator) {
  const std::string name = core::normal_name(type.cloneAsString());
  handle().state->estimators[name] = std::move(estimator);
  core::use_estimator(*handle().state, name, getTarget());
}

void Graph::setPerfEstimate(const VertexRef& vertex, std::uint64_t cycles, std::uint64_t flops) {
  if (core::Replicas* replicas = handle().replicas.get())
    return replicas->each([&](Graph& graph, std::size_t replica) {
      graph.setPerfEstimate(replicas->part(vertex, replica), cycles, flops);
    });
  if (vertex.getId() >= getNumVertices())
    throw poplar_error("a vertex that is not there: take Graph::addVertex");
  core::check_is_of(handle(), vertex);
  handle().graph.set_perf_estimate({core::bsp::VertexId(vertex.getId())}, cycles, flops);
}

VertexPerfEstimate Graph::getPerfEstimate(const VertexRef& vertex) const {
  if (vertex.getId() >= getNumVertices())
    throw poplar_error("a vertex that is not there: take Graph::addVertex");
  const core::bsp::GraphData& graph = handle().state->graph.data();
  const core::bsp::VertexData& data = graph.vertices[vertex.getId()];
  if (data.estimate) return {data.estimate->cycles, data.estimate->flops};
  const auto estimator = handle().state->estimators.find(data.vertex_class->name);
  if (estimator == handle().state->estimators.end())
    throw missing_perf_estimate(graph.describe(core::bsp::VertexId(vertex.getId())) +
                                ": call setPerfEstimate or registerPerfEstimator");
  return estimated(estimator->second, graph, data, getTarget());
}

std::size_t Graph::getMaxFieldDim(StringRef type, StringRef name, unsigned dimension) const {
  const vertex_table::Field& field = field_of(handle(), type, name);
  const bool first_generation = getTarget().getTargetArchString() == "ipu1";
  const unsigned rank = is_list(field) ? 2 : field.layout == VectorLayout::NOT_A_VECTOR ? 0 : 1;
  if (dimension >= rank)
    throw index_error(fmt::format("getMaxFieldDim: field '{}' of {} has {} dimensions", name.cloneAsString(),
                                  type.cloneAsString(), rank));
  if (field.list_layout == VectorListLayout::NOT_A_VECTOR || field.shape == vertex_table::STATE_VECTOR) {
    const bool outer = is_list(field) && dimension == 0;
    return core::most_elements(
        core::resolved(outer ? field.outer_layout : field.layout, field.alignment, first_generation));
  }
  // Of the 32 bits that describe a vector some count its elements. How many is not published: our reading.
  if (dimension == 0) return std::numeric_limits<std::uint16_t>::max();
  const layout::VectorList list = core::resolved(field.list_layout, first_generation);
  if (list == layout::VectorList::DeltaN) return (std::size_t{1} << 14) - 1;
  if (list == layout::VectorList::DeltaNElements) return (std::size_t{1} << 12) - 1;
  return std::numeric_limits<std::uint32_t>::max();
}

std::uint64_t Graph::getMaxVertexFieldValue(StringRef type, StringRef name) const {
  const vertex_table::Field& field = field_of(handle(), type, name);
  switch (field.type) {
    case Type::BOOL_ID: return 1;
    case Type::CHAR_ID:
    case Type::SIGNED_CHAR_ID: return std::numeric_limits<std::int8_t>::max();
    case Type::UNSIGNED_CHAR_ID: return std::numeric_limits<std::uint8_t>::max();
    case Type::SHORT_ID: return std::numeric_limits<std::int16_t>::max();
    case Type::UNSIGNED_SHORT_ID: return std::numeric_limits<std::uint16_t>::max();
    case Type::INT_ID:
    case Type::LONG_ID: return std::numeric_limits<std::int32_t>::max();
    case Type::UNSIGNED_INT_ID:
    case Type::UNSIGNED_LONG_ID: return std::numeric_limits<std::uint32_t>::max();
    case Type::LONGLONG_ID: return std::numeric_limits<std::int64_t>::max();
    case Type::UNSIGNED_LONGLONG_ID: return std::numeric_limits<std::uint64_t>::max();
    default:
      throw type_error(fmt::format("getMaxVertexFieldValue: field '{}' of {} is {}", name.cloneAsString(),
                                   type.cloneAsString(), Type(field.type).toString()));
  }
}

}  // namespace poplar
