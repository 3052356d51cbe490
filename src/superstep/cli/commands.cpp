// The table of subcommands, in the order `superstep --help` shows them.
#include "superstep/cli/command.h"

namespace superstep::cli {

const std::vector<Command>& commands() {
  static const std::vector<Command> table{};
  return table;
}

}  // namespace superstep::cli
