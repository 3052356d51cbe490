#include "superstep/data/conductivity_generator.h"

#include <algorithm>
#include <cmath>

#include "superstep/base/progress.h"
#include "superstep/data/conductivity.h"
#include "superstep/data/csv.h"
#include "superstep/data/microstructure.h"
#include "superstep/data/sample_memory.h"
#include "superstep/data/stripes.h"
#include "superstep/data/tiff.h"

namespace superstep::data {
namespace {

// Streams of one sample.
enum Purpose : std::uint32_t { draw_stream, structure_stream, micrograph_stream };
enum class Kind { mixed = -1, particles = 0, field = 1 };

struct Settings {
  int size;
  Kind kind;
  double fraction_low, fraction_high;
  double crack_share;
  double insulator;
  double sigma_low, sigma_high;
};

// The percolation threshold of a thresholded symmetric field in two dimensions is an area fraction of 1/2:
// above it nearly no image conducts.
constexpr double largest_field_fraction = 0.5;

// What is decided about a sample before its structure is drawn.
struct Draw {
  Draw(const Settings& settings, std::uint64_t seed, std::uint64_t index) {
    RandomStream random(seed, index, draw_stream);
    const bool by_field = random.uniform() < 0.5;
    field = settings.kind == Kind::mixed ? by_field : settings.kind == Kind::field;
    length_px = field ? random.uniform(6, 20) : random.uniform(8, 14);
    const double highest =
        field ? std::min(settings.fraction_high, largest_field_fraction) : settings.fraction_high;
    fraction = random.uniform(settings.fraction_low, std::max(settings.fraction_low, highest));
    max_overlap = random.uniform(0, 0.05);
    if (random.uniform() < settings.crack_share) cracks = 1 + static_cast<int>(random.below(8));
    sigma = settings.sigma_low * std::pow(settings.sigma_high / settings.sigma_low, random.uniform());
  }
  bool field;
  double length_px, fraction, max_overlap, sigma;
  int cracks = 0;
};

Microstructure draw_structure(const Draw& draw, int size, std::uint64_t seed, std::uint64_t index) {
  RandomStream random(seed, index, structure_stream);
  Microstructure image = draw.field ? threshold_field(random, size, draw.length_px, draw.fraction)
                                    : pack_particles(random, size,
                                                     {.fraction = draw.fraction,
                                                      .median_radius_px = draw.length_px,
                                                      .max_overlap = draw.max_overlap});
  add_cracks(random, image, draw.cracks);
  return image;
}

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
         "centre, width, amplitude; 0 where none"},
        {"grey", ElementType::f32, {4}, "", "conductor, insulator, texture, noise; 1 is white"}};
  }
  std::string_view name() const override { return "conductivity"; }
  int version() const override { return 1; }
  std::span<const Field> fields() const override { return fields_; }

  void sample(std::uint64_t seed, std::uint64_t index, std::span<std::byte* const> out) const override {
    const Draw draw(settings_, seed, index);
    const Microstructure image = draw_structure(draw, settings_.size, seed, index);
    const Conductivity solved = effective_conductivity(image.conductor, image.size, image.size, draw.sigma,
                                                       draw.sigma * settings_.insulator);
    RandomStream random(seed, index, micrograph_stream);
    const Micrograph picture = draw_micrograph(random, image);
    put_all<std::uint8_t>(out[0], image.conductor);
    put_all<std::uint8_t>(out[1], picture.pixels);
    put(out[2], static_cast<float>(draw.sigma));
    put(out[3], static_cast<float>(solved.effective));
    put(out[4], static_cast<std::uint8_t>(solved.percolates));
    put(out[5], static_cast<float>(image.insulator_fraction()));
    put(out[6], static_cast<std::uint8_t>(draw.field));
    put(out[7], static_cast<float>(draw.length_px));
    put(out[8], static_cast<std::uint8_t>(draw.cracks));
    float* stripe = reinterpret_cast<float*>(out[9]);
    for (const Stripe& s : picture.stripes)
      for (double value : {s.centre_px, s.width_px, s.amplitude}) *stripe++ = static_cast<float>(value);
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
            {"kind", settings_.kind == Kind::mixed   ? "mixed"
                     : settings_.kind == Kind::field ? "field"
                                                     : "particles"},
            {"fraction", {settings_.fraction_low, settings_.fraction_high}},
            {"crack_share", settings_.crack_share},
            {"insulator", settings_.insulator},
            {"sigma", {settings_.sigma_low, settings_.sigma_high}}};
  }

 private:
  Settings settings_;
  std::vector<Field> fields_;
};

std::unique_ptr<Generator> make(const Options& options) {
  static const std::string kinds[] = {"mixed", "particles", "field"};
  Settings settings{};
  settings.size = static_cast<int>(options.integer("size", 16, 4096));
  settings.kind = static_cast<Kind>(options.choice("kind", kinds) - 1);
  settings.fraction_low = options.number("fraction-low", 0, 0.65);
  settings.fraction_high = options.number("fraction-high", settings.fraction_low, 0.65);
  settings.crack_share = options.number("crack-share", 0, 1);
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
