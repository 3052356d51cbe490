#include "superstep/physics/imaging/mri_generator.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "superstep/base/file.h"
#include "superstep/base/progress.h"
#include "superstep/file/tiff.h"
#include "superstep/physics/imaging/mri_phantom.h"
#include "superstep/physics/materials/stripes.h"
#include "superstep/physics/sample_memory.h"

namespace superstep::data {
namespace {

enum Purpose : std::uint32_t {
  head_stream,
  slice_stream,
  section_stream,
  structure_stream,
  micrograph_stream
};
constexpr double lowest_slice = -0.6, highest_slice = 0.8;

void write_page(const std::filesystem::path& path, std::span<const std::uint8_t> pixels, int size,
                int channels) {
  TiffWriter file(path, TiffCompression::deflate);
  file.add_page(pixels, size, size, channels);
  file.close();
}

// Planes to interleaved pixels.
std::vector<std::uint8_t> interleaved(std::span<const std::uint8_t> planes) {
  const std::size_t pixels = planes.size() / 3;
  std::vector<std::uint8_t> all;
  for (std::size_t i = 0; i < pixels; ++i)
    for (std::size_t k = 0; k < 3; ++k) all.push_back(planes[k * pixels + i]);
  return all;
}

class MriGenerator final : public Generator {
 public:
  MriGenerator(std::string name, int size, int slices)
      : name_(std::move(name)), size_(size), slices_(slices) {
    fields_ = {{"image",
                ElementType::u8,
                {3, size, size},
                "",
                "T1-weighted, FLAIR, T1-weighted with contrast agent"},
               {"mask", ElementType::u8, {size, size}, "", "1 where the lesion is"},
               {"patient", ElementType::i32, {}, "", "split by patients"},
               {"slice", ElementType::i32, {}, "", "from the lowest"},
               {"lesion_blobs", ElementType::u8, {}, "", "ellipsoids the lesion is made of"},
               {"head",
                ElementType::f32,
                {6},
                "",
                "half width, half length, depth of sulci, ribbon, ventricles, SNR"},
               {"lesion",
                ElementType::f32,
                {4},
                "1, 1, 1, mmol/l",
                "infiltration, necrosis, width of the oedema, agent in the rim"},
               {"bias", ElementType::f32, {}, "", "amplitude of the uneven gain"}};
  }
  std::string_view name() const override { return name_; }
  int version() const override { return 1; }
  std::span<const Field> fields() const override { return fields_; }

  void sample(std::uint64_t seed, std::uint64_t index, std::span<std::byte* const> out) const override {
    const auto slices = static_cast<std::uint64_t>(slices_);
    const std::uint64_t patient = index / slices, number = index % slices;
    RandomStream anatomy(seed, patient, head_stream), noise(seed, index, slice_stream);
    const Head head(anatomy);
    const double height = static_cast<double>(number) / (slices_ - 1);
    const MriSlice slice = draw_slice(head, std::lerp(lowest_slice, highest_slice, height), size_, noise);
    put_all<std::uint8_t>(out[0], slice.pixels);
    put_all<std::uint8_t>(out[1], slice.mask);
    put(out[2], static_cast<std::int32_t>(patient));
    put(out[3], static_cast<std::int32_t>(number));
    put(out[4], static_cast<std::uint8_t>(head.lesion.size()));
    put_all<float>(out[5], std::array{head.half_width, head.half_length, head.fold_depth, head.ribbon,
                                      head.ventricle_size, head.signal_to_noise});
    put_all<float>(out[6], std::array{head.infiltration, head.necrosis, head.oedema, head.rim_contrast});
    put(out[7], static_cast<float>(head.bias_amplitude));
  }
  nlohmann::json parameters() const override {
    return {{"case", "mri"}, {"size", size_}, {"slices", slices_}};
  }

  void write(const WriteRequest& request) const override {
    if (request.path.has_extension()) return Generator::write(request);
    Progress progress("generating unet-256", static_cast<double>(request.samples), "slices");
    const auto block_samples = static_cast<std::uint64_t>(slices_);
    for (std::uint64_t first = 0; first < request.samples; first += block_samples) {
      const auto count = std::min(block_samples, request.samples - first);
      write_patient(request, first / block_samples,
                    generate_in_memory(*this, request.seed, first, count, *request.pool));
      progress.update(static_cast<double>(first + count));
    }
  }

