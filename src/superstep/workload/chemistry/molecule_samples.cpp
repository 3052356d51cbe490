#include "superstep/workload/chemistry/molecule_samples.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>

#include "superstep/file/csv.h"
#include "superstep/workload/chemistry/domain.h"
#include "superstep/workload/chemistry/pack_writer.h"
#include "superstep/workload/generated.h"

namespace superstep::workload {
namespace {

std::vector<baseline::MoleculeRow> generated_rows(const RowSource& source, const TaskSettings& settings) {
  const Fields fields = generated_fields(*make_generator(source.generator), settings, source.generated);
  const Tensor &letters = fields.at("smiles"), &labels = fields.at(source.columns.label),
               &exact = fields.at(source.columns.exact);
  const std::int64_t width = letters.shape()[1];
  std::vector<baseline::MoleculeRow> rows;
  for (std::int64_t i = 0; i < letters.shape()[0]; ++i) {
    std::string smiles(reinterpret_cast<const char*>(letters.bytes()) + i * width,
                       static_cast<std::size_t>(width));
    smiles.resize(std::min(smiles.size(), smiles.find('\0')));
    rows.push_back(
        {std::move(smiles), labels.at(i), exact.at(i), fmt::format("generated {} {}", source.thing, i)});
  }
  return rows;
}

}  // namespace

bool any_labelled(const std::vector<baseline::MoleculeRow>& rows) {
  return std::ranges::any_of(rows, [](const baseline::MoleculeRow& row) { return !std::isnan(row.label); });
}

std::vector<baseline::MoleculeRow> read_rows(const RowSource& source, const TaskSettings& settings) {
  std::vector<baseline::MoleculeRow> rows =
      settings.data.empty()
          ? generated_rows(source, settings)
          : baseline::read_molecule_rows(settings.data, source.columns, settings.labels_required);
  if (settings.samples > 0 && static_cast<std::int64_t>(rows.size()) > settings.samples)
    rows.resize(static_cast<std::size_t>(settings.samples));
  if (rows.empty())
    throw Error(ErrorCode::bad_file, fmt::format("has no {}s", source.thing), settings.data.string());
  if (settings.labels_required && !any_labelled(rows))
    throw Error(ErrorCode::bad_file, fmt::format("has no {} with a {}", source.thing, source.label),
                settings.data.string());
  return rows;
}

GraphSize room_of(const MoleculeSample& sample, const PackCapacity& pack, std::int64_t most) {
  const GraphSize room{sample.molecule.atom_count(), 2 * sample.molecule.bond_count()};
  if (room.nodes > most || room.edges > pack.edges)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("has {} atoms and {} bonds, there is room for {} and {}", room.nodes,
                            room.edges / 2, most, pack.edges / 2),
                sample.place,
                fmt::format("build the model with more --set {}=N and --set edges=N",
                            most < pack.nodes ? "largest" : "atoms"));
  return room;
}

std::vector<double> MoleculeAnswers::labels() const {
  std::vector<double> all;
  for (const MoleculeSample* each : samples) all.push_back(each->label);
  return all;
}

MoleculeTask::MoleculeTask(const Form& form, std::span<const GraphSize> rooms, std::size_t training,
                           const PackCapacity& pack, const TaskSettings& settings)
    : form_(form),
      count_(rooms.size()),
      packs_(rooms, training, pack, settings.seed),
      source_(settings.data.empty() ? generated_source(settings) : settings.data.string()) {}

bool MoleculeTask::has_labels() const {
  for (std::size_t i = 0; i < count_; ++i)
    if (std::isnan(sample(i).label)) return false;
  return true;
}

void MoleculeTask::fill(std::span<const std::int64_t> indices, std::uint64_t epoch, bool augment,
                        std::span<Tensor> tensors) const {
  for (std::size_t row = 0; row < indices.size(); ++row) {
    const auto chosen = augment ? packs_.shuffled(indices[row], epoch) : packs_.graphs(indices[row]);
    PackWriter pack(tensors, row, form_.with_bonds);
    for (const std::size_t i : chosen) pack.add(sample(i).molecule);
    fill_more(chosen, row, tensors);
    if (tensors.size() > form_.inputs)
      fill_targets(chosen, row, tensors[form_.inputs], tensors[form_.inputs + 1]);
  }
}

