// Trained force fields.
#include <nanobind/ndarray.h>
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/vector.h>

#include <algorithm>

#include "python/src/bindings.h"
#include "python/src/watch.h"

namespace superstep::python {
namespace {

namespace nb = nanobind;
using namespace nb::literals;

using Numbers = nb::ndarray<const double, nb::c_contig, nb::device::cpu>;
using Array = nb::ndarray<nb::numpy, double>;

struct HeldForceField : Shared {
  HeldForceField(const std::filesystem::path& run, const std::vector<int>& elements, int threads)
      : field(run, elements, threads) {}

  superstep::ForceField field;
};

Array array_of(std::span<const double> values, std::initializer_list<std::size_t> shape) {
  auto* const kept = new std::vector<double>(values.begin(), values.end());
  return Array(kept->data(), shape,
               nb::capsule(kept, [](void* p) noexcept { delete static_cast<std::vector<double>*>(p); }));
}

// Energy, forces, and the virial or None.
nb::tuple evaluate(HeldForceField& held, const Numbers& positions, const std::optional<Numbers>& cell) {
  require_same_process(held.made_after_forks, "force field");
  std::optional<std::array<double, 9>> box;
  if (cell) std::copy_n(cell->data(), 9, box.emplace().begin());
  const superstep::Forces found = Watch().call([&] {
    const std::lock_guard lock(held.mutex);
    return held.field.evaluate({positions.data(), positions.size()}, box);
  });
  const nb::object virial = found.virial ? nb::cast(array_of(*found.virial, {3, 3})) : nb::none();
  return nb::make_tuple(found.energy, array_of(found.forces, {found.forces.size() / 3, 3}), virial);
}

HeldForceField* open(const std::filesystem::path& run, const std::vector<int>& elements, int threads) {
  return Watch().call([&] { return new HeldForceField(run, elements, threads); });
}

}  // namespace

void bind_force_fields(nb::module_& module) {
  nb::class_<HeldForceField>(module, "ForceField", "A trained force field (superstep.ForceField).")
      .def_static("open", open, "run"_a, "elements"_a, "threads"_a)
      .def("evaluate", evaluate, "positions"_a, "cell"_a.none(), "Energy, forces, virial or None.")
      .def("cutoff", [](const HeldForceField& held) { return held.field.cutoff(); })
      .def("elements_it_knows", [](const HeldForceField& held) { return held.field.elements_it_knows(); });
}

}  // namespace superstep::python
