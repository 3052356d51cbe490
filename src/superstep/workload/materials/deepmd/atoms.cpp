// A trained model as a force field of any number of atoms.
#include <fmt/format.h>

#include <algorithm>

#include "superstep/file/atoms/element.h"
#include "superstep/workload/atom_model.h"
#include "superstep/workload/materials/deepmd/deepmd.h"

namespace superstep::workload {
namespace {

class DeepmdAtoms : public AtomModel {
 public:
  DeepmdAtoms(const std::vector<int>& elements, DeepmdSizes sizes) : sizes_(std::move(sizes)) {
    for (std::size_t i = 0; i < elements.size(); ++i)
      if (std::ranges::find(sizes_.elements, elements[i]) == sizes_.elements.end())
        throw Error(ErrorCode::invalid_argument,
                    fmt::format("atom {} ({}) is of an element that the model does not know", i + 1,
                                data::element_symbol(elements[i])));
    for (std::size_t t = 0; t < sizes_.elements.size(); ++t)
      sizes_.atoms[t] = std::max<std::int64_t>(1, std::ranges::count(elements, sizes_.elements[t]));
  }

  std::vector<std::string> room() const override {
    return {fmt::format("atoms={}", fmt::join(sizes_.atoms, ","))};
  }
  std::vector<int> elements() const override { return sizes_.elements; }
  double cutoff() const override { return sizes_.cutoff; }

  void fill(const data::Configuration& atoms, std::span<Tensor> inputs) override {
    frame_ = place_frame({atoms, {}}, "configuration", sizes_);
    fill_frame(frame_, sizes_, 0, inputs);
  }

  data::Labels read(std::span<const Tensor> outputs) const override {
    const FrameAnswer found = answer_of(frame_, sizes_, 0, outputs);
    return {found.energy, found.forces, found.virial};
  }

 private:
  DeepmdSizes sizes_;
  PlacedFrame frame_;
};

}  // namespace

std::unique_ptr<AtomModel> deepmd_atoms(const std::vector<int>& elements, const Options& model) {
  return std::make_unique<DeepmdAtoms>(elements, deepmd_sizes(model));
}

}  // namespace superstep::workload
