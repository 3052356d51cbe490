// The program superstep-extra.
#include "superstep/cli/wing.h"

namespace superstep::cli {

void declare_workflow(CLI::App& command);
void declare_design(CLI::App& command);
void declare_md(CLI::App& command);
void declare_openmp(CLI::App& command);
void declare_place(CLI::App& command);
void declare_run(CLI::App& command);
void declare_search(CLI::App& command);
void declare_study(CLI::App& command);

const Wing& this_wing() {
  static const Wing wing{"extra",
                         {{"workflow", declare_workflow},
                          {"design", declare_design},
                          {"md", declare_md},
                          {"openmp", declare_openmp},
                          {"place", declare_place},
                          {"run", declare_run},
                          {"search", declare_search},
                          {"study", declare_study}}};
  return wing;
}

}  // namespace superstep::cli
