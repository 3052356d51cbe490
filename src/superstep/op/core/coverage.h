// Which rules every operator has.
#pragma once

#include <string>
#include <vector>

namespace superstep::op {

struct Coverage {
  std::string name;
  int since_opset = 0;  // 0: ours, beyond ONNX
  bool evaluation = false, vjp = false, jvp = false, decomposition = false;
};

std::vector<Coverage> coverage();  // in the order of op::all()

}  // namespace superstep::op
