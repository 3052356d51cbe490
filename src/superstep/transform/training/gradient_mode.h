// Where a training step's gradients come from: backwards through the graph, or from directional derivatives
// of one forward pass.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace superstep::transform {

struct GradientMode {
  enum class Kind : std::uint8_t {
    reverse,  // exact, of stored activations
    forward,  // estimated along random directions (forward_gradient.h)
    mixed,    // forward for the parameters of some layers, reverse for the others
  };
  Kind kind = Kind::reverse;
  int tangents = 1;                 // random directions of a step
  std::vector<std::string> layers;  // mixed: those of forward mode, * and ? in them
  friend bool operator==(const GradientMode&, const GradientMode&) = default;
};

inline constexpr int most_tangents = 1024;

// "reverse", "forward:4", "mixed:conv1,head*", "mixed:4:conv1,head*"; without a number one tangent. Throws
// Error (invalid_argument) on anything else.
GradientMode gradient_mode_from_text(std::string_view text);
std::string to_string(const GradientMode& mode);

// Whether the gradient of a parameter is estimated: a layer is a parameter's name, whole or up to one of its
// dots ("conv1" of "conv1.weight").
bool is_forward(const GradientMode& mode, std::string_view parameter);

}  // namespace superstep::transform
