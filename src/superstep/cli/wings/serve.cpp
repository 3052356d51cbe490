// The program superstep-serve.
#include "superstep/cli/wing.h"

namespace superstep::cli {

void declare_serve(CLI::App& command);
void declare_stream(CLI::App& command);
void declare_account(CLI::App& command);
void declare_demo(CLI::App& command);

const Wing& this_wing() {
  static const Wing wing{"serve",
                         {{"serve", declare_serve},
                          {"stream", declare_stream},
                          {"account", declare_account},
                          {"demo", declare_demo}},
                         bench_serve};
  return wing;
}

}  // namespace superstep::cli
