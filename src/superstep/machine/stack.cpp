#include "superstep/machine/stack.h"

#include <fmt/format.h>

#include <array>

#include "superstep/base/error.h"

namespace superstep::machine {
namespace {

constexpr std::array<std::string_view, 12> names{
    "pytorch-eager", "pytorch-amp", "torch-compile", "tensorflow", "tensorflow-xla", "mxnet",
    "poptorch",      "poplar",      "cstorch",       "sambaflow",  "groqflow",       "groqapi"};

// Defaults add nothing: the machine as its best library drives it.
constexpr ConstantSpec specs[] = {
    {"launch", "s", "the host's time to launch an operator", 0, 0, 0},
    {"gradient_launch", "s", "the same of an operator of the backward pass", 0, 0, 0},
    {"update_launch", "s", "of each arithmetic operator of an optimizer on one parameter", 0, 0, 0},
    {"cast_launches", "", "launches of casts a matrix operator of the forward pass, in mixed precision", 0, 0,
     0},
    {"fuses", "", "1 where element-wise operators in a row are one kernel", 0, 0, 0},
    {"matrix_share", "", "of the best matrix rate, reached within models", 1, 1, 1},
    {"matrix_share_f32", "", "the same of products in f32 on vector units", 1, 1, 1},
    {"memory_share", "", "of the best memory rate, reached by a stack's kernels", 1, 1, 1},
    {"reads_ahead", "", "1 where samples are prepared while the machine works", 1, 1, 1},
    {"host_decode", "s", "a loader's time to open, decode and cut to size a picture in a file", 0, 0, 0},
    {"host_graph", "s", "a loader's time to join a graph to the others of its batch", 0, 0, 0},
};

}  // namespace

double Stack::value(std::string_view constant_name) const {
  for (const Constant& constant : constants)
    if (constant.name == constant_name) return constant.value;
  throw Error(ErrorCode::internal, fmt::format("stacks have no constant '{}'", constant_name), name);
}

std::span<const ConstantSpec> stack_constants() { return specs; }
std::span<const std::string_view> stack_names() { return names; }

}  // namespace superstep::machine
