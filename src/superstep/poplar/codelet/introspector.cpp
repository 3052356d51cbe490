#include "superstep/poplar/codelet/introspector.h"

#include <limits>
#include <poplar/exceptions.hpp>

#include "superstep/base/text.h"

namespace poplar {
namespace core {

struct FieldFacts {
  VertexFacts vertex;
  const vertex_table::Field* info;
  const superstep::bsp::FieldConnection* connection;
  std::string name;

  bool is_list() const {
    return info->shape == vertex_table::VECTOR_LIST || info->shape == vertex_table::SCALAR_LIST ||
           info->shape == vertex_table::STATE_VECTOR_LIST;
  }
  bool is_vector() const {
    return info->shape == vertex_table::VECTOR || info->shape == vertex_table::STATE_VECTOR;
  }
};

// Which scaled pointers a chip has, and what it takes for "compact": our reading of what is public;
// docs/poplar.md.
layout::Vector resolved(VectorLayout layout, unsigned alignment, bool first_generation) {
  using To = layout::Vector;
  switch (layout) {
    case VectorLayout::NOT_A_VECTOR: return To::NotAVector;
    case VectorLayout::SPAN: return To::Span;
    case VectorLayout::SHORT_SPAN: return To::ShortSpan;
    case VectorLayout::ONE_PTR: return To::OnePtr;
    case VectorLayout::SCALED_PTR32: return To::ScaledPtr32;
    case VectorLayout::SCALED_PTR64: return To::ScaledPtr64;
    case VectorLayout::SCALED_PTR128: return To::ScaledPtr128;
    case VectorLayout::COMPACT_PTR: break;
  }
  if (alignment >= 16) return To::ScaledPtr128;
  if (!first_generation || alignment < 4) return To::OnePtr;
  return alignment >= 8 ? To::ScaledPtr64 : To::ScaledPtr32;
}

layout::VectorList resolved(VectorListLayout layout, bool first_generation) {
  using To = layout::VectorList;
  switch (layout) {
    case VectorListLayout::NOT_A_VECTOR: return To::NotAVector;
    case VectorListLayout::ONE_PTR: return To::OnePtr;
    case VectorListLayout::SCALED_PTR32: return To::ScaledPtr32;
    case VectorListLayout::SCALED_PTR64: return To::ScaledPtr64;
    case VectorListLayout::SCALED_PTR128: return To::ScaledPtr128;
    case VectorListLayout::DELTAN: return To::DeltaN;
    case VectorListLayout::DELTANELEMENTS: return To::DeltaNElements;
    case VectorListLayout::COMPACT_DELTAN: break;
  }
  return first_generation ? To::DeltaN : To::DeltaNElements;
}

std::size_t most_elements(layout::Vector layout) {
  if (layout == layout::Vector::ShortSpan) return (std::size_t{1} << 11) - 1;  // its 11 bits
  return std::numeric_limits<std::uint32_t>::max();
}

}  // namespace core

FieldData::FieldData(std::shared_ptr<const core::FieldFacts> facts) : facts_(std::move(facts)) {}

const std::string& FieldData::name() const { return facts_->name; }
unsigned FieldData::rank() const { return facts_->is_list() ? 2 : facts_->is_vector() ? 1 : 0; }

std::size_t FieldData::size() const {
  if (facts_->is_list()) return facts_->connection->tensors.size();
  return facts_->is_vector() ? elementsOf(0) : 1;
}

// The elements of a vector, and one number, are of size 1.
std::size_t FieldData::getSizeAtIndex(std::size_t i) const {
  if (facts_->is_list()) return elementsOf(i);
  if (i >= size()) throw no_size_specified(fmt::format("field '{}' has no element {}", facts_->name, i));
  return 1;
}

std::size_t FieldData::elementsOf(std::size_t i) const {
  const auto& tensors = facts_->connection->tensors;
  if (i >= tensors.size() || !tensors[i].valid())
    throw no_size_specified(fmt::format("field '{}' has no vector {}", facts_->name, i));
  return static_cast<std::size_t>(tensors[i].num_elements());
}

std::vector<double> FieldData::initialValues(std::size_t vector) const {
  const superstep::bsp::FieldConnection& connection = *facts_->connection;
  if (facts_->info->shape == vertex_table::STATE) return {connection.value};
  std::vector<double> values;
  if (vector < connection.tensors.size() && connection.tensors[vector].valid())
    for (const superstep::bsp::Run& run : connection.tensors[vector].view().runs()) {
      const superstep::bsp::Variable& variable = facts_->vertex.graph.variable(run.variable);
      if (!variable.initial) break;
      for (std::int64_t i = 0; i < run.length; ++i)
        values.push_back(variable.initial->values ? variable.initial->values->at(run.element + i * run.stride)
                                                  : variable.initial->splat);
    }
  if (values.size() != elementsOf(vector))
    throw poplar_error(fmt::format("vertex {}: what field '{}' holds is not known before the program runs",
                                   facts_->vertex.codelet().entry->name, facts_->name));
  return values;
}

double FieldData::firstInitialValue() const {
  const std::vector<double> values = initialValues(0);
  if (values.empty())
    throw poplar_error(
        fmt::format("vertex {}: field '{}' is empty", facts_->vertex.codelet().entry->name, facts_->name));
  return values.front();
}

layout::Vector FieldData::getProfilerVectorLayout(std::size_t level) const {
  const vertex_table::Field& info = *facts_->info;
  const bool outer = facts_->is_list() && level == 0;
  const VectorLayout layout = rank() == 0 ? VectorLayout::NOT_A_VECTOR
                              : outer     ? info.outer_layout
                                          : info.layout;
  return core::resolved(layout, outer ? 4 : info.alignment, facts_->vertex.first_generation);
}

layout::VectorList FieldData::getProfilerVectorListLayout() const {
  return core::resolved(facts_->info->list_layout, facts_->vertex.first_generation);
}

FieldData VertexIntrospector::getFieldInfo(StringRef field) const {
  const std::string name = field;
  const core::CodeletClass& codelet = facts_.codelet();
  const vertex_table::Field* info = codelet.find(name);
  if (!info) throw unknown_field(fmt::format("vertex {} has no field '{}'", codelet.entry->name, name));
  const auto number = static_cast<std::size_t>(facts_.vertex.vertex_class->field_index(name));
  return FieldData(std::make_shared<const core::FieldFacts>(
      core::FieldFacts{facts_, info, &facts_.vertex.fields[number], name}));
}

}  // namespace poplar
