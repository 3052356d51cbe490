#include "superstep/onnx/exported/aten.h"

#include <algorithm>

namespace superstep::onnx {

const AtenOperator* find_aten(std::string_view name) {
  for (const auto table : {aten_elementwise(), aten_layers(), aten_movement(), aten_reductions()}) {
    const auto found = std::ranges::find(table, name, &AtenOperator::name);
    if (found != table.end()) return &*found;
  }
  return nullptr;
}

}  // namespace superstep::onnx
