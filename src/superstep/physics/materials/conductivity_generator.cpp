#include "superstep/physics/materials/conductivity_generator.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "superstep/base/progress.h"
#include "superstep/file/csv.h"
#include "superstep/file/tiff.h"
#include "superstep/physics/materials/conductivity.h"
#include "superstep/physics/materials/microstructure.h"
#include "superstep/physics/materials/stripes.h"
#include "superstep/physics/sample_memory.h"

namespace superstep::data {
namespace {

// Streams of one sample.
enum Purpose : std::uint32_t { draw_stream, structure_stream, micrograph_stream };

struct Settings {
  int size;
  std::string kind;
  SectionRanges section;
  double insulator;
  double sigma_low, sigma_high;
};

// "cathodes.tif" -> "cathodes<suffix>".
std::filesystem::path beside(const std::filesystem::path& path, const std::string& suffix) {
  return path.parent_path() / (path.stem().string() + suffix);
}

// Pages of 0 and 255 in NAME.tif, micrographs in NAME-sem.tif, one line a page in NAME.csv.
void write_images(const Generator& generator, const WriteRequest& request) {
  const int size = static_cast<int>(generator.fields()[0].shape[0]);
  const std::size_t pixels = static_cast<std::size_t>(size) * static_cast<std::size_t>(size);
  const nlohmann::json facts = {{"synthetic", 1},
                                {"generator", generator.name()},
                                {"version", generator.version()},
                                {"seed", request.seed},
                                {"parameters", generator.parameters()}};
  TiffWriter images(request.path, TiffCompression::deflate, request.samples * pixels, facts.dump());
  TiffWriter micrographs(beside(request.path, "-sem.tif"), TiffCompression::none, request.samples * pixels,
                         facts.dump());
  std::vector<std::string> header{"page"};
  for (std::size_t f = 2; f < 9; ++f) header.push_back(generator.fields()[f].name);
  CsvWriter table(beside(request.path, ".csv"), header);
  Progress progress("generating " + std::string(generator.name()), static_cast<double>(request.samples),
                    "samples");
  constexpr std::uint64_t block_samples = 64;
  for (std::uint64_t first = 0; first < request.samples; first += block_samples) {
    const std::uint64_t count = std::min(block_samples, request.samples - first);
    std::vector<Tensor> block = generate_in_memory(generator, request.seed, first, count, *request.pool);
    for (std::uint8_t& pixel : block[0].as<std::uint8_t>()) pixel *= 255;
    for (std::uint64_t k = 0; k < count; ++k) {
      images.add_page(block[0].as<std::uint8_t>().subspan(k * pixels, pixels), size, size);
      micrographs.add_page(block[1].as<std::uint8_t>().subspan(k * pixels, pixels), size, size);
      table.cell(static_cast<std::int64_t>(first + k));
      for (std::size_t f = 2; f < 9; ++f) table.cell(block[f].at(static_cast<std::int64_t>(k)));
      table.end_row();
    }
    progress.update(static_cast<double>(first + count));
  }
  table.close();
  micrographs.close();
  images.close();
}

class ConductivityGenerator final : public Generator {
 public:
  explicit ConductivityGenerator(const Settings& settings) : settings_(settings) {
    const Shape image{settings.size, settings.size};
    fields_ = {
        {"image", ElementType::u8, image, "", "1 conducting electrolyte, 0 insulating active material"},
        {"sem", ElementType::u8, image, "", "micrograph of the section with ion-beam stripes"},
        {"sigma", ElementType::f32, {}, "mS/cm", "conductivity of the conducting phase"},
        {"sigma_eff", ElementType::f32, {}, "mS/cm", "effective conductivity from left to right"},
        {"percolates", ElementType::u8, {}, "", "1 when a conducting path exists, else sigma_eff is 0"},
        {"fraction", ElementType::f32, {}, "", "area fraction of the insulator"},
        {"kind", ElementType::u8, {}, "", "0 inserted particles, 1 thresholded Gaussian field"},
        {"length", ElementType::f32, {}, "px", "median radius of the particles, or 1/e correlation length"},
        {"cracks", ElementType::u8, {}, "", "number of cracks"},
        {"stripes",
         ElementType::f32,
         {max_stripes, 3},
         "px, px, 1",
         "center, width, amplitude; 0 where none"},
        {"grey", ElementType::f32, {4}, "", "conductor, insulator, texture, noise; 1 is white"}};
  }
  std::string_view name() const override { return "conductivity"; }
  int version() const override { return 1; }
  std::span<const Field> fields() const override { return fields_; }

