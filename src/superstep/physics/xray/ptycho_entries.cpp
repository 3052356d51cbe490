// The options of the ptychography generators, and their lines in the table.
#include <fmt/format.h>

#include "superstep/physics/xray/ptycho.h"

namespace superstep::data {
namespace {

Range scaled(Range range, double factor) { return {range.low * factor, range.high * factor}; }

void read_scan(PtychoSettings& settings, const Options& options) {
  const std::string paths[] = {"raster", "spiral"};
  settings.path = static_cast<PtychoSettings::Path>(options.choice("scan", paths));
  settings.grid.window = static_cast<int>(options.integer("window", 16, 1024));
  settings.grid.step = options.number("step", 0.1, 1e3);
  settings.grid.jitter = options.number("jitter", 0, 3);
  settings.rows = static_cast<int>(options.integer("rows", 1, 2000));
  settings.columns = static_cast<int>(options.integer("columns", 1, 2000));
  settings.spiral_points = static_cast<int>(options.integer("points", 1, 1000000));
  settings.drift = static_cast<int>(options.integer("drift", 0, 1000));
  settings.first = static_cast<int>(options.integer("first", 0, 1000000));
}

void read_probe(PtychoSettings& settings, const Options& options) {
  const std::string models[] = {"zone-plate", "gaussian"};
  settings.probe = static_cast<PtychoSettings::ProbeModel>(options.choice("probe", models));
  settings.pixel = options.number("pixel", 1e-3, 1e6) * 1e-9;
  settings.photons = range_option(options, "photons", 1, 1e12);
  settings.width = scaled(range_option(options, "width", 1e-3, 1e9), 1e-9 / settings.pixel);
  settings.defocus = range_option(options, "defocus", -10, 10);
  settings.central_stop = range_option(options, "stop", 0, 0.9);
  if (settings.width.low < 2 || settings.width.high > settings.grid.window / 2.0)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("a probe of {:.3g} to {:.3g} px does not fit: it needs 2 px to half the window",
                            settings.width.low, settings.width.high),
                "option width");
}

}  // namespace

std::vector<OptionSpec> ptycho_options(int window, const char* scan) {
  return {{"window", std::to_string(window), "pixels along a side of a pattern; even"},
          {"scan", scan, "raster or spiral"},
          {"rows", "161", "lines of a raster"},
          {"columns", "161", "points of a line"},
          {"points", "963", "points of a spiral"},
          {"step", "3", "distance of neighboring points, px"},
          {"jitter", "0.3", "placement error, px; positions are rounded to whole pixels"},
          {"pixel", "10", "pixel of the object, nm"},
          {"photons", "1e4..1e7", "photons a pattern, one draw a scan"},
          {"probe", "zone-plate", "zone-plate or gaussian"},
          {"width", "50..100", "full width at half maximum of the probe, nm"},
          {"defocus", "0.1..0.5", "zone plate: path difference of pupil edge and center, wavelengths"},
          {"stop", "0.2..0.5", "zone plate: radius of the central stop / of the pupil"},
          {"dead", "1e-3", "share of dead detector pixels"},
          {"threshold", "3", "counts below this are written as 0"},
          {"energy", "8", "photon energy, keV"},
          {"delta", "4.8e-5", "refractive index decrement of the sample"},
          {"absorption", "0.1", "beta / delta of the sample"},
          {"drift", "0", "px a scan that one long sample drifts; 0: a new sample every scan"},
          {"first", "0", "scans of the seed to pass over: a file goes on where another one ended"}};
}

PtychoSettings read_ptycho_settings(const Options& options) {
  PtychoSettings settings;
  read_scan(settings, options);
  read_probe(settings, options);
  settings.dead_fraction = options.number("dead", 0, 1);
  settings.threshold = options.number("threshold", 0, 1e9);
  settings.material.energy_kev = options.number("energy", 0.1, 1000);
  settings.material.delta = options.number("delta", 1e-9, 0.1);
  settings.material.beta_over_delta = options.number("absorption", 0, 10);
  return settings;
}

GeneratorEntry ptychonn_64_generator() {
  return {"ptychonn-64", "ptychography, 64 x 64 patterns of a raster scan, amplitude and phase of the object",
          ptycho_options(64, "raster"), [](const Options& options) -> std::unique_ptr<Generator> {
            return std::make_unique<PtychoGenerator>("ptychonn-64", read_ptycho_settings(options));
          }};
}

GeneratorEntry ptychonn_128_generator() {
  return {"ptychonn-128",
          "ptychography, 128 x 128 patterns of spiral scans, amplitude and phase of the object",
          ptycho_options(128, "spiral"), [](const Options& options) -> std::unique_ptr<Generator> {
            return std::make_unique<PtychoGenerator>("ptychonn-128", read_ptycho_settings(options));
          }};
}

}  // namespace superstep::data
