#include "superstep/machine/machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "superstep/base/text.h"

namespace superstep::machine {
namespace {

constexpr const char* kind_names[] = {"measured", "vendor-code", "datasheet", "derived", "guess"};
constexpr const char* kind_codes[] = {"ME", "VC", "DS", "DE", "GU"};

// FNV-1a.
void add_to_hash(std::uint64_t& hash, std::uint64_t value) {
  for (int i = 0; i < 8; ++i) hash = (hash ^ ((value >> (8 * i)) & 0xff)) * 0x100000001b3u;
}

}  // namespace

const char* name_of(Kind kind) { return kind_names[static_cast<std::size_t>(kind)]; }

bool kind_from_code(std::string_view code, Kind& to) {
  for (std::size_t i = 0; i < std::size(kind_codes); ++i) {
    if (code != kind_codes[i]) continue;
    to = static_cast<Kind>(i);
    return true;
  }
  return false;
}

const Constant& Machine::constant(std::string_view name) const {
  for (const Constant& constant : constants_)
    if (constant.name == name) return constant;
  throw Error(ErrorCode::internal,
              fmt::format("machines of style {} have no constant '{}'", name_of(style_), name), id_);
}

Machine Machine::with(std::string_view name, double value) const {
  Machine changed = *this;
  std::size_t found = 0;
  const auto change = [&](std::vector<Constant>& constants) {
    for (Constant& constant : constants)
      if (constant.name == name) constant.value = value, ++found;
  };
  change(changed.constants_);
  if (driven_by_ != none) change(changed.stacks_[driven_by_].constants);
  if (found == 0) constant(name);
  return changed;
}

bool Machine::has_stack(std::string_view stack_name) const {
  return std::ranges::any_of(stacks_, [&](const Stack& stack) { return stack.name == stack_name; });
}

Machine Machine::driven_by(std::string_view stack_name) const {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < stacks_.size(); ++i) {
    names.push_back(stacks_[i].name);
    if (stack_name != stacks_[i].name) continue;
    Machine driven = *this;
    driven.driven_by_ = i;
    for (const Constant& own : stacks_[i].constants)
      for (Constant& constant : driven.constants_)
        if (constant.name == own.name) constant = own;
    return driven;
  }
  throw Error(ErrorCode::invalid_argument, fmt::format("has no numbers of a stack '{}'", stack_name), id_,
              names.empty() ? "its file has none" : "there are " + join(names, ", "));
}

bool Machine::computes_in(std::string_view precision) const {
  return precisions_.empty() || std::ranges::find(precisions_, precision) != precisions_.end();
}

std::string Machine::digest() const {
  std::uint64_t hash = 0xcbf29ce484222325u;
  const auto add = [&](const std::vector<Constant>& constants) {
    for (const Constant& constant : constants) {
      for (char letter : constant.name) add_to_hash(hash, static_cast<unsigned char>(letter));
      add_to_hash(hash, std::bit_cast<std::uint64_t>(constant.value));
    }
  };
  add(constants_);
  if (stack()) add(stack()->constants);
  if (processor_)
    for (const KernelTime& time : processor_->times)
      for (const double number : {time.flops, time.bytes, time.seconds})
        add_to_hash(hash, std::bit_cast<std::uint64_t>(number));
  return fmt::format("{:016x}", hash);
}

}  // namespace superstep::machine
