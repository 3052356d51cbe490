// The folder of a DeePMD system: frames of whole atoms, or refused with an Error.
#include <cstdlib>

#include "superstep/base/error.h"
#include "superstep/file/atoms/deepmd_set.h"
#include "tests/fuzz/input_folder.h"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  const InputFolder folder(data, size,
                           {"type.raw", "type_map.raw", "nopbc", "set.000/coord.npy", "set.000/box.npy",
                            "set.000/energy.npy", "set.000/force.npy", "set.000/virial.npy",
                            "set.000/real_atom_types.npy", "set.001/coord.npy", "set.001/box.npy"});
  try {
    for (const auto& frame : superstep::data::read_deepmd_system(folder.path()))
      if (frame.configuration.elements.size() != frame.configuration.positions.size()) std::abort();
  } catch (const superstep::Error&) {
  }
  return 0;
}
