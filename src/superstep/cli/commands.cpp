// The table of subcommands, in the order `superstep --help` shows them.
#include "superstep/cli/commands.h"

#include "superstep/cli/command.h"

namespace superstep::cli {

const std::vector<Command>& commands() {
  static const std::vector<Command> table{
      {"generate", "make data from the physics of a workload", declare_generate},
      {"baseline", "run the conventional method that a workload's model replaces", declare_baseline},
  };
  return table;
}

}  // namespace superstep::cli
