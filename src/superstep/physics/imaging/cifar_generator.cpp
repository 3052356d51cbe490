#include "superstep/physics/imaging/cifar_generator.h"

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "superstep/base/progress.h"
#include "superstep/base/system/partial_files.h"
#include "superstep/physics/imaging/cifar_images.h"
#include "superstep/physics/sample_memory.h"

namespace superstep::data {
namespace {

class ClassImageGenerator final : public Generator {
 public:
  ClassImageGenerator(std::string name, int classes, int size, double difficulty)
      : name_(std::move(name)), classes_(classes), size_(size), difficulty_(difficulty) {
    fields_ = {
        {"image", ElementType::u8, {3, size, size}, "", "red, green and blue planes"},
        {"label", ElementType::u8, {}, "", "class"},
        {"palette", ElementType::u8, {}, "", "palette of the shape"},
        {"pose",
         ElementType::f32,
         {5},
         "",
         "x, y, radius, angle in rad, wavelength; 1 is the side of the image"},
        {"hindrance", ElementType::f32, {2}, "", "share behind the occluding rectangle, noise (white is 1)"}};
  }
  std::string_view name() const override { return name_; }
  int version() const override { return 1; }
  std::span<const Field> fields() const override { return fields_; }

  void sample(std::uint64_t seed, std::uint64_t index, std::span<std::byte* const> out) const override {
    RandomStream random(seed, index);
    const ClassImage image = draw_class_image(random, size_, classes_, difficulty_);
    put_all<std::uint8_t>(out[0], image.pixels);
    put(out[1], static_cast<std::uint8_t>(image.label));
    put(out[2], static_cast<std::uint8_t>(image.palette));
    put_all<float>(out[3], std::array{image.x, image.y, image.radius, image.angle, image.wavelength});
    put_all<float>(out[4], std::array{image.occluded, image.noise});
  }
  nlohmann::json parameters() const override {
    return {{"classes", classes_}, {"size", size_}, {"difficulty", difficulty_}};
  }

  void write(const WriteRequest& request) const override {
    if (request.path.extension() != ".bin") return Generator::write(request);
    const std::filesystem::path partial = partial_name(request.path);
    std::ofstream file(partial, std::ios::binary | std::ios::trunc);
    try {
      write_records(request, file);
      file.close();
      if (!file) throw Error(ErrorCode::io, "cannot be written", request.path.string());
      std::filesystem::rename(partial, request.path);
    } catch (...) {
      file.close();
      std::error_code ignored;
      std::filesystem::remove(partial, ignored);
      throw;
    }
  }

 private:
  void write_records(const WriteRequest& request, std::ofstream& file) const {
    Progress progress("generating " + name_, static_cast<double>(request.samples), "samples");
    const std::size_t bytes = 3 * static_cast<std::size_t>(size_) * static_cast<std::size_t>(size_);
    const std::uint64_t block_samples = std::max<std::uint64_t>(64, (16u << 20) / bytes);
    for (std::uint64_t first = 0; first < request.samples && file; first += block_samples) {
      const auto count = std::min(block_samples, request.samples - first);
      const auto block = generate_in_memory(*this, request.seed, first, count, *request.pool);
      for (std::uint64_t k = 0; k < count; ++k) {
        if (classes_ > 10) file.put(static_cast<char>(block[2].as<std::uint8_t>()[k]));
        file.put(static_cast<char>(block[1].as<std::uint8_t>()[k]));
        file.write(reinterpret_cast<const char*>(block[0].bytes()) + k * bytes,
                   static_cast<std::streamsize>(bytes));
      }
      progress.update(static_cast<double>(first + count));
    }
  }

  std::string name_;
  int classes_, size_;
  double difficulty_;
  std::vector<Field> fields_;
};

std::unique_ptr<Generator> make(const std::string& name, const Options& options) {
  return std::make_unique<ClassImageGenerator>(
      name, static_cast<int>(options.integer("classes", 2, most_classes)),
      static_cast<int>(options.integer("size", 16, 1024)), options.number("difficulty", 0, 1));
}

std::vector<OptionSpec> options_of(const char* classes, const char* size) {
  return {{"classes", classes, "number of classes, at most 100"},
          {"size", size, "pixels along a side"},
          {"difficulty", "0.5", "0 (clean, centered) to 1 (noise, occlusion, low contrast)"}};
}

}  // namespace

GeneratorEntry cifar10_generator() {
  return {"cifar10-cnn", "10 classes of textured shapes, 32 x 32 pixels in color", options_of("10", "32"),
          [](const Options& options) { return make("cifar10-cnn", options); }};
}

namespace {

template <const char* const& name>
std::unique_ptr<Generator> make_photographs(const Options& options) {
  return make(name, options);
}

// As large as the model of that name takes them.
template <const char* const& name>
GeneratorEntry photographs(const char* size) {
  return {name, "100 classes of textured, colored shapes, in color", options_of("100", size),
          make_photographs<name>};
}

constexpr const char* resnet50 = "resnet50";
constexpr const char* efficientnet_b0 = "efficientnet-b0";
constexpr const char* efficientnet_b4 = "efficientnet-b4";
constexpr const char* mobilenet_v3_small = "mobilenet-v3-small";
constexpr const char* mobilenet_v3_large = "mobilenet-v3-large";
constexpr const char* vit_base = "vit-base";
constexpr const char* resnext101 = "resnext101";

}  // namespace

GeneratorEntry resnet50_generator() { return photographs<resnet50>("224"); }
GeneratorEntry efficientnet_b0_generator() { return photographs<efficientnet_b0>("224"); }
GeneratorEntry efficientnet_b4_generator() { return photographs<efficientnet_b4>("380"); }
GeneratorEntry mobilenet_v3_small_generator() { return photographs<mobilenet_v3_small>("224"); }
GeneratorEntry mobilenet_v3_large_generator() { return photographs<mobilenet_v3_large>("224"); }
GeneratorEntry vit_base_generator() { return photographs<vit_base>("224"); }
GeneratorEntry resnext101_generator() { return photographs<resnext101>("224"); }

}  // namespace superstep::data
