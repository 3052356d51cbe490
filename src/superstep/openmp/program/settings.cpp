#include "superstep/openmp/program/settings.h"

#include <fmt/format.h>

#include <charconv>
#include <cstdlib>

#include "superstep/base/text.h"

namespace superstep::openmp {
namespace {

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

std::uint32_t count_of(const std::string& word, const std::string& value) {
  std::uint32_t number = 0;
  const auto [end, problem] = std::from_chars(value.data(), value.data() + value.size(), number);
  if (problem != std::errc{} || end != value.data() + value.size() || number == 0)
    throw Error(ErrorCode::invalid_argument, fmt::format("{} is not a number from 1", value),
                "SUPERSTEP_OMP_OPTIONS", word + "=4");
  return number;
}

struct Numbers {
  std::uint32_t units = 1, tiles = 0;
};

void take_word(const std::string& word, Settings& settings, Numbers& numbers) {
  const std::size_t equals = word.find('=');
  const std::string name = word.substr(0, equals),
                    value = equals == std::string::npos ? "" : word.substr(equals + 1);
  if (name == "units") {
    numbers.units = count_of(name, value);
  } else if (name == "tiles") {
    numbers.tiles = count_of(name, value);
  } else if (name == "threads") {
    settings.offload.threads = static_cast<int>(count_of(name, value));
  } else if (word == "check") {
    settings.check = true;
  } else if (word == "timing-only") {
    settings.offload.timing_only = true;
  } else if (word == "withhold-halo-element") {
    settings.offload.withhold_halo_element = true;  // a test of tests
  } else if (word == "launch=each") {
    settings.each = true;
  } else if (word != "launch=captured") {
    throw Error(ErrorCode::invalid_argument, "there is no option " + word, "SUPERSTEP_OMP_OPTIONS",
                "units=N, tiles=N, threads=N, check, timing-only, launch=captured or launch=each");
  }
}

}  // namespace

Settings settings_from_environment() {
  Settings settings;
  Numbers numbers;
  const std::string words = variable("SUPERSTEP_OMP_OPTIONS"), offload = variable("OMP_TARGET_OFFLOAD");
  for (std::size_t begin = 0; begin < words.size();) {
    const std::size_t end = std::min(words.find(',', begin), words.size());
    if (end > begin) take_word(words.substr(begin, end - begin), settings, numbers);
    begin = end + 1;
  }
  const std::string machine = variable("SUPERSTEP_OMP_ON");
  settings.device = bsp::find_device(machine.empty() ? "gc200" : machine, numbers.units);
  if (numbers.tiles > settings.device.tiles_per_ipu)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{} has {} tiles", settings.device.name, settings.device.tiles_per_ipu),
                "SUPERSTEP_OMP_OPTIONS", "give at most so many tiles");
  if (numbers.tiles > 0) settings.device.tiles_per_ipu = numbers.tiles;
  settings.disabled = offload == "disabled" || offload == "DISABLED";
  settings.mandatory = offload == "mandatory" || offload == "MANDATORY";
  settings.report = variable("SUPERSTEP_OMP_REPORT");
  settings.profile = variable("SUPERSTEP_OMP_PROFILE");
  return settings;
}

}  // namespace superstep::openmp
