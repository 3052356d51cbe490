#include "superstep/api/ports.h"

#include <fmt/format.h>

#include <algorithm>

#include "superstep/base/text.h"

namespace superstep::api {

std::vector<Port> ports_of(std::span<const target::Executable::Port> ports) {
  std::vector<Port> result;
  for (const auto& port : ports) result.push_back({port.name, port.type.element, port.type.shape});
  return result;
}

std::vector<std::string> names_of(std::span<const Port> ports) {
  std::vector<std::string> names;
  for (const Port& port : ports) names.push_back(port.name);
  return names;
}

std::vector<Tensor> in_order(const std::vector<Port>& ports, const NamedValues& values) {
  for (const auto& [name, value] : values) find_port(ports, name, "input");
  std::vector<Tensor> tensors;
  for (const Port& port : ports) {
    const auto found = values.find(port.name);
    if (found == values.end())
      throw Error(ErrorCode::invalid_argument, "no value is given", fmt::format("input '{}'", port.name),
                  fmt::format("it is {}{}", name_of(port.element), to_string(port.shape)));
    tensors.push_back(found->second);
  }
  return tensors;
}

const Port& find_port(std::span<const Port> ports, std::string_view name, const char* kind) {
  const auto found = std::ranges::find(ports, name, &Port::name);
  if (found == ports.end())
    throw Error(ErrorCode::invalid_argument, fmt::format("there is no {} of this name", kind),
                std::string(name), unknown_name_hint(name, names_of(ports)));
  return *found;
}

void require_fits(const Port& port, const Tensor& value) {
  if (value.type() == port.element && value.shape() == port.shape) return;
  throw Error(ErrorCode::invalid_argument,
              fmt::format("is {}{}, not {}{}", name_of(port.element), to_string(port.shape),
                          name_of(value.type()), to_string(value.shape())),
              fmt::format("'{}'", port.name));
}

PlanFacts facts_of(const target::PlanSummary& summary) {
  return {.batch = summary.batch,
          .micro_batch = summary.micro_batch,
          .threads = summary.threads,
          .flops = summary.flops,
          .plan_bytes = summary.plan_bytes,
          .compile_seconds = summary.compile_seconds};
}

}  // namespace superstep::api
