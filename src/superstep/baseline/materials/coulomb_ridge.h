// Energies of molecular clusters by kernel ridge regression on sorted Coulomb matrices (M. Rupp, A.
// Tkatchenko, K.-R. Mueller and O. A. von Lilienfeld, Phys. Rev. Lett. 108, 058301 (2012); the Laplacian
// kernel as in K. Hansen et al., J. Chem. Theory Comput. 9, 3404 (2013)).
#pragma once

#include <Eigen/Dense>
#include <filesystem>
#include <string>
#include <vector>

#include "superstep/base/thread_pool.h"
#include "superstep/baseline/baseline.h"
#include "superstep/baseline/regression.h"
#include "superstep/file/atoms/configuration.h"

namespace superstep::baseline {

struct LabelledCluster {
  data::Configuration configuration;
  double energy = 0;  // eV
  std::string place;  // where it was read: "frames.xyz, frame 3"
};
// Water clusters (O H H of one molecule after the other) of an extended XYZ file with energies, or of an HDF5
// file with z, pos and energy. Throws Error that names file and frame, as the network's does.
std::vector<LabelledCluster> read_clusters(const std::filesystem::path& path);

// The upper triangle of the Coulomb matrix, padded with zeros to `most_atoms`: 0.5 Z^2.4 on the diagonal, Z
// Z'/r beside it (r in A), rows sorted by falling norm. It does not change when the cluster is turned, moved
// or its atoms are exchanged.
std::vector<float> sorted_coulomb_matrix(const data::Configuration& configuration, int most_atoms);

// L1 distances of every row of `a` to every row of `b` (descriptors of one length).
Eigen::MatrixXd l1_distances(const std::vector<std::vector<float>>& a,
                             const std::vector<std::vector<float>>& b, ThreadPool& pool);

// Energies (eV) learnt from clusters of known energy: a line in the number of molecules, which is oxygens,
// and on top of it the kernel ridge regression, whose width and strength have the least error on the last
// quarter.
class CoulombRidge {
 public:
  // No cluster, here or later, has more than `most_atoms`. Throws Error (invalid_argument) on less than
  // eight.
  CoulombRidge(const std::vector<LabelledCluster>& training, int most_atoms, ThreadPool& pool);
  Eigen::VectorXd line(const std::vector<LabelledCluster>& clusters) const;
  Eigen::VectorXd predict(const std::vector<LabelledCluster>& clusters, ThreadPool& pool) const;

 private:
  int most_atoms_;
  LinearModel line_;
  std::vector<std::vector<float>> known_;
  double width_ = 1;
  Eigen::VectorXd weights_;
};

double mean_error_a_molecule(const std::vector<LabelledCluster>& clusters, const Eigen::VectorXd& predicted);

Entry schnet_baseline();

}  // namespace superstep::baseline
