// Classes of images by hand-made features and a linear classifier.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "superstep/base/tensor.h"
#include "superstep/baseline/baseline.h"

namespace superstep::baseline {

struct LabelledImages {
  Tensor images;  // u8 [n, channels, height, width]
  std::vector<int> labels;
  int classes = 0;

  std::int64_t count() const { return images.shape()[0]; }
  int height() const { return static_cast<int>(images.shape()[2]); }
  int width() const { return static_cast<int>(images.shape()[3]); }
  std::span<const std::uint8_t> planes(std::int64_t k) const {
    const auto size = static_cast<std::size_t>(images.element_count() / count());
    return images.as<std::uint8_t>().subspan(static_cast<std::size_t>(k) * size, size);
  }
};

// The share of the images `others` whose class a linear support vector machine finds that was fitted to
// oriented gradients of the images `known`. Throws what fit_linear_svm() throws, and Error (interrupted).
double gradient_accuracy(const LabelledImages& images, std::span<const std::int64_t> known,
                         std::span<const std::int64_t> others, ThreadPool& pool);

// One for every workload that classifies pictures, by its name.
Entry cifar10_classifier();
Entry resnet50_classifier();
Entry efficientnet_b0_classifier();
Entry efficientnet_b4_classifier();
Entry mobilenet_v3_small_classifier();
Entry mobilenet_v3_large_classifier();
Entry vit_base_classifier();
Entry resnext101_classifier();

}  // namespace superstep::baseline