void MoleculeTask::fill_inputs(std::span<const std::int64_t> indices, std::span<Tensor> inputs,
                               ThreadPool&) const {
  fill(indices, 0, false, inputs);
}

// The labels of places that are taken count by as much more as there are places without a molecule.
void MoleculeTask::fill_targets(std::span<const std::size_t> chosen, std::size_t row, Tensor& label,
                                Tensor& weight) const {
  const auto labels = row_of<float>(label, row), weights = row_of<float>(weight, row);
  std::ranges::fill(labels, 0.0f);
  std::ranges::fill(weights, 0.0f);
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    labels[i] = static_cast<float>(sample(chosen[i]).label);
    weights[i] = static_cast<float>(packs_.places_a_graph());
  }
}

std::vector<std::size_t> MoleculeTask::numbers_in(std::span<const std::int64_t> packs) const {
  std::vector<std::size_t> numbers;
  for (const std::int64_t pack : packs) std::ranges::copy(packs_.graphs(pack), std::back_inserter(numbers));
  return numbers;
}

MoleculeAnswers MoleculeTask::answers(std::span<const std::int64_t> packs,
                                      std::span<const Tensor> outputs) const {
  MoleculeAnswers all;
  for (std::size_t row = 0; row < packs.size(); ++row) {
    auto place = static_cast<std::int64_t>(row) * outputs[0].shape()[1];
    auto atom = outputs.size() > 1 ? static_cast<std::int64_t>(row) * outputs[1].shape()[1] : 0;
    for (const std::size_t i : packs_.graphs(packs[row])) {
      all.samples.push_back(&sample(i));
      all.numbers.push_back(static_cast<std::int64_t>(i));
      all.found.push_back(outputs[0].at(place++));
      if (outputs.size() < 2) continue;
      std::vector<double>& shares = all.shares.emplace_back();
      for (int k = 0; k < sample(i).molecule.atom_count(); ++k) shares.push_back(outputs[1].at(atom++));
    }
  }
  return all;
}

void MoleculeTask::write_table(const std::filesystem::path& path, std::span<const Tensor> outputs) const {
  std::vector<std::int64_t> all(static_cast<std::size_t>(size()));
  std::iota(all.begin(), all.end(), std::int64_t{0});
  const MoleculeAnswers said = answers(all, outputs.first(1));
  std::vector<std::size_t> order(said.samples.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, {}, [&](std::size_t i) { return said.samples[i]->row; });
  data::CsvWriter table(path, columns());
  for (const std::size_t i : order) {
    write_cells(table, static_cast<std::size_t>(said.numbers[i]), said.found[i]);
    table.end_row();
  }
  table.close();
}

std::vector<std::string> MoleculeTask::outside(const Task& training) const {
  const auto* other = dynamic_cast<const MoleculeTask*>(&training);
  if (!other) return {};
  Domain domain;
  for (std::size_t i = 0; i < other->training_molecules(); ++i) domain.learn(other->sample(i).molecule);
  std::vector<std::string> notes;
  for (std::size_t i = 0; i < count_; ++i)
    if (const std::string words = domain.outside(sample(i).molecule); !words.empty())
      notes.push_back(fmt::format("{}: '{}' is unlike what was learnt from: {}", sample(i).place,
                                  sample(i).smiles, words));
  return notes;
}

nlohmann::json MoleculeTask::describe() const {
  return {{"source", source_},
          {"samples", size()},
          {"training", training_count()},
          {form_.things, count_},
          {std::string("training_") + form_.things, training_molecules()},
          {"packing", packs_.describe(form_.things, "atoms", "edges")}};
}

}  // namespace superstep::workload
