#include "superstep/physics/xray/cookiebox_generator.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "superstep/physics/sample_memory.h"
#include "superstep/physics/xray/cookiebox.h"

namespace superstep::data {
namespace {

enum Purpose : std::uint32_t { shot_stream, electron_stream };
constexpr std::size_t stored_spikes = 16;  // a sample has more once in 10^8

class CookieboxGenerator final : public Generator {
 public:
  explicit CookieboxGenerator(const std::string& part) : part_(part) {
    const Shape image{cookiebox_angles, cookiebox_bins};
    fields_ = {{"X_" + part, ElementType::u8, image, "electrons", "histogram of one shot, [angle, energy]"},
               {"Y_" + part, ElementType::f32, image, "",
                "its density; 5 electrons are expected for an integral of 1"},
               {"spikes",
                ElementType::f32,
                {stored_spikes, 3},
                "bins, rad, 1",
                "center, phase, amplitude; 0 where none"},
               {"spike_count", ElementType::u8, {}, "", "number of spikes"},
               {"shot",
                ElementType::f32,
                {4},
                "bins, bins, 1, rad",
                "kick, width, degree and direction of polarization"}};
  }
  std::string_view name() const override { return "cookienetae"; }
  int version() const override { return 1; }
  std::span<const Field> fields() const override { return fields_; }

  void sample(std::uint64_t seed, std::uint64_t index, std::span<std::byte* const> out) const override {
    RandomStream random(seed, index, shot_stream), electrons(seed, index, electron_stream);
    const Shot shot = draw_shot(random);
    const CookieboxDensity density = density_of(shot);
    put_all<std::uint8_t>(out[0], draw_histogram(electrons, density));
    put_all<float>(out[1], density);
    const std::size_t spikes = std::min(shot.spikes.size(), stored_spikes);
    const std::span<float> stored = elements<float>(out[2], 3 * stored_spikes);
    for (std::size_t k = 0; k < spikes; ++k) {
      stored[3 * k] = static_cast<float>(shot.spikes[k].centre);
      stored[3 * k + 1] = static_cast<float>(shot.spikes[k].phase);
      stored[3 * k + 2] = static_cast<float>(shot.spikes[k].amplitude);
    }
    put(out[3], static_cast<std::uint8_t>(spikes));
    put_all<float>(out[4], std::array{shot.kick, shot.width, shot.polarization, shot.direction});
  }
  nlohmann::json parameters() const override { return {{"part", part_}}; }

 private:
  std::string part_;
  std::vector<Field> fields_;
};

std::unique_ptr<Generator> make(const Options& options) {
  static const std::string parts[] = {"train", "test"};
  return std::make_unique<CookieboxGenerator>(parts[options.choice("part", parts)]);
}

}  // namespace

GeneratorEntry cookiebox_generator() {
  return {"cookienetae",
          "electron histograms of angular streaking and the densities behind them",
          {{"part", "train", "the data sets are named X_train, Y_train or X_test, Y_test: train, test"}},
          make};
}

}  // namespace superstep::data
