#include "superstep/machine/precision.h"

#include "superstep/base/error.h"
#include "superstep/base/text.h"
#include "superstep/op/training/optimizer.h"

namespace superstep::machine {

double Precision::bytes(const graph::Value& value) const {
  const auto elements = static_cast<double>(value.type.shape.element_count());
  ElementType element = value.type.element;
  if (element == ElementType::i64) element = ElementType::i32;  // what accelerators index with
  if (element == ElementType::f32 || element == ElementType::f64) {
    element = data;
    if (value.kind == graph::ValueKind::state)
      element = op::is_optimizer_state(value.name) ? optimizer : weights;
  }
  return elements * static_cast<double>(size_in_bytes(element));
}

Precision precision_from_name(std::string_view name) {
  constexpr auto f16 = ElementType::f16, bf16 = ElementType::bf16, f32 = ElementType::f32;
  const Precision known[] = {{"f32", f32, f32, f32, f32},   {"tf32", f32, f32, f32, f32},
                             {"f16", f16, f32, f16, f32},   {"bf16", bf16, f32, bf16, f32},
                             {"mixed", f16, f32, f32, f32}, {"16.16", f16, f16, f16, f16}};
  std::vector<std::string> names;
  for (const Precision& precision : known) {
    if (precision.name == name) return precision;
    names.push_back(precision.name);
  }
  throw Error(ErrorCode::invalid_argument, "is not a precision", std::string(name),
              unknown_name_hint(name, names));
}

}  // namespace superstep::machine
