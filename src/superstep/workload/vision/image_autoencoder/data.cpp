// Digits that the auto-encoder is to give back: quality, what others reach with as many numbers or bits, and
// pictures.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "superstep/baseline/imaging/image_pca.h"
#include "superstep/baseline/imaging/jpeg.h"
#include "superstep/baseline/imaging/ms_ssim.h"
#include "superstep/baseline/xray/pca.h"
#include "superstep/file/idx.h"
#include "superstep/workload/metrics.h"
#include "superstep/workload/pictures/pictures.h"
#include "superstep/workload/table.h"
#include "superstep/workload/vision/image_autoencoder/image_autoencoder.h"

namespace superstep::workload {
namespace {

using baseline::FrameMatrix;

double share_of_white(double byte) { return byte / 255; }

std::span<const std::uint8_t> bytes_of(const Tensor& images, std::int64_t index) {
  const auto size = static_cast<std::size_t>(images.element_count() / images.shape()[0]);
  return images.as<std::uint8_t>().subspan(static_cast<std::size_t>(index) * size, size);
}

// Pixels from 0 to 1, one image a row.
FrameMatrix images_at(const Tensor& images, std::span<const std::int64_t> indices) {
  FrameMatrix pixels(static_cast<Eigen::Index>(indices.size()), images.element_count() / images.shape()[0]);
  for (std::size_t k = 0; k < indices.size(); ++k) {
    const auto bytes = bytes_of(images, indices[k]);
    for (std::size_t i = 0; i < bytes.size(); ++i)
      pixels(static_cast<Eigen::Index>(k), static_cast<Eigen::Index>(i)) = static_cast<float>(bytes[i]) / 255;
  }
  return pixels;
}

FrameMatrix images_of(const Tensor& recon, std::size_t count) {
  const auto values = recon.as<float>();
  const auto rows = static_cast<Eigen::Index>(count);
  return Eigen::Map<const FrameMatrix>(values.data(), rows, static_cast<Eigen::Index>(values.size()) / rows);
}

double psnr_of(const FrameMatrix& truth, const FrameMatrix& found) {
  return baseline::psnr((found - truth).cast<double>().squaredNorm() / static_cast<double>(truth.size()));
}

std::vector<Metric> quality_of_images(const Tensor& images, std::span<const std::int64_t> indices,
                                      const Tensor& recon, double bits_per_pixel) {
  const FrameMatrix truth = images_at(images, indices), found = images_of(recon, indices.size());
  const int width = static_cast<int>(images.shape()[2]), height = static_cast<int>(images.shape()[1]);
  const auto pixels = static_cast<std::size_t>(truth.cols());
  double alike = 0;
  for (Eigen::Index k = 0; k < truth.rows(); ++k)
    alike += baseline::ms_ssim({truth.row(k).data(), pixels}, {found.row(k).data(), pixels}, width, height);
  return {quality_metric("psnr", psnr_of(truth, found), "dB"),
          quality_metric("ms_ssim", alike / static_cast<double>(std::max<Eigen::Index>(1, truth.rows()))),
          quality_metric("bits_per_pixel", bits_per_pixel)};
}

// --- references: as many numbers, and as many bits

// Of `numbers` principal components of the training images; none are the mean image alone.
double psnr_of_components(const Tensor& images, const TableSamples& samples, int numbers) {
  const FrameMatrix truth = images_at(images, samples.indices);
  const FrameMatrix known = images_at(images, first_samples(samples.training));
  const auto basis = baseline::principal_components(
      {.frames = known.rows(),
       .pixels = known.cols(),
       .read = [&](std::int64_t first, std::int64_t count) -> FrameMatrix {
         return known.middleRows(first, count);
       }},
      {.components = std::max(1, numbers)}, samples.pool, [](double, double) {});
  if (numbers == 0) return psnr_of(truth, basis.mean.transpose().replicate(truth.rows(), 1));
  return psnr_of(truth, baseline::reconstruct(baseline::compress(truth, basis), basis));
}

std::optional<double> psnr_of_jpeg(const Tensor& images, const TableSamples& samples, double bytes) {
  std::vector<std::uint8_t> pixels;
  for (const std::int64_t index : samples.indices) {
    const auto own = bytes_of(images, index);
    pixels.insert(pixels.end(), own.begin(), own.end());
  }
  const int width = static_cast<int>(images.shape()[2]), height = static_cast<int>(images.shape()[1]);
  return baseline::psnr_of_jpeg({pixels, width, height}, bytes, samples.pool);
}

// As many components as pixels lose nothing: then the floor is the mean image, and the target 30 dB.
References components_and_jpeg(const Tensor& images, const TableSamples& samples,
                               const AutoencoderSizes& sizes) {
  const bool fewer = sizes.values() < sizes.size * sizes.size;
  const auto numbers = static_cast<int>(fewer ? std::min(sizes.values(), samples.training) : 0);
  const double floor = psnr_of_components(images, samples, numbers);
  References found{
      .floor = Reference{fewer ? fmt::format("{} principal components", numbers) : "the mean image", floor},
      .conventional = {},
      .limit = {},
      .target = fewer ? floor : 30};
  if (const auto jpeg = psnr_of_jpeg(images, samples, sizes.bits_an_image() / 8))
    found.conventional = Reference{"JPEG of as many bits", *jpeg};
  return found;
}

// --- pictures

std::string present_images(const Tensor& images, const Predictions& found, page::Page& page) {
  const FrameMatrix truth = images_at(images, found.indices);
  const FrameMatrix recon = images_of(found.outputs[0], found.indices.size());
  const int width = static_cast<int>(images.shape()[2]), height = static_cast<int>(images.shape()[1]);
  std::vector<double> errors, decibels;
  for (Eigen::Index k = 0; k < truth.rows(); ++k) {
    errors.push_back((recon.row(k) - truth.row(k)).cast<double>().squaredNorm() /
                     static_cast<double>(truth.cols()));
    decibels.push_back(baseline::psnr(errors.back()));
  }
  const auto finite = [](double value) { return std::isfinite(value); };
  const bool drawn = std::ranges::all_of(decibels, finite);
  page.plot({.title = "Images by how well they come back",
             .x_label = "PSNR, dB",
             .y_label = "images",
             .series = {page::histogram("", decibels, drawn ? std::ranges::min(decibels) : 0,
                                        drawn ? std::ranges::max(decibels) : 60, 40)}});
  page.begin_row();
  for (const Chosen& chosen : best_median_worst(errors, 3)) {
    const auto row = static_cast<Eigen::Index>(chosen.at);
    const auto picture = [&](const FrameMatrix& one, page::Colormap map, float low, const char* caption) {
      return page::Picture{.image = page::colored({one.data(), static_cast<std::size_t>(one.size())}, width,
                                                  height, map, low, 1.0f),
                           .caption = caption,
                           .marks = {},
                           .scale = std::max(1, 112 / width)};
    };
    std::vector<page::Picture> pictures{
        picture(truth.row(row), page::Colormap::gray, 0, "image"),
        picture(recon.row(row), page::Colormap::gray, 0, "out of its code"),
        picture(recon.row(row) - truth.row(row), page::Colormap::difference, -1, "difference")};
    pictures.back().bar = page::ColorBar{page::Colormap::difference, "\u22121", "1", "decoded \u2212 image"};
    page.begin_column()
        .heading(fmt::format("{}: sample {}, {:.1f} dB", chosen.why, found.indices[chosen.at],
                             decibels[chosen.at]),
                 4)
        .pictures(pictures)
        .end_column();
  }
  page.end_row();
  return {};
}

TableSpec spec_of_digits(const AutoencoderSizes& sizes) {
  const double bits_per_pixel = sizes.bits_an_image() / static_cast<double>(sizes.size * sizes.size);
  return {.generator = "image-autoencoder",
          .settings = {},
          .default_samples = 10000,
          .inputs = {{"image", share_of_white}},
          .targets = {},
          .more = {},
          .quality =
              [bits_per_pixel](const Fields& fields, std::span<const std::int64_t> indices,
                               std::span<const Tensor> outputs) {
                return quality_of_images(fields.at("image"), indices, outputs[0], bits_per_pixel);
              },
          .present = [](const Fields& fields, const Predictions& found,
                        page::Page& page) { return present_images(fields.at("image"), found, page); },
          .references =
              [sizes](const TableSamples& samples) {
                return components_and_jpeg(samples.fields.at("image"), samples, sizes);
              },
          .reference_seconds = 3,
          .reference_fields = {}};
}

}  // namespace

std::unique_ptr<Task> open_digits(const TaskSettings& settings, const Options& model) {
  TableSpec spec = spec_of_digits(autoencoder_sizes(model));
  if (settings.data.filename().string().find("idx3-ubyte") == std::string::npos)
    return open_table_task(std::move(spec), settings);
  const Tensor images = data::read_idx(settings.data);
  if (images.shape().rank() != 3 || images.type() != ElementType::u8)
    throw Error(ErrorCode::bad_file,
                "has the shape " + to_string(images.shape()) + ", not [images, height, width] of bytes",
                settings.data.string());
  return open_table_task(std::move(spec), Fields{{"image", images}}, settings);
}

}  // namespace superstep::workload
