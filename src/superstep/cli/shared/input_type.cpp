#include "superstep/cli/shared/input_type.h"

namespace superstep::cli {

void add_input_type_option(CLI::App& command, std::string& type) {
  command
      .add_option("--input-type", type,
                  "u8, f16 or f32: of samples on the host's link (default: the precision's)")
      ->check(CLI::IsMember({"u8", "f16", "f32"}))
      ->type_name("TYPE");
}

int input_bytes_of(const std::string& type) {
  return type == "u8" ? 1 : type == "f16" ? 2 : type == "f32" ? 4 : 0;
}

}  // namespace superstep::cli
