// How a profile's page calls steps. Lowering names them NODE/OPERATOR#NUMBER[/PART], plans NODE/OPERATOR:
// HOW.
#include <fmt/format.h>

#include <string_view>

#include "superstep/bsp/profile_page.h"

namespace superstep::bsp {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Where the number that tells operators apart begins and ends; both npos: there is none.
struct Number {
  std::size_t begin = std::string::npos, end = std::string::npos;
};

Number number_in(std::string_view name) {
  const std::size_t at = name.rfind('#');
  if (at == name.npos) return {};
  std::size_t end = at + 1;
  while (end < name.size() && is_digit(name[end])) ++end;
  if (end == at + 1 || (end < name.size() && name[end] != '/')) return {};
  return {at, end};
}

std::string with_space(std::string name) {
  if (const std::size_t slash = name.rfind('/'); slash != name.npos) name[slash] = ' ';
  return name;
}

std::string where(ProgramKind kind) {
  switch (kind) {
    case ProgramKind::execute: return "";
    case ProgramKind::stream_in: return ", from the host";
    case ProgramKind::stream_out: return ", to the host";
    case ProgramKind::remote_read: return ", from remote memory";
    case ProgramKind::remote_write: return ", to remote memory";
    default: return fmt::format(", {}", name_of(kind));
  }
}

}  // namespace

std::string operator_of(const StepProfile& step) {
  const Number number = number_in(step.name);
  if (number.begin != std::string::npos) return step.name.substr(0, number.end);
  return step.name.substr(0, step.name.find(": "));
}

std::string shown_operator(const StepProfile& step) {
  const Number number = number_in(step.name);
  if (number.begin != std::string::npos) return with_space(step.name.substr(0, number.begin));
  if (step.name.empty()) return name_of(step.kind);
  if (step.kind != ProgramKind::execute) return step.name + where(step.kind);
  return with_space(step.name.substr(0, step.name.find(": ")));
}

std::string shown_name(const StepProfile& step) {
  const Number number = number_in(step.name);
  std::string part;
  if (number.begin != std::string::npos) {
    if (number.end < step.name.size()) part = step.name.substr(number.end + 1);
  } else if (const std::size_t colon = step.name.find(": "); colon != std::string::npos) {
    part = step.name.substr(colon + 2);
  }
  return shown_operator(step) + (part.empty() ? "" : ": " + part);
}

}  // namespace superstep::bsp
