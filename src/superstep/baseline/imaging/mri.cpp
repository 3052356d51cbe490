#include "superstep/baseline/imaging/mri.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "superstep/base/error.h"
#include "superstep/base/progress.h"
#include "superstep/base/statistics.h"
#include "superstep/base/stopwatch.h"
#include "superstep/base/text.h"
#include "superstep/baseline/imaging/lesion.h"
#include "superstep/baseline/imaging/masked_images.h"
#include "superstep/baseline/imaging/segment.h"
#include "superstep/baseline/materials/destripe.h"
#include "superstep/file/hdf5/hdf5.h"
#include "superstep/page/page.h"
#include "superstep/physics/materials/conductivity.h"
#include "superstep/physics/random_field.h"
#include "superstep/physics/stream_blocks.h"

namespace superstep::baseline {
namespace {

using Bytes = std::vector<std::uint8_t>;

class MaskOutput {
 public:
  MaskOutput(const std::filesystem::path& path, const MaskedImages& images) {
    if (path.empty()) return;
    file_.emplace(path);
    file_->create("mask_pred", ElementType::u8, {images.count(), images.height(), images.width()});
  }
  void write(std::int64_t first, std::int64_t count, const Bytes& mask) {
    if (file_) file_->write_rows("mask_pred", first, count, std::as_bytes(std::span(mask)));
  }
  void close() {
    if (file_) file_->close();
  }

