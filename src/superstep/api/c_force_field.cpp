#include <algorithm>

#include "superstep/api/c_guard.h"

using namespace superstep;
using namespace superstep::api;

struct superstep_force_field {
  ForceField field;
};

superstep_status superstep_force_field_open(const char* run, const int32_t* elements, size_t atoms,
                                            int32_t threads, superstep_force_field** field) {
  return guarded([&] {
    require(run, "run");
    require(elements, "elements");
    require(field, "field");
    *field = nullptr;
    *field = new superstep_force_field{{run, std::vector<int>(elements, elements + atoms), threads}};
  });
}

void superstep_force_field_free(superstep_force_field* field) { delete field; }

superstep_status superstep_force_field_cutoff(const superstep_force_field* field, double* cutoff) {
  return guarded([&] {
    require(field, "field");
    require(cutoff, "cutoff");
    *cutoff = field->field.cutoff();
  });
}

superstep_status superstep_force_field_evaluate(superstep_force_field* field, const double* positions,
                                                const double* cell, double* energy, double* forces,
                                                double* virial) {
  return guarded([&] {
    require(field, "field");
    require(positions, "positions");
    require(energy, "energy");
    require(forces, "forces");
    std::optional<std::array<double, 9>> box;
    if (cell) std::copy_n(cell, 9, box.emplace().begin());
    const Forces found = field->field.evaluate({positions, 3 * field->field.elements().size()}, box);
    if (virial && !found.virial)
      throw Error(ErrorCode::unsupported, "this model gives no virial", "virial", "ask for none: null");
    *energy = found.energy;
    std::ranges::copy(found.forces, forces);
    if (virial) std::ranges::copy(*found.virial, virial);
  });
}
