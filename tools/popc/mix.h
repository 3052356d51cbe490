// What the code of vertices costs on a tile, counted from its instructions.
#pragma once

#include <string>

namespace popc {

// Puts the mixes of the vertices into the module in this file of bitcode: `poplar_mixes_ID`, one for each function of
// `poplar_computes_ID`, which goes. A file that this program cannot read stays as it is, without mixes.
void count_instructions(const std::string& bitcode, const std::string& id);

}  // namespace popc