 private:
  void write_patient(const WriteRequest& request, std::uint64_t patient,
                     const std::vector<Tensor>& block) const {
    const std::string name = fmt::format("case_{:04}", patient);
    make_folder(request.path / name);
    const std::size_t plane = static_cast<std::size_t>(size_) * static_cast<std::size_t>(size_);
    const auto count = static_cast<std::size_t>(block[0].shape()[0]);
    for (std::size_t k = 0; k < count; ++k) {
      const auto path = request.path / name / fmt::format("{}_{}", name, k + 1);
      write_page(path.string() + ".tif",
                 interleaved(block[0].as<std::uint8_t>().subspan(3 * k * plane, 3 * plane)), size_, 3);
      const auto mask = block[1].as<std::uint8_t>().subspan(k * plane, plane);
      std::vector<std::uint8_t> white(mask.begin(), mask.end());
      for (std::uint8_t& pixel : white) pixel *= 255;
      write_page(path.string() + "_mask.tif", white, size_, 1);
    }
  }

  std::string name_;
  int size_, slices_;
  std::vector<Field> fields_;
};

class StripesGenerator final : public Generator {
 public:
  StripesGenerator(std::string name, int size) : name_(std::move(name)), size_(size) {
    fields_ = {
        {"image", ElementType::u8, {3, size, size}, "", "micrograph with stripes, three times the same"},
        {"mask", ElementType::u8, {size, size}, "", "1 conducting electrolyte, 0 active material"},
        {"stripes",
         ElementType::f32,
         {max_stripes, 3},
         "px, px, 1",
         "center, width, amplitude; 0 where none"},
        {"grey", ElementType::f32, {4}, "", "conductor, insulator, texture, noise; 1 is white"},
        {"fraction", ElementType::f32, {}, "", "area fraction of the active material"}};
  }
  std::string_view name() const override { return name_; }
  int version() const override { return 1; }
  std::span<const Field> fields() const override { return fields_; }

  void sample(std::uint64_t seed, std::uint64_t index, std::span<std::byte* const> out) const override {
    RandomStream draw(seed, index, section_stream), structure(seed, index, structure_stream),
        beam(seed, index, micrograph_stream);
    const Microstructure section = build_section(structure, size_, draw_section(draw, {}));
    const Micrograph picture = draw_micrograph(beam, section);
    for (std::size_t k = 0; k < 3; ++k)
      put_all<std::uint8_t>(out[0] + k * picture.pixels.size(), picture.pixels);
    put_all<std::uint8_t>(out[1], section.conductor);
    put_stripes(out[2], picture);
    put_all<float>(out[3], std::array{picture.conductor, picture.insulator, picture.texture, picture.noise});
    put(out[4], static_cast<float>(section.insulator_fraction()));
  }
  nlohmann::json parameters() const override { return {{"case", "stripes"}, {"size", size_}}; }

 private:
  std::string name_;
  int size_;
  std::vector<Field> fields_;
};

std::unique_ptr<Generator> make(const char* name, const Options& options) {
  static const std::string cases[] = {"mri", "stripes"};
  const int size = static_cast<int>(options.integer("size", 32, 1024));
  const int slices = static_cast<int>(options.integer("slices", 20, 60));
  if (options.choice("case", cases) == 0) return std::make_unique<MriGenerator>(name, size, slices);
  return std::make_unique<StripesGenerator>(name, size);
}

GeneratorEntry entry_named(const char* name, const char* size,
                           std::unique_ptr<Generator> (*make)(const Options& options)) {
  return {name,
          "brain-MRI-like slices with lesions, or micrographs with ion-beam stripes, and their masks",
          {{"case", "mri", "mri: brain slices; stripes: micrographs"},
           {"size", size, "pixels along a side"},
           {"slices", "36", "slices of a patient, 20 to 60"}},
          make};
}

}  // namespace

GeneratorEntry unet_256_generator() {
  return entry_named("unet-256", "256", [](const Options& options) { return make("unet-256", options); });
}

GeneratorEntry unet_64_generator() {
  return entry_named("unet-64", "64", [](const Options& options) { return make("unet-64", options); });
}

}  // namespace superstep::data
