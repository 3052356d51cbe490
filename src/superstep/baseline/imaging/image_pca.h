// Compression by principal components, the linear floor of an image auto-encoder.
#pragma once

#include "superstep/baseline/baseline.h"

namespace superstep::baseline {

// Peak signal to noise, dB, of a mean squared error on a scale of 0 to 1; infinite for an error of 0.
double psnr(double mean_squared_error);

Entry image_pca();  // "image-autoencoder"

}  // namespace superstep::baseline
