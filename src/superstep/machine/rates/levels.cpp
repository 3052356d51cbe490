#include "superstep/machine/rates/levels.h"

#include <fmt/format.h>

#include <string_view>

namespace superstep::machine {

void file_call(LawCall& call, const MachineFacts& machine, std::vector<std::string> kinds,
               const std::string& own, const std::string& software) {
  MeasuredCall& to = call.call;
  // Machines of another style work in another way: what is known of GPUs says nothing of them.
  constexpr std::string_view usual = "kernel-by-kernel";
  const std::string style =
      machine.style == usual || machine.style.empty() ? "" : fmt::format(" ({})", machine.style);
  const std::string law = kinds.back();
  for (std::string& kind : kinds) kind += style;
  kinds.back() = fmt::format("{} ({})", law, style.empty() ? std::string(usual) : machine.style);
  kinds.push_back(law);
  to.kinds = std::move(kinds);
  to.factors = {fmt::format("{} | {}", law, machine.vendor()),
                fmt::format("{} | {}", law, machine.generation()), fmt::format("{} | {}", law, machine.id)};
  if (!software.empty()) {
    to.factors.push_back(fmt::format("{} {}", law, software));
    to.factors.push_back(fmt::format("{} {} | {}", law, software, machine.id));
  } else {
    to.factors.push_back(fmt::format("{} | {}", to.kinds.front(), machine.id));
  }
  const std::string neighbours = own.empty() ? to.kinds.front() : own + style;
  to.own = fmt::format("{} | {}", neighbours, machine.id);
  to.relatives = {fmt::format("{} | {}", neighbours, machine.generation()),
                  fmt::format("{} | {}", neighbours, machine.vendor()), neighbours};
}

std::string width_of(const std::string& type) {
  if (type == "fp32" || type == "f32") return "f32";
  if (type == "tf32") return "tf32";
  if (type.find("q4") != std::string::npos || type.find("int4") != std::string::npos) return "4 bits";
  return type == "fp8" || type == "int8" || type == "bfp8" ? "8 bits" : "f16";
}

}  // namespace superstep::machine
