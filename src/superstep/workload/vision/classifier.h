// What the classifiers of photographs share: options, ports, training defaults and data.
#pragma once

#include "superstep/workload/layers.h"
#include "superstep/workload/workload.h"

namespace superstep::workload {

struct ClassifierSizes {
  std::int64_t size, classes;
};
// The options size (a multiple of 32) and classes.
ClassifierSizes classifier_sizes(const Options& options);

// image f32 [N, 3, size, size].
Var image_input(Builder& builder, std::int64_t batch, std::int64_t size);

// [N, C, H, W] -> [N, C], the mean of each channel.
Var pooled(Builder& builder, Var x);

// `width` times `factor`, rounded to a multiple of 8 that is at least nine tenths of it (M. Sandler et al.,
// MobileNetV2, CVPR 2018).
std::int64_t rounded_width(double width, std::int64_t divisor = 8);

// Squeeze and excitation (J. Hu et al., CVPR 2018): every channel scaled by a gate made of all channels'
// means, through `squeezed` numbers.
Var squeeze_excite(Layers& layers, Var x, const std::string& name, std::int64_t squeezed,
                   Var (Layers::*inner)(Var), Var (*gate)(Var));

// Softmax and cross entropy of the labels, of which `smoothing` is spread over all classes.
transform::LossSpec loss_of_labels(double smoothing = 0);

// What EfficientNet and MobileNetV3 were trained by: RMSProp whose rate, after a warm-up of five epochs,
// falls by 3 % over each 2.4, smoothed labels, averages of the weights (M. Tan, Q. Le, ICML 2019). `rate` is
// of batches of 4,096; it is proportional to the batch, which is chosen here.
Recipe by_rmsprop(double rate);

// A workload without name, summary, builder and number of parameters.
Workload classifier(std::int64_t size);

}  // namespace superstep::workload
