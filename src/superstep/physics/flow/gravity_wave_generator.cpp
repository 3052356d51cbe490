#include "superstep/physics/flow/gravity_wave_generator.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "superstep/physics/flow/middle_atmosphere.h"
#include "superstep/physics/sample_memory.h"

namespace superstep::data {
namespace {

enum Purpose : std::uint32_t { air_stream, source_stream };

void round_to_f32(std::vector<double>& values) {
  for (double& value : values) value = static_cast<float>(value);
}

std::vector<double> a_day(std::vector<double> drag) {
  for (double& value : drag) value *= seconds_a_day;
  return drag;
}

class GravityWaveGenerator final : public Generator {
 public:
  GravityWaveGenerator(const WaveGrid& grid, const WaveSpectrum& spectrum)
      : grid_(grid), spectrum_(spectrum) {
    const Shape layers{grid.levels};
    fields_ = {{"u", ElementType::f32, layers, "m/s", "wind eastwards, of layers from the ground up"},
               {"v", ElementType::f32, layers, "m/s", "wind northwards"},
               {"temperature", ElementType::f32, layers, "K", "of the same layers"},
               {"source",
                ElementType::f32,
                {2},
                "mPa, m/s",
                "flux of all waves at the launch, width of their spectrum of phase speeds"},
               {"drag_u", ElementType::f32, layers, "m/s/day", "what the waves do to the wind eastwards"},
               {"drag_v", ElementType::f32, layers, "m/s/day", "what they do to the wind northwards"},
               {"latitude", ElementType::f32, {}, "degrees", "of the column"},
               {"season", ElementType::f32, {}, "", "1: winter of the north, -1: of the south"}};
  }
  std::string_view name() const override { return "gravity-wave-drag"; }
  int version() const override { return 1; }
  std::span<const Field> fields() const override { return fields_; }

  void sample(std::uint64_t seed, std::uint64_t index, std::span<std::byte* const> out) const override {
    RandomStream air(seed, index, air_stream), waves(seed, index, source_stream);
    AirColumn column = draw_air_column(air, grid_);
    for (std::vector<double>* profile : {&column.u, &column.v, &column.temperature}) round_to_f32(*profile);
    // 1 to 6 mPa, every factor as often as any other; storms and jets send out slower and faster waves.
    const auto flux = static_cast<float>(std::exp(waves.uniform(0, std::log(6.0))));
    const auto width = static_cast<float>(waves.uniform(15, 40));
    const WaveDrag drag = wave_drag(grid_, spectrum_, {.flux = flux * 1e-3, .width = width},
                                    {column.u, column.v, column.temperature});
    put_all<float>(out[0], column.u);
    put_all<float>(out[1], column.v);
    put_all<float>(out[2], column.temperature);
    put_all<float>(out[3], std::array{flux, width});
    put_all<float>(out[4], a_day(drag.u));
    put_all<float>(out[5], a_day(drag.v));
    put(out[6], static_cast<float>(column.latitude));
    put(out[7], static_cast<float>(column.season));
  }

  nlohmann::json parameters() const override {
    return {{"levels", grid_.levels},
            {"top_m", grid_.top},
            {"launch_m", grid_.launch},
            {"azimuths", spectrum_.azimuths},
            {"speeds", spectrum_.speeds},
            {"wavelength_m", spectrum_.wavelength},
            {"efficiency", spectrum_.efficiency}};
  }

 private:
  WaveGrid grid_;
  WaveSpectrum spectrum_;
  std::vector<Field> fields_;
};

std::unique_ptr<Generator> make_gravity_waves(const Options& options) {
  return std::make_unique<GravityWaveGenerator>(
      WaveGrid{.levels = static_cast<int>(options.integer("levels", 13, 1024))},
      WaveSpectrum{.azimuths = static_cast<int>(options.integer("azimuths", 1, 360)),
                   .speeds = static_cast<int>(options.integer("speeds", 1, 1000))});
}

}  // namespace

GeneratorEntry gravity_wave_generator() {
  return {"gravity-wave-drag",
          "columns of air up to 63 km and the drag of the gravity waves that break in them",
          {{"levels", "63", "layers of equal depth in log pressure, 13 to 1024"},
           {"azimuths", "8", "directions of the waves"},
           {"speeds", "24", "phase speeds in every direction"}},
          make_gravity_waves};
}

}  // namespace superstep::data
