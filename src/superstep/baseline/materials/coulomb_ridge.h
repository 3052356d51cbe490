// Energies of molecular clusters by kernel ridge regression on sorted Coulomb matrices (M. Rupp, A.
// Tkatchenko, K.-R. Mueller and O. A. von Lilienfeld, Phys. Rev. Lett. 108, 058301 (2012); the Laplacian
// kernel as in K. Hansen et al., J. Chem. Theory Comput. 9, 3404 (2013)).
#pragma once

#include <Eigen/Dense>
#include <filesystem>
#include <vector>

#include "superstep/base/thread_pool.h"
#include "superstep/baseline/baseline.h"
#include "superstep/file/atoms/configuration.h"

namespace superstep::baseline {

struct LabelledCluster {
  data::Configuration configuration;
  double energy = 0;  // eV
};
// Water clusters (O H H of one molecule after the other) of an extended XYZ file with energies, or of an HDF5
// file with z, pos and energy. Throws Error that names file and frame.
std::vector<LabelledCluster> read_clusters(const std::filesystem::path& path);

// The upper triangle of the Coulomb matrix, padded with zeros to `most_atoms`: 0.5 Z^2.4 on the diagonal, Z
// Z'/r beside it (r in A), rows sorted by falling norm. It does not change when the cluster is turned, moved
// or its atoms are exchanged.
std::vector<float> sorted_coulomb_matrix(const data::Configuration& configuration, int most_atoms);

// L1 distances of every row of `a` to every row of `b` (descriptors of one length).
Eigen::MatrixXd l1_distances(const std::vector<std::vector<float>>& a,
                             const std::vector<std::vector<float>>& b, ThreadPool& pool);

Entry schnet_baseline();

}  // namespace superstep::baseline
