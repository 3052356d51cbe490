#include "superstep/baseline/imaging/image_pca.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "superstep/base/error.h"
#include "superstep/base/progress.h"
#include "superstep/base/stopwatch.h"
#include "superstep/base/text.h"
#include "superstep/baseline/imaging/jpeg.h"
#include "superstep/baseline/xray/pca.h"
#include "superstep/file/hdf5/hdf5.h"
#include "superstep/file/idx.h"
#include "superstep/file/image_stack.h"
#include "superstep/page/page.h"

namespace superstep::baseline {
namespace {

struct Images {
  FrameMatrix pixels;  // [images, pixels], 0 to 1
  int width = 0, height = 0;
};

Tensor read_stack(const std::filesystem::path& path) {
  if (path.filename().string().find("idx3-ubyte") != std::string::npos) return data::read_idx(path);
  return data::read_image_stack(path, "image");
}

Images read_images(const std::filesystem::path& path) {
  const Tensor stack = read_stack(path);
  const std::int64_t count = stack.shape().rank() == 3 ? stack.shape()[0] : 0;
  if (count < 2)
    throw Error(ErrorCode::bad_file,
                "has the shape " + to_string(stack.shape()) + "; two images or more are needed",
                path.string());
  const std::int64_t pixels = stack.element_count() / count;
  const float white = stack.type() == ElementType::u8 ? 255 : 1;
  const Tensor values = stack.converted(ElementType::f32);
  Images images{FrameMatrix(count, pixels), static_cast<int>(stack.shape()[2]),
                static_cast<int>(stack.shape()[1])};
  for (std::int64_t i = 0; i < count * pixels; ++i)
    images.pixels.data()[i] = values.as<float>()[static_cast<std::size_t>(i)] / white;
  return images;
}

// Of the first `count` images.
PcaBasis basis_of(const Images& images, Eigen::Index count, int values, ThreadPool& pool) {
  const FrameSource source{
      count, images.pixels.cols(),
      [&](std::int64_t first, std::int64_t n) -> FrameMatrix { return images.pixels.middleRows(first, n); }};
  Progress bar("principal components", 1, "passes");
  return principal_components(source, {.components = values}, pool,
                              [&](double done, double total) { bar.update(done / total); });
}

FrameMatrix through(const FrameMatrix& images, const PcaBasis& basis, Eigen::Index values) {
  return reconstruct(compress(images, basis).leftCols(values), basis);
}

page::Picture picture(const Images& images, const FrameMatrix& row, std::string caption) {
  const std::vector<float> values(row.data(), row.data() + row.size());
  return {page::colored(values, images.width, images.height, page::Colormap::gray, 0.0f, 1.0f),
          std::move(caption),
          {},
          4};
}

struct Row {
  Eigen::Index values = 0;
  double error = 0, captured = 0;
  std::optional<double> jpeg;  // its PSNR in as many bytes as values
};

std::optional<double> psnr_of_jpeg(const FrameMatrix& images, int width, int height, double bytes,
                                   ThreadPool& pool) {
  std::vector<std::uint8_t> pixels;
  for (Eigen::Index i = 0; i < images.size(); ++i)
    pixels.push_back(static_cast<std::uint8_t>(std::lround(255 * std::clamp(images.data()[i], 0.0f, 1.0f))));
  return psnr_of_jpeg(GreyImages{pixels, width, height}, bytes, pool);
}

std::vector<Row> judge(const FrameMatrix& unseen, const PcaBasis& basis, const Images& images,
                       ThreadPool& pool) {
  std::vector<Row> rows;
  const Eigen::Index all = basis.components.cols();
  for (Eigen::Index values : {all / 4, all / 2, all}) {
    if (values < 1) continue;
    const double error = (through(unseen, basis, values) - unseen).cast<double>().squaredNorm() /
                         static_cast<double>(unseen.size());
    rows.push_back({values, error,
                    basis.eigenvalues.head(values).sum() / std::max(basis.total_variance, 1e-300),
                    psnr_of_jpeg(unseen, images.width, images.height, static_cast<double>(values), pool)});
  }
  return rows;
}

Report summarize(const std::vector<Row>& rows, double seconds) {
  Report report;
  report.metrics = {
      {"psnr", psnr(rows.back().error), "dB"}, {"mse", rows.back().error, ""}, {"fit_time", seconds, "s"}};
  if (rows.back().jpeg) report.metrics.push_back({"jpeg_psnr", *rows.back().jpeg, "dB"});
  TextTable table({"values", "PSNR (dB)", "MSE", "variance kept", "JPEG in as many bytes (dB)"});
  for (const Row& row : rows)
    table.add_row({fmt::format("{}", row.values), fmt::format("{:.2f}", psnr(row.error)),
                   fmt::format("{:.3e}", row.error), fmt::format("{:.2f} %", 100 * row.captured),
                   row.jpeg ? fmt::format("{:.2f}", *row.jpeg) : "-"});
  report.text = table.to_string();
  return report;
}

void write_page(const Request& request, const Report& report, const Images& images, const PcaBasis& basis,
                const std::vector<Row>& rows) {
  page::Page page("Compression by principal components");
  page.preformatted(report.text);
  std::vector<page::Picture> pictures;
  const Eigen::Index count = images.pixels.rows();
  for (Eigen::Index k = std::max<Eigen::Index>(0, count - 4); k < count; ++k) {
    const FrameMatrix one = images.pixels.row(k);
    pictures.push_back(picture(images, one, fmt::format("image {}", k)));
    for (const Row& row : rows)
      pictures.push_back(
          picture(images, through(one, basis, row.values), fmt::format("{} values", row.values)));
  }
  page.pictures(pictures).write(request.picture);
}

void write_output(const std::filesystem::path& path, const Images& images, const PcaBasis& basis) {
  const FrameMatrix all = through(images.pixels, basis, basis.components.cols());
  Tensor recon(ElementType::f32, {images.pixels.rows(), images.height, images.width});
  std::copy(all.data(), all.data() + all.size(), recon.as<float>().begin());
  data::Hdf5Writer file(path);
  file.write("recon", recon);
  file.close();
}

// The basis comes from the first four fifths of the images, the errors from the others.
Report run(const Request& request, const Options& options) {
  const Images images = read_images(request.input);
  const Eigen::Index known = std::max<Eigen::Index>(1, images.pixels.rows() * 4 / 5);
  const int values = static_cast<int>(options.integer("values", 1, images.pixels.cols()));
  const Stopwatch watch;
  const PcaBasis basis = basis_of(images, known, values, *request.pool);
  const double seconds = watch.seconds();
  const std::vector<Row> rows =
      judge(images.pixels.bottomRows(images.pixels.rows() - known), basis, images, *request.pool);
  const Report report = summarize(rows, seconds);
  if (!request.output.empty()) write_output(request.output, images, basis);
  if (!request.picture.empty()) write_page(request, report, images, basis, rows);
  return report;
}

}  // namespace

double psnr(double mean_squared_error) {
  return mean_squared_error > 0 ? -10 * std::log10(mean_squared_error)
                                : std::numeric_limits<double>::infinity();
}

Entry image_pca() {
  return {"image-autoencoder",
          "principal components of the first four fifths of the images, judged on the others; JPEG",
          {{"values", "196", "numbers kept of an image"}},
          run};
}

}  // namespace superstep::baseline