 private:
  std::optional<data::Hdf5Writer> file_;
};

double mean(const std::vector<double>& values) {
  double sum = 0;
  for (double value : values) sum += value;
  return values.empty() ? 0 : sum / static_cast<double>(values.size());
}

page::Picture picture(std::span<const std::uint8_t> bytes, int width, int height, float high,
                      std::string caption) {
  const std::vector<float> values(bytes.begin(), bytes.end());
  return {page::colored(values, width, height, page::Colormap::gray, 0.0f, high), std::move(caption)};
}

// The image, the mask found and the true one, for the slice with most of the true (or found) mask.
void add_pictures(const MaskedImages& images, std::span<const std::uint8_t> grey, const Bytes& found,
                  const Bytes& truth, const std::string& name, std::vector<page::Picture>& pictures) {
  const std::size_t plane = images.plane(), slices = found.size() / plane;
  const Bytes& guide = truth.empty() ? found : truth;
  std::size_t best = 0;
  double most = -1;
  for (std::size_t k = 0; k < slices; ++k) {
    const double area =
        static_cast<double>(std::count(guide.begin() + static_cast<std::ptrdiff_t>(k * plane),
                                       guide.begin() + static_cast<std::ptrdiff_t>((k + 1) * plane), 1));
    if (area > most) most = area, best = k;
  }
  const auto slice = [&](std::span<const std::uint8_t> all) { return all.subspan(best * plane, plane); };
  pictures.push_back(picture(slice(grey), images.width(), images.height(), 255, name));
  pictures.push_back(picture(slice(found), images.width(), images.height(), 1, name + ": found"));
  if (!truth.empty())
    pictures.push_back(picture(slice(truth), images.width(), images.height(), 1, name + ": true"));
}

struct Outcome {
  std::vector<double> dice, conductivity_change;
  double seconds = 0;
  std::vector<page::Picture> pictures;
};

Outcome segment_volumes(const MaskedImages& images, const Request& request, const Options& options) {
  static const std::string switches[] = {"on", "off"};
  const LesionSettings settings{static_cast<int>(options.integer("classes", 2, 4)),
                                options.choice("bias", switches) == 0, options.number("growth", 0, 10)};
  const auto volumes = images.volumes();
  std::vector<Bytes> found(volumes.size()), truth(volumes.size()), flair(volumes.size());
  MaskOutput output(request.output, images);
  Outcome outcome;
  Progress progress("segmenting", static_cast<double>(volumes.size()), "volumes");
  // As many volumes at a time as there are threads.
  const auto step = static_cast<std::size_t>(request.pool->threads());
  for (std::size_t begin = 0; begin < volumes.size(); begin += step) {
    const std::size_t end = std::min(volumes.size(), begin + step);
    for (std::size_t v = begin; v < end; ++v)
      flair[v] = images.channel(1, volumes[v].first, volumes[v].second);
    const Stopwatch watch;
    request.pool->parallel_for(static_cast<std::int64_t>(end - begin), [&](std::int64_t k, int) {
      data::throw_if_interrupted();
      const std::size_t v = begin + static_cast<std::size_t>(k);
      found[v] = segment_lesion(flair[v], images.width(), images.height(),
                                static_cast<int>(volumes[v].second), settings);
    });
    outcome.seconds += watch.seconds();
    for (std::size_t v = begin; v < end; ++v) {
      output.write(volumes[v].first, volumes[v].second, found[v]);
      if (images.labelled()) truth[v] = images.masks(volumes[v].first, volumes[v].second);
      if (images.labelled()) outcome.dice.push_back(dice(found[v], truth[v]));
      if (v < 4 && !request.picture.empty())
        add_pictures(images, flair[v], found[v], truth[v], fmt::format("volume {}", v), outcome.pictures);
      for (Bytes* bytes : {&found[v], &truth[v], &flair[v]}) Bytes().swap(*bytes);
    }
    progress.update(static_cast<double>(end));
  }
  output.close();
  return outcome;
}

// How much the mask's errors change the effective conductivity, relative to the conductor's.
double conductivity_change(const Bytes& found, const Bytes& truth, int width, int height) {
  const auto ratio = [&](const Bytes& mask) {
    return data::effective_conductivity(mask, width, height, 1, 0).effective;
  };
  return std::abs(ratio(found) - ratio(truth));
}

Outcome segment_micrographs(const MaskedImages& images, const Request& request, const Options& options) {
  const PhaseSettings settings{static_cast<int>(options.integer("levels", 1, 10)),
                               options.number("damping", 0, 1000), options.number("smoothing", 0, 50)};
  MaskOutput output(request.output, images);
  Outcome outcome;
  Progress progress("segmenting", static_cast<double>(images.count()), "images");
  constexpr std::int64_t block_images = 64;
  for (std::int64_t first = 0; first < images.count(); first += block_images) {
    const std::int64_t count = std::min(block_images, images.count() - first);
    const Bytes grey = images.channel(0, first, count);
    std::vector<Bytes> found(static_cast<std::size_t>(count)), truth(found.size());
    const auto one = [&](std::size_t k) {
      return std::span(grey).subspan(k * images.plane(), images.plane());
    };
    const Stopwatch watch;
    request.pool->parallel_for(count, [&](std::int64_t k, int) {
      data::throw_if_interrupted();
      found[static_cast<std::size_t>(k)] =
          segment_phases(one(static_cast<std::size_t>(k)), images.width(), images.height(), settings);
    });
    outcome.seconds += watch.seconds();
    std::vector<double> overlap(found.size()), change(found.size());
    for (std::size_t k = 0; k < found.size(); ++k) {
      output.write(first + static_cast<std::int64_t>(k), 1, found[k]);
      if (images.labelled()) truth[k] = images.masks(first + static_cast<std::int64_t>(k), 1);
      if (first == 0 && k < 4 && !request.picture.empty())
        add_pictures(images, one(k), found[k], truth[k], fmt::format("image {}", k), outcome.pictures);
    }
    progress.update(static_cast<double>(first + count));
    if (!images.labelled()) continue;
    request.pool->parallel_for(count, [&](std::int64_t item, int) {
      data::throw_if_interrupted();
      const auto k = static_cast<std::size_t>(item);
      overlap[k] = dice(found[k], truth[k]);
      change[k] = conductivity_change(found[k], truth[k], images.width(), images.height());
    });
    outcome.dice.insert(outcome.dice.end(), overlap.begin(), overlap.end());
    outcome.conductivity_change.insert(outcome.conductivity_change.end(), change.begin(), change.end());
  }
  output.close();
  return outcome;
}

Report summarize(const Outcome& outcome, const MaskedImages& images) {
  const double rate = static_cast<double>(images.count()) / outcome.seconds;
  Report report;
  report.metrics = {{"throughput", rate, "samples/s"}};
  TextTable table({"images", "mean Dice", "median", "conductivity off by", "images/s"});
  std::vector<std::string> row{format_count(static_cast<double>(images.count())), "-", "-", "-",
                               fmt::format("{:.1f}", rate)};
  if (!outcome.dice.empty()) {
    report.metrics.push_back({"dice_mean", mean(outcome.dice), ""});
    report.metrics.push_back({"dice_median", median(outcome.dice), ""});
    row[1] = fmt::format("{:.4f}", mean(outcome.dice));
    row[2] = fmt::format("{:.4f}", median(outcome.dice));
  }
  if (!outcome.conductivity_change.empty()) {
    report.metrics.push_back({"conductivity_error", mean(outcome.conductivity_change), ""});
    row[3] = fmt::format("{:.4f}", mean(outcome.conductivity_change));
  }
  table.add_row(row);
  report.text = table.to_string();
  return report;
}

Report run(const Request& request, const Options& options) {
  static const std::string cases[] = {"mri", "stripes"};
  const bool volumes = options.choice("case", cases) == 0;
  const MaskedImages images(request.input);
  const Outcome outcome =
      volumes ? segment_volumes(images, request, options) : segment_micrographs(images, request, options);
  const Report report = summarize(outcome, images);
  if (!request.picture.empty()) {
    page::Page page(volumes ? "Lesions by Otsu's thresholds" : "Phases of destriped micrographs");
    page.preformatted(report.text).pictures(outcome.pictures).write(request.picture);
  }
  return report;
}

Entry entry_named(const char* name) {
  return {name,
          "bias correction, Otsu's thresholds, region growing; for micrographs after wavelet destriping",
          {{"case", "mri", "mri: lesions in FLAIR volumes; stripes: phases of micrographs"},
           {"classes", "4", "mri: classes of gray levels inside the brain, 2 to 4"},
           {"bias", "on", "mri: the coils' uneven gain is estimated and taken out: on, off"},
           {"growth", "1.5", "mri: deviations below its mean to which the region grows; 0: it does not"},
           {"levels", "5", "stripes: levels of the wavelets"},
           {"damping", "0.5", "stripes: periods over the height that are damped; 0 leaves stripes in"},
           {"smoothing", "1", "stripes: Gaussian blur before the threshold, px"}},
          run};
}

}  // namespace

std::vector<std::uint8_t> segment_phases(std::span<const std::uint8_t> micrograph, int width, int height,
                                         const PhaseSettings& settings) {
  std::vector<float> grey(micrograph.begin(), micrograph.end());
  if (settings.damping > 0)
    grey = remove_vertical_stripes(grey, width, height, settings.levels, settings.damping);
  data::blur(grey, width, height, data::gaussian_kernel(settings.smoothing_px), data::Border::clamp);
  Bytes levels;
  for (float value : grey)
    levels.push_back(static_cast<std::uint8_t>(std::clamp(value + 0.5f, 0.0f, 255.0f)));
  const int threshold = otsu_thresholds(levels, 2)[0];
  for (std::uint8_t& value : levels) value = value <= threshold;
  return levels;
}

Entry unet_256_thresholds() { return entry_named("unet-256"); }
Entry unet_64_thresholds() { return entry_named("unet-64"); }

}  // namespace superstep::baseline
