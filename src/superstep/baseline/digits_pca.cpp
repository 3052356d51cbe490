#include "superstep/baseline/digits_pca.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>

#include "superstep/base/error.h"
#include "superstep/base/text.h"
#include "superstep/data/hdf5.h"
#include "superstep/data/idx.h"
#include "superstep/data/image_stack.h"
#include "superstep/page/page.h"

namespace superstep::baseline {
namespace {

struct Images {
  Eigen::MatrixXd pixels;  // [pixels, images], 0 to 1
  int width = 0, height = 0;
};

Tensor read_stack(const std::filesystem::path& path) {
  if (path.filename().string().find("idx3-ubyte") != std::string::npos) return data::read_idx(path);
  return data::read_image_stack(path, "image");
}

Images read_images(const std::filesystem::path& path) {
  const Tensor stack = read_stack(path);
  if (stack.shape().rank() != 3 || stack.shape()[0] < 2)
    throw Error(ErrorCode::bad_file,
                "has the shape " + to_string(stack.shape()) + "; two images or more are needed",
                path.string());
  const std::int64_t count = stack.shape()[0], pixels = stack.element_count() / count;
  if (pixels > 4096)
    throw Error(ErrorCode::unsupported, fmt::format("has images of {} pixels", pixels), path.string(),
                "at most 4096 are done");
  Images images{Eigen::MatrixXd(pixels, count), static_cast<int>(stack.shape()[2]),
                static_cast<int>(stack.shape()[1])};
  const double white = stack.type() == ElementType::u8 ? 255 : 1;
  for (std::int64_t k = 0; k < count; ++k)
    for (std::int64_t i = 0; i < pixels; ++i) images.pixels(i, k) = stack.at(k * pixels + i) / white;
  return images;
}

page::Picture picture(const Images& images, const Eigen::VectorXd& pixels, std::string caption) {
  const std::vector<float> values(pixels.begin(), pixels.end());
  return {page::colored(values, images.width, images.height, page::Colormap::gray, 0.0f, 1.0f),
          std::move(caption),
          {},
          4};
}

struct Row {
  int values = 0;
  double error = 0, captured = 0;
};

void write_page(const Request& request, const Report& report, const Images& images,
                const PrincipalComponents& components, const std::vector<Row>& rows) {
  page::Page page("Compression by principal components");
  page.preformatted(report.text);
  std::vector<page::Picture> pictures;
  for (Eigen::Index k = images.pixels.cols() - 1; k >= std::max<Eigen::Index>(0, images.pixels.cols() - 4);
       --k) {
    pictures.push_back(picture(images, images.pixels.col(k), fmt::format("image {}", k)));
    for (const Row& row : rows)
      pictures.push_back(picture(images, reconstruct(components, images.pixels.col(k), row.values),
                                 fmt::format("{} values", row.values)));
  }
  page.pictures(pictures).write(request.picture);
}

// The basis comes from the first four fifths of the images, the errors from the others.
Report run(const Request& request, const Options& options) {
  const Images images = read_images(request.input);
  const Eigen::Index known = std::max<Eigen::Index>(1, images.pixels.cols() * 4 / 5);
  const auto begin = std::chrono::steady_clock::now();
  const PrincipalComponents components = principal_components(images.pixels.leftCols(known));
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  const Eigen::MatrixXd unseen = images.pixels.rightCols(images.pixels.cols() - known);
  const int chosen = static_cast<int>(options.integer("values", 1, images.pixels.rows()));
  std::vector<Row> rows;
  for (int values : {chosen / 4, chosen / 2, chosen}) {
    if (values < 1) continue;
    const double error =
        (reconstruct(components, unseen, values) - unseen).squaredNorm() / static_cast<double>(unseen.size());
    rows.push_back(
        {values, error, components.energy.head(values).sum() / std::max(components.energy.sum(), 1e-300)});
  }
  Report report;
  report.metrics = {
      {"psnr", psnr(rows.back().error), "dB"}, {"mse", rows.back().error, ""}, {"step_time", seconds, "s"}};
  TextTable table({"values", "PSNR (dB)", "MSE", "variance kept"});
  for (const Row& row : rows)
    table.add_row({fmt::format("{}", row.values), fmt::format("{:.2f}", psnr(row.error)),
                   fmt::format("{:.3e}", row.error), fmt::format("{:.2f} %", 100 * row.captured)});
  report.text = table.to_string();
  if (!request.output.empty()) {
    const Eigen::MatrixXf all = reconstruct(components, images.pixels, chosen).cast<float>();
    Tensor recon(ElementType::f32, {images.pixels.cols(), images.height, images.width});
    std::copy(all.data(), all.data() + all.size(), recon.as<float>().begin());
    data::Hdf5Writer file(request.output);
    file.write("recon", recon);
    file.close();
  }
  if (!request.picture.empty()) write_page(request, report, images, components, rows);
  return report;
}

}  // namespace

PrincipalComponents principal_components(const Eigen::MatrixXd& images) {
  PrincipalComponents components;
  components.mean = images.rowwise().mean();
  const Eigen::MatrixXd centred = images.colwise() - components.mean;
  const Eigen::MatrixXd covariance = centred * centred.transpose() / static_cast<double>(images.cols());
  const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> solver(covariance);  // eigenvalues rise
  components.energy = solver.eigenvalues().reverse().cwiseMax(0.0);
  components.basis = solver.eigenvectors().rowwise().reverse();
  return components;
}

Eigen::MatrixXd reconstruct(const PrincipalComponents& components, const Eigen::MatrixXd& images,
                            int values) {
  const auto basis = components.basis.leftCols(values);
  const Eigen::MatrixXd codes = basis.transpose() * (images.colwise() - components.mean);
  return (basis * codes).colwise() + components.mean;
}

double psnr(double mean_squared_error) {
  return mean_squared_error > 0 ? -10 * std::log10(mean_squared_error)
                                : std::numeric_limits<double>::infinity();
}

Entry pca_compression() {
  return {"image-autoencoder",
          "principal components of the first four fifths of the images, judged on the others",
          {{"values", "196", "numbers kept of an image"}},
          run};
}

}  // namespace superstep::baseline
