#include "superstep/edge/live/picture_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "superstep/base/tensor.h"
#include "superstep/file/hdf5/hdf5.h"
#include "superstep/file/tiff.h"
#include "superstep/page/page.h"

namespace superstep::edge {
namespace {

Tensor plane(const std::vector<float>& values, const StitchedPicture& picture) {
  Tensor tensor(ElementType::f32, Shape{picture.height, picture.width});
  std::ranges::copy(values, tensor.as<float>().begin());
  return tensor;
}

Tensor translation(const PictureFacts& facts) {
  Tensor tensor(ElementType::f64, Shape{static_cast<std::int64_t>(facts.positions.size()), 3});
  std::int64_t at = 0;
  for (const auto& [frame, position] : facts.positions) {  // x, y, z
    tensor.set(at++, position.second);
    tensor.set(at++, position.first);
    tensor.set(at++, 0);
  }
  return tensor;
}

}  // namespace

void write_picture_cxi(const std::filesystem::path& path, const StitchedPicture& picture,
                       const PictureFacts& facts) {
  data::Hdf5Writer file(path);
  const std::string image = "entry_1/image_1";
  file.write(image + "/data", plane(picture.mean, picture));
  file.write(image + "/spread", plane(picture.spread, picture));
  file.write(image + "/weight", plane(picture.weight, picture));
  const std::string definition[] = {"NXcxi_ptycho"}, space[] = {"real"}, title[] = {facts.series};
  file.write_strings("entry_1/definition", definition);
  file.write_strings("entry_1/title", title);
  file.write_strings(image + "/data_space", space);
  if (!facts.positions.empty()) file.write("entry_1/sample_1/geometry_1/translation", translation(facts));
  file.set_attribute(image, "model", facts.model);
  file.set_attribute(image, "version", facts.version);
  file.set_attribute(image, "pixel_size", facts.pixel);
  file.set_attribute(image, "top", static_cast<double>(picture.top) * facts.pixel);
  file.set_attribute(image, "left", static_cast<double>(picture.left) * facts.pixel);
  file.close();
}

void write_picture_tiff(const std::filesystem::path& path, const StitchedPicture& picture,
                        const PictureFacts& facts) {
  const auto [low, high] = page::finite_range(picture.mean);
  std::vector<std::uint8_t> pixels;
  for (const float value : picture.mean)
    pixels.push_back(std::isnan(value) || high <= low
                         ? 0
                         : static_cast<std::uint8_t>(std::lround(255 * (value - low) / (high - low))));
  data::TiffWriter file(path, data::TiffCompression::deflate, pixels.size(),
                        fmt::format("series {}, model {} {}: black {:.6g}, white {:.6g}; pixel {:.6g} m",
                                    facts.series, facts.model, facts.version, low, high, facts.pixel));
  file.add_page(pixels, picture.width, picture.height);
  file.close();
}

}  // namespace superstep::edge