  void sample(std::uint64_t seed, std::uint64_t index, std::span<std::byte* const> out) const override {
    RandomStream draw(seed, index, draw_stream), structure(seed, index, structure_stream);
    const Section section = draw_section(draw, settings_.section);
    const double sigma =
        settings_.sigma_low * std::pow(settings_.sigma_high / settings_.sigma_low, draw.uniform());
    const Microstructure image = build_section(structure, settings_.size, section);
    const Conductivity solved =
        effective_conductivity(image.conductor, image.size, image.size, sigma, sigma * settings_.insulator);
    RandomStream beam(seed, index, micrograph_stream);
    const Micrograph picture = draw_micrograph(beam, image);
    put_all<std::uint8_t>(out[0], image.conductor);
    put_all<std::uint8_t>(out[1], picture.pixels);
    put(out[2], static_cast<float>(sigma));
    put(out[3], static_cast<float>(solved.effective));
    put(out[4], static_cast<std::uint8_t>(solved.percolates));
    put(out[5], static_cast<float>(image.insulator_fraction()));
    put(out[6], static_cast<std::uint8_t>(section.is_field));
    put(out[7], static_cast<float>(section.length_px));
    put(out[8], static_cast<std::uint8_t>(section.cracks));
    put_stripes(out[9], picture);
    put_all<float>(out[10], std::array{picture.conductor, picture.insulator, picture.texture, picture.noise});
  }

  void write(const WriteRequest& request) const override {
    if (request.path.extension() == ".tif" || request.path.extension() == ".tiff")
      write_images(*this, request);
    else
      Generator::write(request);
  }

  nlohmann::json parameters() const override {
    return {{"size", settings_.size},
            {"kind", settings_.kind},
            {"fraction", {settings_.section.fraction_low, settings_.section.fraction_high}},
            {"crack_share", settings_.section.crack_share},
            {"insulator", settings_.insulator},
            {"sigma", {settings_.sigma_low, settings_.sigma_high}}};
  }

 private:
  Settings settings_;
  std::vector<Field> fields_;
};

std::unique_ptr<Generator> make(const Options& options) {
  static const std::string kinds[] = {"mixed", "particles", "field"};
  constexpr double particle_share[] = {0.5, 1, 0};
  Settings settings{};
  settings.size = static_cast<int>(options.integer("size", 16, 4096));
  settings.kind = options.text("kind");
  settings.section.particle_share = particle_share[options.choice("kind", kinds)];
  settings.section.fraction_low = options.number("fraction-low", 0, 0.65);
  settings.section.fraction_high = options.number("fraction-high", settings.section.fraction_low, 0.65);
  settings.section.crack_share = options.number("crack-share", 0, 1);
  settings.insulator = options.number("insulator", 0, 1);
  settings.sigma_low = options.number("sigma-low", 1e-6, 1e6);
  settings.sigma_high = options.number("sigma-high", settings.sigma_low, 1e6);
  return std::make_unique<ConductivityGenerator>(settings);
}

}  // namespace

GeneratorEntry conductivity_generator() {
  return {
      "conductivity",
      "battery cathodes: microstructure, striped micrograph, effective conductivity solved",
      {{"size", "256", "pixels along a side"},
       {"kind", "mixed", "inserted particles, thresholded random field, or both: particles, field, mixed"},
       {"fraction-low", "0.35", "smallest area fraction of the insulator"},
       {"fraction-high", "0.65", "largest area fraction of the insulator (fields: at most 0.5)"},
       {"crack-share", "0.2", "share of the images that have cracks"},
       {"insulator", "0", "conductivity of the insulator relative to the conductor; 0 is perfect"},
       {"sigma-low", "0.1", "smallest conductivity of the conductor, mS/cm (log-uniform)"},
       {"sigma-high", "10", "largest conductivity of the conductor, mS/cm"}},
      make};
}

}  // namespace superstep::data
