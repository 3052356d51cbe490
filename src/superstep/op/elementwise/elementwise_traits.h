// The facts that element-wise operators share.
#pragma once

#include "superstep/op/batch/rules.h"

namespace superstep::op {

// `more`: what an operator states besides, or otherwise.
constexpr Traits elementwise_traits(Elements elements, Traits more = {}) {
  more.elements = elements;
  if (more.work == WorkKind::unstated) more.work = WorkKind::elementwise;
  if (!more.batch) more.batch = batch::elementwise;
  more.constants = Variation::elementwise;
  more.elementwise = true;
  return more;
}

}  // namespace superstep::op
