#include "superstep/physics/imaging/digits_generator.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "superstep/base/progress.h"
#include "superstep/file/idx.h"
#include "superstep/physics/imaging/digits.h"
#include "superstep/physics/sample_memory.h"

namespace superstep::data {
namespace {

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  const std::size_t at = text.find(from);
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

class DigitsGenerator final : public Generator {
 public:
  std::string_view name() const override { return "image-autoencoder"; }
  int version() const override { return 1; }
  std::span<const Field> fields() const override {
    static const std::vector<Field> table = {
        {"image", ElementType::u8, {digit_size, digit_size}, "", "0 paper, 255 ink; centered by mass"},
        {"label", ElementType::u8, {}, "", "the digit, 0 to 9"},
        {"drawing", ElementType::f32, {4}, "rad, 1, 1, px", "rotation, shear, scale, width of the pen"}};
    return table;
  }
  void sample(std::uint64_t seed, std::uint64_t index, std::span<std::byte* const> out) const override {
    RandomStream random(seed, index);
    const Digit digit = draw_digit(random);
    put_all<std::uint8_t>(out[0], digit.pixels);
    put(out[1], static_cast<std::uint8_t>(digit.label));
    put_all<float>(out[2], std::array{digit.rotation, digit.shear, digit.scale, digit.width_px});
  }
  nlohmann::json parameters() const override { return nlohmann::json::object(); }

  void write(const WriteRequest& request) const override {
    if (request.path.filename().string().find("idx3-ubyte") == std::string::npos)
      return Generator::write(request);
    const std::string name = request.path.filename().string();
    const auto labels_path =
        request.path.parent_path() / replaced(replaced(name, "idx3", "idx1"), "images", "labels");
    const auto count = static_cast<std::int64_t>(request.samples);
    IdxWriter images(request.path, {count, digit_size, digit_size}), labels(labels_path, {count});
    Progress progress("generating digits", static_cast<double>(count), "samples");
    constexpr std::uint64_t block_samples = 4096;
    for (std::uint64_t first = 0; first < request.samples; first += block_samples) {
      const auto size = std::min(block_samples, request.samples - first);
      const auto block = generate_in_memory(*this, request.seed, first, size, *request.pool);
      images.append(block[0].as<std::uint8_t>());
      labels.append(block[1].as<std::uint8_t>());
      progress.update(static_cast<double>(first + size));
    }
    labels.close();
    images.close();
  }
};

std::unique_ptr<Generator> make(const Options&) { return std::make_unique<DigitsGenerator>(); }

}  // namespace

GeneratorEntry digits_generator() {
  return {"image-autoencoder", "handwriting-like digits of 28 x 28 pixels, from distorted strokes", {}, make};
}

}  // namespace superstep::data
