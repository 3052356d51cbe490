#include "superstep/cli/shared/chip_options.h"

#include <fmt/format.h>

#include <algorithm>

#include "superstep/base/error.h"
#include "superstep/base/text.h"

namespace superstep::cli {

void add_chip_options(CLI::App& command, ChipArguments& arguments) {
  const auto count = CLI::Range(1, 1 << 20);
  command.add_option("--accumulate", arguments.accumulate, "micro-batches per step")
      ->check(count)
      ->capture_default_str();
  command
      .add_option("--replicas", arguments.replicas,
                  "copies of the model (default: 1, or as many as --units holds)")
      ->type_name("N")
      ->check(count);
  command.add_option("--pipeline", arguments.pipeline, "layers of each stage (6,4), or auto")
      ->type_name("A,B,...");
  command.add_option("--units", arguments.units, "chips: stages of an automatic pipeline x replicas")
      ->check(count)
      ->type_name("N");
}

std::vector<int> stage_layers(const std::string& text) {
  std::vector<int> shares;
  for (const std::string& part : split(text, ',')) {
    char* end = nullptr;
    const long share = std::strtol(part.c_str(), &end, 10);
    if (part.empty() || *end != 0 || share < 1 || share > 10000)
      throw Error(ErrorCode::invalid_argument, fmt::format("'{}' is not a number of layers", part),
                  "--pipeline", "as in --pipeline 6,4, or --pipeline auto with --units");
    shares.push_back(static_cast<int>(share));
  }
  return shares;
}

target::Chips chips_of(const ChipArguments& arguments) {
  target::Chips chips{.accumulate = arguments.accumulate, .replicas = std::max(1, arguments.replicas)};
  int stages = 1;
  if (arguments.pipeline == "auto") {
    stages = chips.stages = std::max(1, arguments.units / chips.replicas);
    if (chips.stages < 2)
      throw Error(ErrorCode::invalid_argument, "an automatic pipeline needs two units per replica or more",
                  "--pipeline", "say how many chips there are with --units");
  } else {
    if (!arguments.pipeline.empty()) chips.pipeline = stage_layers(arguments.pipeline);
    stages = std::max(1, static_cast<int>(chips.pipeline.size()));
    if (arguments.replicas == 0) chips.replicas = std::max(1, arguments.units / stages);
  }
  if (arguments.units > 0 && stages * chips.replicas != arguments.units)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{} replicas of {} stages take {} units, and {} are given", chips.replicas,
                            stages, stages * chips.replicas, arguments.units),
                "--units", "leave one of --units, --replicas and --pipeline away, or --pipeline auto");
  return chips;
}

}  // namespace superstep::cli
