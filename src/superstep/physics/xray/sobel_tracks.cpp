#include "superstep/physics/xray/sobel_tracks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <numbers>

namespace superstep::data {
namespace {

enum Purpose : std::uint32_t { track_purpose = 1, noise_purpose };

constexpr double pi = std::numbers::pi;
constexpr int cloud = 3;  // a deposit reaches this many pixels to each side

// The share of a Gaussian cloud about `centre` that falls on pixel i, [i - 1/2, i + 1/2].
double share(double centre, double inverse_width, int i) {
  return 0.5 * (std::erf((i + 0.5 - centre) * inverse_width) - std::erf((i - 0.5 - centre) * inverse_width));
}

void deposit(std::vector<float>& frame, int side, double y, double x, double electrons,
             double inverse_width) {
  const int row = static_cast<int>(std::lround(y)), column = static_cast<int>(std::lround(x));
  double shares[2 * cloud + 1];
  for (int i = -cloud; i <= cloud; ++i) shares[i + cloud] = share(x, inverse_width, column + i);
  for (int j = -cloud; j <= cloud; ++j) {
    if (row + j < 0 || row + j >= side) continue;
    const double weight = electrons * share(y, inverse_width, row + j);
    for (int i = -cloud; i <= cloud; ++i)
      if (column + i >= 0 && column + i < side)
        frame[static_cast<std::size_t>(row + j) * static_cast<std::size_t>(side) +
              static_cast<std::size_t>(column + i)] += static_cast<float>(weight * shares[i + cloud]);
  }
}

std::vector<Field> make_fields(std::int64_t side) {
  return {{"frame", ElementType::u16, {side, side}, "counts", "a frame of the detector, zero-suppressed"},
          {"tracks", ElementType::u32, {}, "", "how many tracks crossed it"},
          {"track",
           ElementType::f32,
           {TrackGenerator::most_tracks, 5},
           "px",
           "entry (y, x), displacement to the exit (y, x), charge (electrons); zeros after the last"}};
}

}  // namespace

double draw_charge(RandomStream& random, double micrometres) {
  // If z is normal, -ln z^2 has the density of Moyal, with its mode at 0.
  const double z = random.normal();
  const double moyal = -std::log(std::max(z * z, 1e-300));
  return std::max(0.0, micrometres * (76 + 1.6 * 76 / std::sqrt(std::max(1.0, micrometres)) * moyal));
}

std::vector<Track> draw_tracks(RandomStream& random, const TrackSettings& settings) {
  const auto count = std::min<std::uint64_t>(random.poisson(settings.tracks), TrackGenerator::most_tracks);
  const double lowest_cosine = std::cos(settings.max_angle * pi / 180);
  std::vector<Track> tracks;
  for (std::uint64_t i = 0; i < count; ++i) {
    Track track;
    const bool beside = !tracks.empty() && random.uniform() < settings.clustered;
    track.y = random.uniform(-0.5, settings.side - 0.5);
    track.x = random.uniform(-0.5, settings.side - 0.5);
    if (beside) {
      const Track& other = tracks[random.below(tracks.size())];
      track.y = other.y + 3 * random.normal();
      track.x = other.x + 3 * random.normal();
    }
    const double cosine = random.uniform(lowest_cosine, 1), azimuth = random.uniform(0, 2 * pi);
    const double across = settings.thickness / settings.pitch * std::sqrt(1 - cosine * cosine) / cosine;
    track.dy = across * std::sin(azimuth);
    track.dx = across * std::cos(azimuth);
    track.electrons = draw_charge(random, settings.thickness / cosine);
    tracks.push_back(track);
  }
  return tracks;
}

std::vector<float> collected_charge(const std::vector<Track>& tracks, const TrackSettings& settings) {
  std::vector<float> frame(static_cast<std::size_t>(settings.side) * static_cast<std::size_t>(settings.side));
  const double inverse_width = settings.pitch / (settings.diffusion * std::numbers::sqrt2);
  for (const Track& track : tracks) {
    constexpr double steps_a_pixel = 4;
    const int steps = 1 + static_cast<int>(std::ceil(steps_a_pixel * std::hypot(track.dy, track.dx)));
    for (int step = 0; step < steps; ++step) {
      const double along = (step + 0.5) / steps;
      deposit(frame, settings.side, track.y + along * track.dy, track.x + along * track.dx,
              track.electrons / steps, inverse_width);
    }
  }
  return frame;
}

TrackGenerator::TrackGenerator(const TrackSettings& settings)
    : settings_(settings), fields_(make_fields(settings.side)) {}

void TrackGenerator::sample(std::uint64_t seed, std::uint64_t index, std::span<std::byte* const> out) const {
  RandomStream track_random(seed, index, track_purpose), noise_random(seed, index, noise_purpose);
  const std::vector<Track> tracks = draw_tracks(track_random, settings_);
  const std::vector<float> charge = collected_charge(tracks, settings_);
  auto* frame = reinterpret_cast<std::uint16_t*>(out[0]);
  for (std::size_t i = 0; i < charge.size(); ++i) {
    const double electrons = charge[i] + settings_.noise * noise_random.normal();
    const double counts = electrons < settings_.threshold ? 0 : electrons / settings_.electrons_per_count;
    frame[i] = static_cast<std::uint16_t>(std::min(counts, 65535.0));
  }
  const auto count = static_cast<std::uint32_t>(tracks.size());
  std::memcpy(out[1], &count, sizeof count);
  auto* table = reinterpret_cast<float*>(out[2]);
  for (const Track& track : tracks)
    for (const double value : {track.y, track.x, track.dy, track.dx, track.electrons})
      *table++ = static_cast<float>(value);
}

nlohmann::json TrackGenerator::parameters() const {
  return {{"side", settings_.side},           {"pitch", settings_.pitch},
          {"thickness", settings_.thickness}, {"tracks", settings_.tracks},
          {"clustered", settings_.clustered}, {"max_angle", settings_.max_angle},
          {"diffusion", settings_.diffusion}, {"noise", settings_.noise},
          {"threshold", settings_.threshold}, {"electrons_per_count", settings_.electrons_per_count}};
}

GeneratorEntry sobel_generator() {
  return {"sobel-800",
          "frames of a silicon pixel detector with particle tracks, 16 bits",
          {{"side", "800", "pixels along a side"},
           {"pitch", "25", "of the pixels, um"},
           {"thickness", "100", "of the sensor, um"},
           {"tracks", "250", "tracks a frame, on average"},
           {"clustered", "0.3", "share of tracks that start beside another"},
           {"max_angle", "80", "largest angle from the normal, degrees"},
           {"diffusion", "4", "width of the charge cloud, um"},
           {"noise", "60", "of a pixel, electrons"},
           {"threshold", "300", "below it a pixel is 0, electrons"},
           {"electrons_per_count", "10", "gain of the electronics"}},
          [](const Options& options) -> std::unique_ptr<Generator> {
            TrackSettings settings;
            settings.side = static_cast<int>(options.integer("side", 8, 16384));
            settings.pitch = options.number("pitch", 0.1, 1e4);
            settings.thickness = options.number("thickness", 0.1, 1e5);
            settings.tracks = options.number("tracks", 0, 1500);
            settings.clustered = options.number("clustered", 0, 1);
            settings.max_angle = options.number("max_angle", 0, 89);
            settings.diffusion = options.number("diffusion", 1e-3, 1e4);
            settings.noise = options.number("noise", 0, 1e6);
            settings.threshold = options.number("threshold", 0, 1e9);
            settings.electrons_per_count = options.number("electrons_per_count", 1e-3, 1e9);
            return std::make_unique<TrackGenerator>(settings);
          }};
}

}  // namespace superstep::data
