// Networks of molecules: molecules as they are read, in packs (workload/packed_samples.h), and what their
// tasks do alike.
#pragma once

#include <cmath>
#include <string>
#include <vector>

#include "superstep/baseline/chemistry/molecule_rows.h"
#include "superstep/physics/chemistry/molecule.h"
#include "superstep/workload/packed_samples.h"
#include "superstep/workload/task.h"

namespace superstep::data {
class CsvWriter;
}

namespace superstep::workload {

// A molecule; of a reaction all that take part in it, as one graph.
struct MoleculeSample {
  std::string smiles;  // as it was written
  std::string place;   // where it was read: "molecules.csv, line 7"
  data::Molecule molecule;
  double label = NAN, exact = NAN;  // measured; without noise, of generated ones
  std::size_t row = 0;              // among what was read
};

// Where rows of molecules come from, and what they are called.
struct RowSource {
  std::string generator;
  baseline::LabelColumns columns;  // of files, and fields of the generator
  std::int64_t generated = 0;      // how many, where nobody asks for a number
  const char* thing;               // "polymer"
  const char* label;               // "temperature"
};

// Of the file of the settings, or generated; no more than the settings ask for. Throws Error (bad_file) where
// there are none, or none with a label and labels are wanted.
std::vector<baseline::MoleculeRow> read_rows(const RowSource& source, const TaskSettings& settings);
bool any_labelled(const std::vector<baseline::MoleculeRow>& rows);

// The room that a sample takes in a pack. Throws Error (invalid_argument) at its place where it has more than
// `most` atoms or the edges of a pack.
GraphSize room_of(const MoleculeSample& sample, const PackCapacity& pack, std::int64_t most);
template <class Samples>
std::vector<GraphSize> rooms_of(const Samples& samples, const PackCapacity& pack, std::int64_t most) {
  std::vector<GraphSize> rooms;
  for (const MoleculeSample& each : samples) rooms.push_back(room_of(each, pack, most));
  return rooms;
}

// What a network says of some samples.
struct MoleculeAnswers {
  std::vector<const MoleculeSample*> samples;
  std::vector<std::int64_t> numbers;
  std::vector<double> found;
  std::vector<std::vector<double>> shares;  // of the atoms of each; empty where they were not asked for
  std::vector<double> labels() const;
};

// Its samples are packs: those of the molecules that training learns from, then those of the others. The
// model reads x, edge_index, edge_attr where it has bonds, batch, and maybe more; it says a number of every
// molecule, and what each atom adds. Targets are the labels and how much a place of the pack counts.
class MoleculeTask : public Task {
 public:
  struct Form {
    const char* things;      // "polymers"
    bool with_bonds = true;  // among the inputs
    std::size_t inputs = 4;
  };
  // Of molecules that take `rooms`; the first `training` are learnt from.
  MoleculeTask(const Form& form, std::span<const GraphSize> rooms, std::size_t training,
               const PackCapacity& pack, const TaskSettings& settings);

  std::int64_t size() const override { return packs_.size(); }
  std::int64_t training_count() const override { return packs_.training_count(); }
  bool heeds_folds() const override { return true; }
  bool has_labels() const override;

  void fill(std::span<const std::int64_t> indices, std::uint64_t epoch, bool augment,
            std::span<Tensor> tensors) const override;
  void fill_inputs(std::span<const std::int64_t> indices, std::span<Tensor> inputs,
                   ThreadPool& pool) const override;

  // A row a molecule, in the order in which they came.
  bool has_table() const override { return true; }
  void write_table(const std::filesystem::path& path, std::span<const Tensor> outputs) const override;

  // By the surroundings of atoms.
  bool knows_domain() const override { return true; }
  std::vector<std::string> outside(const Task& training) const override;

  nlohmann::json describe() const override;

 protected:
  virtual const MoleculeSample& sample(std::size_t number) const = 0;
  // Inputs behind those of the graph, of the molecules of a pack, into a row.
  virtual void fill_more(std::span<const std::size_t>, std::size_t /*row*/, std::span<Tensor>) const {}
  virtual std::vector<std::string> columns() const = 0;
  virtual void write_cells(data::CsvWriter& table, std::size_t number, double found) const = 0;

  std::size_t count() const { return count_; }
  std::size_t training_molecules() const { return packs_.training_graphs(); }
  // Of the molecules in some packs.
  std::vector<std::size_t> numbers_in(std::span<const std::int64_t> packs) const;
  // `outputs`: a number a molecule, and the shares of atoms where they are wanted.
  MoleculeAnswers answers(std::span<const std::int64_t> packs, std::span<const Tensor> outputs) const;

 private:
  void fill_targets(std::span<const std::size_t> chosen, std::size_t row, Tensor& label,
                    Tensor& weight) const;

  Form form_;
  std::size_t count_;
  PackedSamples packs_;
  std::string source_;
};

}  // namespace superstep::workload
