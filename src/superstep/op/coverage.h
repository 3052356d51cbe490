// What every operator has: the rows of `superstep list ops`.
#pragma once

#include <string>
#include <vector>

#include "superstep/base/text.h"

namespace superstep::op {

struct Coverage {
  std::string name;
  int since_opset = 0;  // 0: ours, beyond ONNX
  bool evaluation = false, vjp = false, jvp = false, decomposition = false;
};

std::vector<Coverage> coverage();  // in the order of op::all()
TextTable coverage_table();        // operator, opset, evaluation, vjp, jvp, decomposition

}  // namespace superstep::op
