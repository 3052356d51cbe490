#include "superstep/physics/xray/autophase.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "superstep/base/file.h"
#include "superstep/base/progress.h"
#include "superstep/file/npy.h"
#include "superstep/file/npy_complex.h"
#include "superstep/file/zip.h"
#include "superstep/physics/fft.h"
#include "superstep/physics/xray/ptycho_diffraction.h"

namespace superstep::data {
namespace {

enum Purpose : std::uint32_t { shape_purpose = 1, displacement_purpose, photon_purpose, noise_purpose };

constexpr std::int64_t most_facets = 20;

// The fields, in the order that sample() fills them.
enum FieldIndex {
  diff,
  amp,
  phase,
  photons,
  diameter,
  facets,
  origin,
  strain,
  polynomial,
  waves,
  scattering,
  dislocation
};

std::vector<data::Field> make_fields(std::int64_t n) {
  const std::int64_t half = n / 2;
  return {{"diff",
           ElementType::f32,
           {n, n, n},
           "",
           "magnitude of the pattern / its largest, frequency zero at n/2"},
          {"amp", ElementType::f32, {half, half, half}, "", "the crystal's shape"},
          {"phase", ElementType::f32, {half, half, half}, "rad", "Q.u inside the crystal, 0 outside"},
          {"photons", ElementType::f32, {}, "", "expected counts of the whole pattern"},
          {"diameter", ElementType::f32, {}, "voxel", "largest distance of two points of the crystal"},
          {"facets",
           ElementType::f32,
           {most_facets, 4},
           "voxel",
           "outward normal (z, y, x) and distance; 0: unused"},
          {"origin", ElementType::f32, {3}, "voxel", "where the distances of the facets start, (z, y, x)"},
          {"strain",
           ElementType::f32,
           {6},
           "",
           "rms (rad); weights of polynomial, random field, relaxation; correlation and relaxation lengths "
           "(voxel)"},
          {"polynomial", ElementType::f32, {16}, "", "coefficients of the second- and third-order monomials"},
          {"waves",
           ElementType::f32,
           {48, 4},
           "rad",
           "random field: wave vectors (z, y, x; rad a voxel) and phases"},
          {"scattering", ElementType::f32, {3}, "", "direction of the scattering vector, (z, y, x)"},
          {"dislocation",
           ElementType::f32,
           {11},
           "",
           "kind (0 none, 1 screw, 2 edge), sign, point (voxel), line, Burgers direction, (z, y, x) each"}};
}

void put(std::byte* out, std::initializer_list<double> values) {
  for (const double value : values) {
    const auto narrow = static_cast<float>(value);
    std::memcpy(out, &narrow, sizeof narrow);
    out += sizeof narrow;
  }
}

void put_vector(std::byte*& out, const VoxelVector& v) {
  put(out, {v[0], v[1], v[2]});
  out += 3 * sizeof(float);
}

void put_crystal(const CrystalShape& shape, std::span<std::byte* const> out) {
  put(out[FieldIndex::diameter], {shape.diameter});
  for (std::size_t i = 0; i < shape.facets.size(); ++i) {
    const Facet& facet = shape.facets[i];
    put(out[FieldIndex::facets] + i * 4 * sizeof(float),
        {facet.normal[0], facet.normal[1], facet.normal[2], facet.distance});
  }
  std::byte* at = out[FieldIndex::origin];
  put_vector(at, shape.origin);
}

void put_displacement(const Displacement& drawn, std::span<std::byte* const> out) {
  put(out[FieldIndex::strain], {drawn.rms, drawn.polynomial_weight, drawn.field_weight,
                                drawn.relaxation_weight, drawn.correlation, drawn.relaxation_depth});
  for (std::size_t i = 0; i < drawn.polynomial.size(); ++i)
    put(out[FieldIndex::polynomial] + i * sizeof(float), {drawn.polynomial[i]});
  for (std::size_t i = 0; i < drawn.waves.size(); ++i) {
    const auto& wave = drawn.waves[i];
    put(out[FieldIndex::waves] + i * 4 * sizeof(float), {wave[0], wave[1], wave[2], wave[3]});
  }
  std::byte* at = out[FieldIndex::scattering];
  put_vector(at, drawn.scattering);
  const Dislocation& line = drawn.dislocation;
  at = out[FieldIndex::dislocation];
  put(at, {static_cast<double>(line.kind), line.sign});
  at += 2 * sizeof(float);
  for (const VoxelVector& v : {line.point, line.line, line.burgers}) put_vector(at, v);
}

// sqrt(counts) / its largest, with frequency zero in the middle.
void put_pattern(const std::vector<float>& counts, const Shape& shape, std::byte* out) {
  thread_local std::map<Shape, std::vector<std::size_t>> targets;
  std::vector<std::size_t>& target = targets[shape];
  if (target.empty()) target = fft_shift_targets(shape);
  const float largest = *std::max_element(counts.begin(), counts.end());
  auto* magnitude = reinterpret_cast<float*>(out);
  for (std::size_t i = 0; i < counts.size(); ++i)
    magnitude[target[i]] = counts[i] > 0 ? std::sqrt(counts[i] / largest) : 0.0f;
}

// |F|^2 scaled to sum to `photons`, frequency zero first.
void expected_counts(const CrystalObject& object, double photons, std::vector<float>& counts) {
  const auto side = static_cast<std::size_t>(2 * object.size);
  thread_local std::vector<std::complex<float>> field;  // kept: pages are dear when they are new
  field.resize(side * side * side);
  counts.resize(field.size());
  far_field<float>(object, field);
  double total = 0;
  for (std::size_t i = 0; i < field.size(); ++i) total += counts[i] = squared(field[i]);
  const auto scale = static_cast<float>(photons / total);
  for (float& count : counts) count *= scale;
}

// One sample of fields in memory: the pattern, and the complex object as pairs.
Tensor pattern_of(const std::vector<Tensor>& fields, std::uint64_t sample) {
  const std::int64_t n = fields[FieldIndex::diff].shape()[1];
  Tensor pattern(ElementType::f32, {n, n, n});
  std::memcpy(pattern.bytes(), fields[FieldIndex::diff].bytes() + sample * pattern.byte_count(),
              pattern.byte_count());
  return pattern;
}

Tensor object_of(const std::vector<Tensor>& fields, std::uint64_t sample) {
  const std::int64_t n = fields[FieldIndex::amp].shape()[1];
  Tensor object(ElementType::f32, {n, n, n, 2});
  const auto voxels = static_cast<std::size_t>(n * n * n);
  const auto amplitude = fields[FieldIndex::amp].as<float>().subspan(sample * voxels, voxels);
  const auto angle = fields[FieldIndex::phase].as<float>().subspan(sample * voxels, voxels);
  for (std::size_t v = 0; v < voxels; ++v) {
    const std::complex<float> value = std::polar(amplitude[v], angle[v]);
    object.as<float>()[2 * v] = value.real();
    object.as<float>()[2 * v + 1] = value.imag();
  }
  return object;
}

}  // namespace

template <class T>
void far_field(const CrystalObject& object, std::span<std::complex<T>> field) {
  const auto n = static_cast<std::size_t>(object.size), side = 2 * n, first = n / 2;
  std::fill(field.begin(), field.end(), std::complex<T>(0));
  for (std::size_t i = 0; i < object.amplitude.size(); ++i) {
    const std::size_t z = first + i / (n * n), y = first + i / n % n, x = first + i % n;
    if (object.amplitude[i] > 0)
      field[(z * side + y) * side + x] = std::polar(T{object.amplitude[i]}, T{object.phase[i]});
  }
  const auto extent = static_cast<std::int64_t>(side);
  thread_fft<T>({extent, extent, extent}).forward(field);
}

template void far_field<float>(const CrystalObject&, std::span<std::complex<float>>);
template void far_field<double>(const CrystalObject&, std::span<std::complex<double>>);

AutophaseGenerator::AutophaseGenerator(const AutophaseSettings& settings)
    : settings_(settings), fields_(make_fields(settings.size)) {
  if (settings.size % 4 != 0 || settings.size < 16)
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format("patterns of {} voxels per side: a multiple of 4 from 16 on is needed", settings.size),
        "autophasenn");
  if (settings.diameter.high * settings.object_size() > settings.object_size() - 2)
    throw Error(ErrorCode::invalid_argument,
                "the largest crystal does not fit into the object with its soft edge", "autophasenn");
}

