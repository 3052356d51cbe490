#include "superstep/op/core/element_types.h"

namespace superstep::op {

const TypeClass* element_types(Elements elements) {
  using enum ElementType;
  static constexpr ElementType floating_types[] = {f64, f32, f16, bf16};
  static constexpr ElementType integer_types[] = {i64, i32, i16, i8, u64, u32, u16, u8};
  static constexpr ElementType numeric_types[] = {f64, f32, f16, bf16, i64, i32, i16, i8, u64, u32, u16, u8};
  static constexpr ElementType boolean_types[] = {boolean};
  static constexpr ElementType byte_types[] = {i8, u8};
  static constexpr ElementType counter_types[] = {i64};
  static constexpr TypeClass any{"any", all_element_types}, numeric{"numeric", numeric_types},
      integer{"integer", integer_types}, floating{"floating", floating_types},
      boolean_only{"bool", boolean_types}, bytes{"i8, u8", byte_types}, counter{"i64", counter_types};
  switch (elements) {
    case Elements::unstated: return nullptr;
    case Elements::any: return &any;
    case Elements::numeric: return &numeric;
    case Elements::integer: return &integer;
    case Elements::floating: return &floating;
    case Elements::boolean: return &boolean_only;
    case Elements::bytes: return &bytes;
    case Elements::counter: return &counter;
  }
  return nullptr;
}

}  // namespace superstep::op
