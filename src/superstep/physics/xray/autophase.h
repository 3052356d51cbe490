// Bragg coherent diffraction data: the far field of strained nanocrystals in three dimensions. The network
// that learns from it (Y. Yao et al., npj Comput. Mater. 8, 124, 2022) maps the magnitude of the pattern to
// the crystal's shape and phase.
#pragma once

#include <complex>
#include <span>

#include "superstep/physics/generator.h"
#include "superstep/physics/xray/crystal.h"

namespace superstep::data {

struct AutophaseSettings {
  int size = 64;                         // voxels along a side of a pattern; the object has half of them
  Range diameter{10.0 / 32, 28.0 / 32};  // of the crystal / side of the object
  Range photons{1e5, 1e7};               // a pattern, log-uniform
  bool noise = true;                     // Poisson, on the intensity
  DisplacementSettings displacement;

  int object_size() const { return size / 2; }
};

// The far field of an object: it is placed in the middle of a grid of twice its size and transformed,
// frequency zero first, not scaled. `field` has (2 object.size)^3 elements.
template <class T>
void far_field(const CrystalObject& object, std::span<std::complex<T>> field);

class AutophaseGenerator : public Generator {
 public:
  explicit AutophaseGenerator(const AutophaseSettings& settings);

  std::string_view name() const override { return "autophasenn"; }
  int version() const override { return 1; }
  std::span<const Field> fields() const override { return fields_; }
  void sample(std::uint64_t seed, std::uint64_t index, std::span<std::byte* const> out) const override;
  nlohmann::json parameters() const override;
  // .h5; or .txt, a list of .npz files beside it, one a crystal: arr_0 (the pattern, f32) and arr_1 (the
  // object, complex64).
  void write(const WriteRequest& request) const override;

 private:
  void write_list(const WriteRequest& request) const;

  AutophaseSettings settings_;
  std::vector<Field> fields_;
};

GeneratorEntry autophasenn_generator();

}  // namespace superstep::data
