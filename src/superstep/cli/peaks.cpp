// superstep peaks FRAMES: from the frames of a detector to a table of reflections.
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "superstep/base/error.h"
#include "superstep/base/measured_metric.h"
#include "superstep/base/text.h"
#include "superstep/cli/command.h"
#include "superstep/cli/shared/metrics.h"
#include "superstep/cli/shared/model_options.h"
#include "superstep/cli/shared/outcome.h"
#include "superstep/file/source/paths.h"
#include "superstep/peaks/find_peaks.h"
#include "superstep/peaks/score.h"
#include "superstep/peaks/table.h"
#include "superstep/record/without_places.h"

namespace superstep::cli {
namespace {

struct Arguments {
  peaks::PeaksSettings settings;
  std::vector<std::string> frames;
  std::string threshold = "8sigma", method, run, out, part = "watershed";
  double omega_start = 0, omega_step = 0;
  bool no_merge = false;
};

constexpr const char* examples =
    "Examples:\n"
    "  superstep peaks scan.h5 --run run/ --out peaks.h5        by a network: superstep train braggnn\n"
    "  superstep peaks scan.h5 --method fit --out peaks.csv     pseudo-Voigt fits of the same spots\n"
    "  superstep peaks 'ff_*.cbf' --dark dark.h5 --mask mask.npy --threshold 100 --method centroid\n"
    "  superstep peaks scan.h5 --run run/ --omega-start -180 --omega-step 0.25 --out peaks.h5\n"
    "  superstep peaks frames=scan.h5:entry/data/data --run run/ --no-merge --out spots.csv\n"
    "Frames are [N,H,W] or a file each. A pixel has no data where a whole number is the largest of its "
    "type,\n"
    "where it is NaN, and where the mask is not 0. What each column means: docs/peaks.md.";

peaks::Method method_of(const Arguments& arguments) {
  const auto names = peaks::method_names();
  for (std::size_t i = 0; i < names.size(); ++i)
    if (names[i] == arguments.method) return static_cast<peaks::Method>(i);
  return peaks::Method::braggnn;
}

std::vector<Metric> metrics_of(const peaks::PeakTable& table, const peaks::PeaksSettings& settings) {
  std::vector<Metric> metrics = peaks::score_metrics(table, settings);
  const auto add = [&](const char* name, double value, const char* unit) {
    metrics.push_back(measured_metric(name, value, unit));
  };
  std::size_t not_located = 0;
  for (const peaks::FoundSpot& spot : table.spots) not_located += (spot.flags & peaks::not_located) != 0;
  add("reflections", static_cast<double>(table.merged.reflections.size()), "");
  add("spots", static_cast<double>(table.spots.size()), "");
  add("not_located", static_cast<double>(not_located), "");
  add("frame_rate", static_cast<double>(table.frames) / table.seconds, "frames/s");
  if (table.locate_seconds > 0 && !table.spots.empty())
    add("locate_rate", static_cast<double>(table.spots.size()) / table.locate_seconds, "spots/s");
  return metrics;
}

void print_words(const Arguments& arguments, const peaks::PeakTable& table,
                 const std::vector<Metric>& metrics) {
  fmt::print(
      "{} reflections of {} spots in {} frames of {} x {} px; threshold {:.4g} over a background of {:.4g}\n",
      format_count(static_cast<double>(table.merged.reflections.size())),
      format_count(static_cast<double>(table.spots.size())), format_count(static_cast<double>(table.frames)),
      table.height, table.width, table.mean_threshold, table.mean_background);
  fmt::print("{}", metrics_table(metrics));
  if (!arguments.out.empty()) fmt::print("written to {}\n", arguments.out);
  for (const std::string& note : table.notes) say("superstep: note: {}\n", note);
  if (table.spots.empty()) say("superstep: warning: nothing is above the threshold (--threshold)\n");
}

void take_omega(const CLI::App& command, Arguments& arguments) {
  const bool step = command.count("--omega-step") > 0;
  if (!step && command.count("--omega-start") > 0)
    throw Error(ErrorCode::invalid_argument, "of which step? give --omega-step", "--omega-start");
  if (step && arguments.omega_step == 0)
    throw Error(ErrorCode::invalid_argument, "frames of one angle have no omega", "--omega-step",
                "leave it away");
  if (step) arguments.settings.omega = peaks::Omega{arguments.omega_start, arguments.omega_step};
}

void refuse_unheeded_options(const CLI::App& command, const Arguments& arguments) {
  if (arguments.part == "none" && command.count("--valley") > 0)
    throw Error(ErrorCode::invalid_argument, "is of --part watershed", "--valley",
                "leave one of the two away");
  if (command.count("--omega-step") > 0 && arguments.out.empty())
    throw Error(ErrorCode::invalid_argument, "no table is written that would have it", "--omega-step",
                "give --out");
  if (arguments.settings.locator.patch % 2 == 0 && command.count("--patch") > 0)
    throw Error(ErrorCode::invalid_argument, "a patch of an even number of pixels has no middle", "--patch",
                "take an odd number");
}

void find(const CLI::App& command, Arguments arguments) {
  peaks::PeaksSettings& settings = arguments.settings;
  refuse_unheeded_options(command, arguments);
  take_omega(command, arguments);
  if (!arguments.out.empty()) peaks::require_table_form(arguments.out);
  settings.frames = data::joined_names(arguments.frames);
  settings.find.threshold = peaks::threshold_from_text(arguments.threshold);
  settings.find.part = arguments.part == "watershed";
  settings.merge = !arguments.no_merge;
  settings.locator.method = method_of(arguments);
  settings.locator.run = arguments.run;
  settings.threads = thread_count();
  const peaks::PeakTable table = peaks::find_peaks(settings);
  nlohmann::json config = peaks::describe(settings, table);
  if (common().for_others) config = record::without_places(std::move(config));
  if (!arguments.out.empty()) peaks::write_table(arguments.out, config, settings, table);
  const std::vector<Metric> metrics = metrics_of(table, settings);
  if (!common().quiet) print_words(arguments, table, metrics);
  config["threads"] = settings.threads;
  keep_and_write_result(command_result("peaks", "braggnn", std::move(config), metrics));
}

void declare_frames(CLI::App& command, Arguments& arguments) {
  peaks::CorrectionFiles& files = arguments.settings.correction;
  command
      .add_option("frames", arguments.frames,
                  "files of frames: HDF5, NeXus, TIFF, CBF, EDF, npy (docs/your-data.md)")
      ->type_name("FRAMES")
      ->required();
  command.add_option("--dark", files.dark, "a frame without X-rays, or several: their mean is taken away")
      ->type_name("PATH");
  command.add_option("--flat", files.flat, "an evenly lit frame, or several: pixels are made equally bright")
      ->type_name("PATH");
  command.add_option("--mask", files.mask, "a frame that is not 0 where a pixel is bad")->type_name("PATH");
}

void declare_finding(CLI::App& command, Arguments& arguments) {
  peaks::FindSettings& find = arguments.settings.find;
  command
      .add_option("--threshold", arguments.threshold,
                  "corrected counts, or 8sigma: so far above the background of each frame")
      ->type_name("X")
      ->capture_default_str();
  command
      .add_option("--least-pixels", find.least_pixels, "pixels above it that a spot has at least in a frame")
      ->type_name("N")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  command
      .add_option("--contrast", find.contrast,
                  "standard deviations that a spot's highest pixel is above its surroundings at least")
      ->type_name("X")
      ->check(number_from(0, 1e6))
      ->capture_default_str();
  command
      .add_option("--part", arguments.part, "overlapping spots: watershed, or none: one spot each component")
      ->type_name("HOW")
      ->check(CLI::IsMember({"watershed", "none"}))
      ->capture_default_str();
  command
      .add_option("--valley", find.valley,
                  "depth of a valley that parts two spots, of the lower one's height")
      ->type_name("X")
      ->check(number_from(0, 1))
      ->capture_default_str();
}

void declare_locating(CLI::App& command, Arguments& arguments) {
  command.add_option("--run", arguments.run, "the folder of a training run of braggnn")->type_name("DIR");
  command.add_option("--method", arguments.method, "braggnn, fit (pseudo-Voigt, 8 parameters) or centroid")
      ->type_name("NAME")
      ->check(CLI::IsMember({"braggnn", "fit", "centroid"}))
      ->default_str("braggnn");
  command
      .add_option("--patch", arguments.settings.locator.patch,
                  "pixels of the square around a spot, odd (default: the network's, or 11)")
      ->type_name("N")
      ->check(CLI::Range(5, 101));
  command.add_flag(
      "--clean", arguments.settings.find.clean,
      "nothing but the spot's own pixels in its patch, as runs that were trained on frames have it");
}

void declare_merging(CLI::App& command, Arguments& arguments) {
  command.add_flag("--no-merge", arguments.no_merge, "frames have nothing to do with each other");
  command.add_option("--omega-start", arguments.omega_start, "degrees at which the first frame begins")
      ->type_name("DEG")
      ->check(number_from(-1e6, 1e6))
      ->capture_default_str();
  command
      .add_option("--omega-step", arguments.omega_step, "degrees per frame; tables have a column omega then")
      ->type_name("DEG")
      ->check(number_from(-360, 360));
  command.add_option("--out", arguments.out, "the table: .h5, .npz, .csv or .json")->type_name("FILE");
}

}  // namespace

void declare_peaks(CLI::App& command) {
  const auto arguments = std::make_shared<Arguments>();
  declare_frames(command, *arguments);
  declare_finding(command, *arguments);
  declare_locating(command, *arguments);
  declare_merging(command, *arguments);
  command.footer(examples);
  command.callback([arguments, &command] { find(command, *arguments); });
}

}  // namespace superstep::cli
