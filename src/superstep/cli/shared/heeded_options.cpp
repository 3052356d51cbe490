#include "superstep/cli/shared/heeded_options.h"

#include <fmt/format.h>

#include <vector>

#include "superstep/base/error.h"
#include "superstep/base/text.h"

namespace superstep::cli {
namespace {

std::string names_of(unsigned kinds, std::span<const std::string_view> names) {
  std::vector<std::string> chosen;
  for (std::size_t i = 0; i < names.size(); ++i)
    if (kinds >> i & 1u) chosen.emplace_back(names[i]);
  return join(chosen, ", ");
}

}  // namespace

void refuse_unheeded(const CLI::App& command, std::span<const HeededOption> options, unsigned asked,
                     std::span<const std::string_view> names) {
  const auto given = [&](std::string_view option) { return command.count(std::string(option)) > 0; };
  for (const HeededOption& each : options) {
    if (!given(each.option)) continue;
    if ((each.kinds & asked) == 0)
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("is an option of {}, and means nothing for {}", names_of(each.kinds, names),
                              names_of(asked, names)),
                  std::string(each.option), fmt::format("leave {} away", each.option));
    if (!each.only_with.empty() && !given(each.only_with))
      throw Error(ErrorCode::invalid_argument, fmt::format("means nothing without {}", each.only_with),
                  std::string(each.option),
                  fmt::format("give {}, or leave {} away", each.only_with, each.option));
  }
}

void refuse_given(const CLI::App& command, std::string_view reason,
                  std::initializer_list<std::string_view> options) {
  if (reason.empty()) return;
  for (std::string_view option : options)
    if (command.count(std::string(option)) > 0)
      throw Error(ErrorCode::invalid_argument, std::string(reason), std::string(option),
                  fmt::format("leave {} away", option));
}

}  // namespace superstep::cli
