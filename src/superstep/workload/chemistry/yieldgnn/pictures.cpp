// Predicted against measured yields, what each component does, and the molecules with what each atom adds.
#include "superstep/workload/pictures/pictures.h"

#include <fmt/format.h>

#include <algorithm>

#include "superstep/workload/chemistry/molecule_pictures.h"
#include "superstep/workload/chemistry/yieldgnn/yieldgnn.h"

namespace superstep::workload {
namespace {

struct Means {
  double measured = 0, found = 0, count = 0;
};

void add_role(page::Page& page, const MoleculeAnswers& all, std::span<const Reaction* const> reactions,
              data::Role role) {
  std::map<std::string, Means> means;
  for (std::size_t i = 0; i < reactions.size(); ++i) {
    Means& mean = means[reactions[i]->of_role[static_cast<std::size_t>(role)]];
    mean.measured += reactions[i]->label, mean.found += all.found[i], mean.count += 1;
  }
  std::vector<std::pair<std::string, Means>> order(means.begin(), means.end());
  const auto measured = [](const auto& each) { return each.second.measured / each.second.count; };
  std::ranges::sort(order, std::greater<>(), measured);
  std::vector<std::vector<std::string>> rows;
  for (const auto& [smiles, mean] : order)
    rows.push_back({smiles.empty() ? "none" : smiles, fmt::format("{:.0f}", mean.count),
                    fmt::format("{:.1f}", mean.measured / mean.count),
                    fmt::format("{:.1f}", mean.found / mean.count)});
  page.table({data::role_name(role), "reactions", "measured, %", "predicted, %"}, rows);
}

}  // namespace

std::string present_yields(const MoleculeAnswers& answers, std::span<const Reaction* const> reactions,
                           page::Page& page) {
  present_regression(page, {.quantity = "Yield",
                            .unit = "%",
                            .truth = answers.labels(),
                            .found = answers.found,
                            .samples = answers.numbers});
  page.heading("What components do", 3);
  for (const data::Role role : {data::Role::ligand, data::Role::base, data::Role::solvent})
    add_role(page, answers, reactions, role);
  // One of each kind: a reaction is a wide drawing.
  present_formulas(page, answers,
                   {.about = "What each atom adds to the yield beside descriptors.",
                    .unit = " %",
                    .of_each_kind = 1,
                    .beside_each_other = false},
                   [&](std::size_t i) {
                     return fmt::format("{} measured {:.1f} %, predicted {:.1f} %",
                                        answers.samples[i]->smiles, answers.samples[i]->label,
                                        answers.found[i]);
                   });
  return {};
}

}  // namespace superstep::workload
