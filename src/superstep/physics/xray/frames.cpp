#include "superstep/physics/xray/frames.h"

#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <numbers>

#include "superstep/physics/fft.h"

namespace superstep::data {
namespace {

enum Purpose : std::uint32_t { parameter_purpose = 21, aperture_purpose, noise_purpose };

std::vector<Field> make_fields(const FramesSettings& settings) {
  const std::int64_t n = settings.side;
  std::vector<Field> fields{
      {"frame", ElementType::f32, {n, n}, "counts", "a frame of the detector"},
      {"photons", ElementType::f32, {}, "", "expected counts of the frame, before losses"}};
  if (settings.source == FramesSettings::Source::diffraction)
    fields.push_back({"scan", ElementType::u32, {}, "", "which scan: the group to split by"});
  else
    fields.push_back(
        {"speckle_size", ElementType::f32, {}, "px", "side of the frame / diameter of the aperture"});
  return fields;
}

void put(std::byte* out, float value) { std::memcpy(out, &value, sizeof value); }

}  // namespace

std::vector<float> speckle_intensity(RandomStream& random, int n, double speckle_size, double photons) {
  const auto side = static_cast<std::size_t>(n);
  std::vector<std::complex<float>> field(side * side);
  const double radius = n / speckle_size / 2;
  double lit = 0;
  for (int y = 0; y < n; ++y)
    for (int x = 0; x < n; ++x) {
      if (std::hypot(y - n / 2, x - n / 2) > radius) continue;
      field[static_cast<std::size_t>(y) * side + static_cast<std::size_t>(x)] =
          std::polar(1.0f, static_cast<float>(random.uniform(0, 2 * std::numbers::pi)));
      ++lit;
    }
  thread_fft<float>({n, n}).forward(field);
  const double scale = photons / (lit * n * n);  // Parseval: the squares sum to lit n^2
  std::vector<float> intensity;
  for (const auto& value : field) intensity.push_back(static_cast<float>(scale * squared(value)));
  return intensity;
}

FramesGenerator::FramesGenerator(std::string name, const FramesSettings& settings)
    : name_(std::move(name)),
      settings_(settings),
      diffraction_(name_, settings.diffraction),
      fields_(make_fields(settings)) {}

void FramesGenerator::sample(std::uint64_t seed, std::uint64_t index, std::span<std::byte* const> out) const {
  const std::span<float> frame{reinterpret_cast<float*>(out[0]),
                               static_cast<std::size_t>(fields_[0].shape.element_count())};
  if (settings_.source == FramesSettings::Source::diffraction) {
    const auto scan =
        static_cast<std::uint32_t>(index / static_cast<std::uint64_t>(settings_.diffraction.points()));
    diffraction_.pattern(seed, index, frame);
    put(out[1], static_cast<float>(diffraction_.scan(seed, scan)->photons));
    std::memcpy(out[2], &scan, sizeof scan);
    return;
  }
  RandomStream parameters(seed, index, parameter_purpose), aperture(seed, index, aperture_purpose);
  RandomStream noise(seed, index, noise_purpose);
  const double photons = draw_log_uniform(parameters, settings_.photons);
  const double size = draw_uniform(parameters, settings_.speckle_size);
  const auto intensity = speckle_intensity(aperture, settings_.side, size, photons);
  count_photons(noise, intensity, {{}, settings_.diffraction.threshold}, frame);
  put(out[1], static_cast<float>(photons));
  put(out[2], static_cast<float>(size));
}

nlohmann::json FramesGenerator::parameters() const {
  nlohmann::json json = diffraction_.parameters();
  if (settings_.source == FramesSettings::Source::diffraction) {
    json["source"] = "diffraction";
    return json;
  }
  return {{"source", "speckle"},
          {"side", settings_.side},
          {"photons", {settings_.photons.low, settings_.photons.high}},
          {"speckle_size", {settings_.speckle_size.low, settings_.speckle_size.high}},
          {"threshold", settings_.diffraction.threshold}};
}

GeneratorEntry pca_compress_generator() {
  std::vector<OptionSpec> options = ptycho_options(128, "spiral");
  options.insert(options.begin(),
                 {{"source", "diffraction", "diffraction (of ptychographic scans) or speckle"},
                  {"speckle_size", "2..8", "speckle: side of the frame / diameter of the aperture, px"}});
  return {"pca-compress-128",
          "detector frames to compress: diffraction patterns of ptychographic scans, or speckle", options,
          [](const Options& chosen) -> std::unique_ptr<Generator> {
            const std::string sources[] = {"diffraction", "speckle"};
            FramesSettings settings;
            settings.source = static_cast<FramesSettings::Source>(chosen.choice("source", sources));
            settings.diffraction = read_ptycho_settings(chosen);
            settings.side = settings.diffraction.grid.window;
            settings.photons = settings.diffraction.photons;
            settings.speckle_size = range_option(chosen, "speckle_size", 1, settings.side);
            return std::make_unique<FramesGenerator>("pca-compress-128", settings);
          }};
}

}  // namespace superstep::data
