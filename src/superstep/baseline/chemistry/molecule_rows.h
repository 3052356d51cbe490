// Rows of files that label molecules with a number.
#pragma once

#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

namespace superstep::baseline {

// A row as it stands in the file, its molecule not yet looked at.
struct MoleculeRow {
  std::string smiles;
  double label = NAN;  // measured; NaN where there is none
  double exact = NAN;  // without noise, of generated ones
  std::string place;   // in the file: "polymers.csv, line 7"
};

// Which columns, or data sets, hold the numbers.
struct LabelColumns {
  const char* label;
  const char* exact;
};

// A table (.csv, .tsv) or an HDF5 file with `smiles` and these columns; that of `exact` where it is there,
// and without `labels_required` files without labels. Throws Error that names the file.
std::vector<MoleculeRow> read_molecule_rows(const std::filesystem::path& path, const LabelColumns& columns,
                                            bool labels_required = true);

}  // namespace superstep::baseline
