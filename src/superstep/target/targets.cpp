// Every target there is, in the order `superstep list targets` shows them: one line each, the name before
// `_target` of the function that a target's own file defines. Its declaration and its place in the table are
// both made of this line.
#include "superstep/base/error.h"
#include "superstep/base/text.h"
#include "superstep/target/numerics/numerics_target.h"
#include "superstep/target/pjrt/pjrt.h"
#include "superstep/target/target.h"

// clang-format off
#define SUPERSTEP_TARGETS(target) \
  target(cpu)                     \
  target(reference)               \
  target(null)                    \
  target(gc200)                   \
  target(bow)                     \
  target(gc2)                     \
  target(pjrt)
// clang-format on

namespace superstep::target {

#define SUPERSTEP_DECLARED(name) const Target& name##_target();
SUPERSTEP_TARGETS(SUPERSTEP_DECLARED)
#undef SUPERSTEP_DECLARED

std::span<const Target* const> targets() {
#define SUPERSTEP_LISTED(name) &name##_target(),
  static const Target* const table[] = {SUPERSTEP_TARGETS(SUPERSTEP_LISTED)};
#undef SUPERSTEP_LISTED
  return table;
}

const Target* look_for_target(std::string_view name) {
  for (const Target* target : targets())
    if (target->name() == name) return target;
  if (const Target* target = numerics::find_numerics_target(name)) return target;
  return pjrt::find_device_target(name);
}

std::vector<std::string> target_names() {
  std::vector<std::string> names;
  for (const Target* target : targets()) names.emplace_back(target->name());
  for (std::string_view device : pjrt::device_target_names()) names.emplace_back(device);
  return names;
}

const Target& find_target(std::string_view name) {
  if (const Target* target = look_for_target(name)) return *target;
  throw Error(ErrorCode::invalid_argument, "there is no such target", std::string(name),
              unknown_name_hint(name, target_names()));
}

}  // namespace superstep::target

#undef SUPERSTEP_TARGETS