void AutophaseGenerator::sample(std::uint64_t seed, std::uint64_t index,
                                std::span<std::byte* const> out) const {
  const int n = settings_.object_size();
  RandomStream shape_random(seed, index, shape_purpose),
      displacement_random(seed, index, displacement_purpose);
  const CrystalShape shape =
      draw_crystal(shape_random, n, draw_uniform(shape_random, settings_.diameter) * n);
  const Displacement displacement = draw_displacement(displacement_random, shape, settings_.displacement);
  const CrystalObject object = render(shape, displacement, n);
  RandomStream photon_random(seed, index, photon_purpose), noise_random(seed, index, noise_purpose);
  const double photon_count = draw_log_uniform(photon_random, settings_.photons);
  thread_local std::vector<float> counts;
  expected_counts(object, photon_count, counts);
  if (settings_.noise) count_photons(noise_random, counts, {{}, 0}, counts);

  put_pattern(counts, {settings_.size, settings_.size, settings_.size}, out[FieldIndex::diff]);
  std::memcpy(out[FieldIndex::amp], object.amplitude.data(), object.amplitude.size() * sizeof(float));
  std::memcpy(out[FieldIndex::phase], object.phase.data(), object.phase.size() * sizeof(float));
  put(out[FieldIndex::photons], {photon_count});
  put_crystal(shape, out);
  put_displacement(displacement, out);
}

