// Compression by principal components, the linear floor of an image auto-encoder.
#pragma once

#include <Eigen/Dense>

#include "superstep/baseline/baseline.h"

namespace superstep::baseline {

struct PrincipalComponents {
  Eigen::VectorXd mean;    // [pixels]
  Eigen::VectorXd energy;  // eigenvalues of the covariance, falling
  Eigen::MatrixXd basis;   // [pixels, pixels], orthonormal columns in that order
};

// Of the columns of `images` [pixels, images].
PrincipalComponents principal_components(const Eigen::MatrixXd& images);

// The images from their projections on the first `values` components.
Eigen::MatrixXd reconstruct(const PrincipalComponents& components, const Eigen::MatrixXd& images, int values);

// Peak signal to noise, dB, of a mean squared error on a scale of 0 to 1.
double psnr(double mean_squared_error);

Entry pca_compression();  // "image-autoencoder"

}  // namespace superstep::baseline
