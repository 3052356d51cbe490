#include "superstep/transform/training/gradient_mode.h"

#include <fmt/format.h>

#include <algorithm>

#include "superstep/base/error.h"
#include "superstep/base/option_range.h"
#include "superstep/base/text.h"
#include "superstep/base/wildcard.h"

namespace superstep::transform {
namespace {

[[noreturn]] void refuse(std::string_view text, const std::string& why) {
  throw Error(ErrorCode::invalid_argument, why, fmt::format("--gradient {}", text),
              "give reverse, forward:K (K random directions per step) or mixed:LAYER,... (forward for these, "
              "reverse for the rest)");
}

int tangents_from(std::string_view number, std::string_view text) {
  const auto count = whole_number(number);
  if (!count || *count < 1 || *count > most_tangents)
    refuse(text, fmt::format("'{}' is no number of directions from 1 to {}", number, most_tangents));
  return static_cast<int>(*count);
}

std::vector<std::string> layers_from(std::string_view list, std::string_view text) {
  std::vector<std::string> layers;
  while (true) {
    const std::size_t comma = list.find(',');
    const std::string_view layer = list.substr(0, comma);
    if (layer.empty()) refuse(text, "names a layer that is empty");
    layers.emplace_back(layer);
    if (comma == std::string_view::npos) return layers;
    list.remove_prefix(comma + 1);
  }
}

}  // namespace

GradientMode gradient_mode_from_text(std::string_view text) {
  using Kind = GradientMode::Kind;
  const std::size_t colon = text.find(':');
  const std::string_view kind = text.substr(0, colon);
  std::string_view rest = colon == std::string_view::npos ? "" : text.substr(colon + 1);
  if (kind == "reverse" && colon == std::string_view::npos) return {};
  if (kind == "forward") {
    const int tangents = colon == std::string_view::npos ? 1 : tangents_from(rest, text);
    return {.kind = Kind::forward, .tangents = tangents, .layers = {}};
  }
  if (kind != "mixed") refuse(text, "is no way to a gradient");
  GradientMode mode{.kind = Kind::mixed, .layers = {}};
  if (const std::size_t next = rest.find(':'); next != std::string_view::npos) {
    mode.tangents = tangents_from(rest.substr(0, next), text);
    rest.remove_prefix(next + 1);
  }
  if (rest.empty()) refuse(text, "names no layers");
  mode.layers = layers_from(rest, text);
  return mode;
}

std::string to_string(const GradientMode& mode) {
  if (mode.kind == GradientMode::Kind::reverse) return "reverse";
  if (mode.kind == GradientMode::Kind::forward) return fmt::format("forward:{}", mode.tangents);
  return fmt::format("mixed:{}:{}", mode.tangents, join(mode.layers, ","));
}

bool is_forward(const GradientMode& mode, std::string_view parameter) {
  if (mode.kind != GradientMode::Kind::mixed) return mode.kind == GradientMode::Kind::forward;
  const auto names = [&](std::string_view name) {
    return std::ranges::any_of(mode.layers, [&](const std::string& layer) { return fits(layer, name); });
  };
  if (names(parameter)) return true;
  for (std::size_t dot = parameter.find('.'); dot != std::string_view::npos;
       dot = parameter.find('.', dot + 1))
    if (names(parameter.substr(0, dot))) return true;
  return false;
}

}  // namespace superstep::transform
