// Running sums of few long lines, which one tile each would have: in blocks, whose sums are summed in turn.
#pragma once

#include "superstep/transform/rewrite.h"

namespace superstep::target::ipu {

bool is_long_scan(const graph::Graph& graph, const graph::Node& node);

// Of every block by itself; of the blocks' sums; and the second added to the first.
void scan_in_blocks(transform::Rewrite& rewrite, const graph::Node& node);

}  // namespace superstep::target::ipu
