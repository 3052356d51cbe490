// Lists that several commands print.
#pragma once

namespace superstep::cli {

void list_generators();
void list_baselines();

}  // namespace superstep::cli
