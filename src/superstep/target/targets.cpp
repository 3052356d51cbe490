// The table of targets, in the order `superstep list targets` shows them.
#include <array>

#include "superstep/base/error.h"
#include "superstep/base/text.h"
#include "superstep/target/cpu/cpu.h"
#include "superstep/target/ipu/ipu.h"
#include "superstep/target/null/null.h"
#include "superstep/target/reference/reference.h"

namespace superstep::target {

std::span<const Target* const> targets() {
  static const std::array<const Target*, 6> table{&cpu::cpu_target(),    &reference_target(),
                                                  &null_target(),        ipu::ipu_targets()[0],
                                                  ipu::ipu_targets()[1], ipu::ipu_targets()[2]};
  return table;
}

const Target& find_target(std::string_view name) {
  std::vector<std::string> names;
  for (const Target* target : targets()) {
    if (target->name() == name) return *target;
    names.emplace_back(target->name());
  }
  throw Error(ErrorCode::invalid_argument, "there is no such target", std::string(name),
              unknown_name_hint(name, names));
}

}  // namespace superstep::target
