// Any text is either read or refused with an Error, and what is read can be written and read again.
#include <cstdlib>
#include <string_view>

#include "superstep/base/error.h"
#include "superstep/physics/chemistry/polymer_groups.h"
#include "superstep/physics/chemistry/smiles.h"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  using namespace superstep::data;
  try {
    const Molecule molecule = parse_smiles({reinterpret_cast<const char*>(data), size});
    if (molecular_formula(parse_smiles(write_smiles(molecule))) != molecular_formula(molecule)) std::abort();
    if (molecule.atom_count() > 200) return 0;  // canonical numbering takes longer than linear time
    if (canonical_smiles(parse_smiles(canonical_smiles(molecule))) != canonical_smiles(molecule))
      std::abort();
    count_groups(molecule);
  } catch (const superstep::Error&) {
  }
  return 0;
}
