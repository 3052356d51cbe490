#include <fmt/format.h>

#include <array>

#include "superstep/base/error.h"
#include "superstep/base/option_range.h"
#include "superstep/base/text.h"
#include "superstep/transform/training/training_step.h"

namespace superstep::transform {
namespace {

// A constant of optimisers as users write it, and whose it is: of the kinds that are marked.
struct Constant {
  const char* name;
  double OptimizerSpec::*place;
  NumberRange range;
  bool sgd, adaptive, rmsprop;  // adaptive: adam, adamw, adamax, lamb
};

constexpr double below_one = 0x1.fffffffffffffp-1;  // an average that forgets nothing never learns
const std::array constants = {
    Constant{"momentum", &OptimizerSpec::momentum, {0, below_one}, true, false, true},
    Constant{"beta1", &OptimizerSpec::beta1, {0, below_one}, false, true, false},
    Constant{"beta2", &OptimizerSpec::beta2, {0, below_one}, false, true, true},
    Constant{"epsilon", &OptimizerSpec::epsilon, {.low = 0, .open_low = true}, false, true, true},
    Constant{"weight_decay", &OptimizerSpec::weight_decay, {.low = 0}, true, true, true},
    Constant{"clip", &OptimizerSpec::clip, {.low = 0}, true, true, true},
};

bool has(OptimizerKind kind, const Constant& constant) {
  if (kind == OptimizerKind::sgd) return constant.sgd;
  return kind == OptimizerKind::rmsprop ? constant.rmsprop : constant.adaptive;
}

const Constant& constant_named(std::string_view name, OptimizerKind kind, std::string_view text) {
  std::vector<std::string> known;
  for (const Constant& constant : constants) {
    if (!has(kind, constant)) continue;
    if (constant.name == name) return constant;
    known.emplace_back(constant.name);
  }
  throw Error(ErrorCode::invalid_argument, fmt::format("{} has no constant '{}'", name_of(kind), name),
              fmt::format("--optimizer {}", text), unknown_name_hint(name, known));
}

// Constants of another optimiser are not this one's; how weights decay and gradients are cut is the recipe's.
OptimizerSpec of_kind(OptimizerKind kind, const OptimizerSpec& own) {
  if (kind == own.kind) return own;
  OptimizerSpec spec = usual_optimizer(kind);
  spec.momentum = own.momentum;
  spec.weight_decay = own.weight_decay;
  spec.decay_vectors = own.decay_vectors;
  spec.clip = own.clip;
  return spec;
}

}  // namespace

OptimizerSpec optimizer_from_text(std::string_view text, const OptimizerSpec& own) {
  const std::size_t colon = text.find(':');
  const OptimizerKind kind = optimizer_kind_from_name(text.substr(0, colon));
  OptimizerSpec spec = of_kind(kind, own);
  if (colon == std::string_view::npos) return spec;
  for (const std::string& part : split(text.substr(colon + 1), ',')) {
    const std::size_t equals = part.find('=');
    if (equals == std::string::npos)
      throw Error(ErrorCode::invalid_argument, fmt::format("'{}' is no NAME=VALUE", part),
                  fmt::format("--optimizer {}", text), "write, for example, adamw:weight_decay=0.01");
    const Constant& constant = constant_named(part.substr(0, equals), kind, text);
    const std::string value = part.substr(equals + 1);
    if (const std::string fault = why_not(value, constant.range); !fault.empty())
      throw Error(ErrorCode::invalid_argument, fmt::format("{} {}", constant.name, fault),
                  fmt::format("--optimizer {}", text));
    spec.*constant.place = *finite_number(value);
  }
  return spec;
}

}  // namespace superstep::transform
