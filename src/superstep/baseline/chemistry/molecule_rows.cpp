#include "superstep/baseline/chemistry/molecule_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "superstep/base/error.h"
#include "superstep/file/csv.h"
#include "superstep/file/form.h"
#include "superstep/file/source/array_file.h"
#include "superstep/physics/row_writer.h"

namespace superstep::baseline {
namespace {

std::vector<MoleculeRow> read_table(const std::filesystem::path& path, const LabelColumns& columns,
                                    bool labels_required) {
  data::CsvReader table(path);
  const std::size_t smiles = table.column("smiles");
  const auto column = [&](const char* name, bool required) -> std::optional<std::size_t> {
    if (!required && !table.has_column(name)) return std::nullopt;
    return table.column(name);
  };
  const auto label = column(columns.label, labels_required), exact = column(columns.exact, false);
  std::vector<MoleculeRow> rows;
  while (table.next())
    rows.push_back({.smiles = table.text(smiles),
                    .label = label ? table.number(*label) : NAN,
                    .exact = exact ? table.number(*exact) : NAN,
                    .place = fmt::format("{}, line {}", path.string(), table.line())});
  return rows;
}

std::vector<MoleculeRow> read_hdf5(const std::filesystem::path& path, const LabelColumns& columns,
                                   bool labels_required) {
  const data::ArrayFile file(path);
  const std::int64_t any[] = {-1, -1};
  const Tensor letters = file.read("smiles", ElementType::u8, any);
  const std::int64_t count = letters.shape()[0], width = letters.shape()[1];
  const auto numbers = [&](const char* name, bool required) -> std::optional<Tensor> {
    if (!required && !file.contains(name)) return std::nullopt;
    return file.read(name, ElementType::f64, std::span(&count, 1));
  };
  const auto label = numbers(columns.label, labels_required), exact = numbers(columns.exact, false);
  std::vector<MoleculeRow> rows;
  for (std::int64_t row = 0; row < count; ++row) {
    std::string smiles(reinterpret_cast<const char*>(letters.bytes()) + row * width,
                       static_cast<std::size_t>(width));
    smiles.resize(std::min(smiles.size(), smiles.find('\0')));
    rows.push_back({.smiles = std::move(smiles),
                    .label = label ? label->at(row) : NAN,
                    .exact = exact ? exact->at(row) : NAN,
                    .place = fmt::format("{}, row {}", path.string(), row)});
  }
  return rows;
}

}  // namespace

std::vector<MoleculeRow> read_molecule_rows(const std::filesystem::path& path, const LabelColumns& columns,
                                            bool labels_required) {
  return data::is_text(path, {".csv", ".tsv", ".tab", ".txt"}) ? read_table(path, columns, labels_required)
                                                               : read_hdf5(path, columns, labels_required);
}

}  // namespace superstep::baseline