nlohmann::json AutophaseGenerator::parameters() const {
  const auto pair = [](const Range& range) { return nlohmann::json{range.low, range.high}; };
  return {{"size", settings_.size},
          {"diameter", pair(settings_.diameter)},
          {"photons", pair(settings_.photons)},
          {"noise", settings_.noise},
          {"strain", pair(settings_.displacement.rms)},
          {"correlation", pair(settings_.displacement.correlation)},
          {"dislocations", settings_.displacement.dislocations}};
}

void AutophaseGenerator::write(const WriteRequest& request) const {
  if (request.path.extension() == ".txt") return write_list(request);
  Generator::write(request);
}

void AutophaseGenerator::write_list(const WriteRequest& request) const {
  std::filesystem::path folder = request.path;
  folder.replace_extension();
  make_folder(folder);
  std::string list;
  Progress progress("generating autophasenn", static_cast<double>(request.samples), "samples");
  const auto block = static_cast<std::uint64_t>(8 * request.pool->threads());
  for (std::uint64_t first = 0; first < request.samples; first += block) {
    const std::uint64_t count = std::min(block, request.samples - first);
    const auto fields = generate_in_memory(*this, request.seed, first, count, *request.pool);
    for (std::uint64_t i = 0; i < count; ++i) {
      const auto name = folder / fmt::format("{:06}.npz", first + i);
      write_zip(name, {{"arr_0.npy", format_npy(pattern_of(fields, i))},
                       {"arr_1.npy", format_npy_complex(object_of(fields, i))}});
      list += fmt::format("{}\n", (folder.filename() / name.filename()).string());
    }
    progress.update(static_cast<double>(first + count));
  }
  write_file_atomically(request.path, list);
}

GeneratorEntry autophasenn_generator() {
  return {"autophasenn",
          "Bragg coherent diffraction: strained nanocrystals and their patterns in three dimensions",
          {{"size", "64", "voxels along a side of a pattern; the object has half of them"},
           {"diameter", "0.3125..0.875", "of the crystal / side of the object"},
           {"photons", "1e5..1e7", "counts of a pattern"},
           {"noise", "yes", "Poisson noise, on the intensity"},
           {"strain", "0.1..1.2", "rms phase of the smooth displacement, rad"},
           {"correlation", "0.3..0.8", "length of the random displacement / diameter"},
           {"dislocations", "0.15", "share of crystals with a dislocation"}},
          [](const Options& options) -> std::unique_ptr<Generator> {
            AutophaseSettings settings;
            settings.size = static_cast<int>(options.integer("size", 16, 512));
            settings.diameter = range_option(options, "diameter", 0.05, 1);
            settings.photons = range_option(options, "photons", 1, 1e12);
            settings.noise = options.flag("noise");
            settings.displacement = {range_option(options, "strain", 0, 20),
                                     range_option(options, "correlation", 0.01, 10),
                                     options.number("dislocations", 0, 1)};
            return std::make_unique<AutophaseGenerator>(settings);
          }};
}

}  // namespace superstep::data
