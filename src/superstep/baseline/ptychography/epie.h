// ePIE and rPIE: iterative reconstruction of object and probe from a ptychographic scan.
//
// A. Maiden and J. Rodenburg, Ultramicroscopy 109, 1256 (2009); A. Maiden, D. Johnson and P. Li, Optica 4,
// 736 (2017). At every point the exit wave P O is given the measured modulus in the far field, and the
// difference is put back into the object and, from some pass on, into the probe.
//
// The order of the points is part of the method: each sees what the one before it left. Points whose
// windows do not overlap leave each other's part of the object alone, so that such a group is worked on at
// once. Groups depend on positions and seed alone and probe updates are added in the group's order:
// the result has the same bits on any number of threads. When all windows overlap, groups have one point.
#pragma once

#include <complex>
#include <cstdint>
#include <vector>

#include "superstep/base/random.h"
#include "superstep/base/thread_pool.h"
#include "superstep/physics/xray/ptycho_probe.h"
#include "superstep/physics/xray/ptycho_scan.h"

namespace superstep::baseline {

// The measurement of one scan. Patterns have frequency zero first, as transforms have it.
struct PtychoData {
  int n = 0;                  // pixels along a side of a pattern; even
  int height = 0, width = 0;  // of the object; every window lies inside
  std::vector<data::Position> positions;
  std::vector<float> modulus;      // [points, n, n]: square roots of counts
  std::vector<std::uint8_t> dead;  // [n, n]: 1 where nothing was measured; empty for none
  double threshold = 0;            // counts below it were written as 0
};

struct EpieSettings {
  int probe_from = 10;        // the first pass (from 0) that refines the probe
  double object_step = 1;     // alpha of the paper
  double probe_step = 1;      // beta
  double regularization = 1;  // of rPIE, in (0, 1]: 1 is ePIE, smaller trusts weakly lit pixels more
  std::uint64_t seed = 1;     // of the order of the points
};

class Epie {
 public:
  // Starts from `object`, height x width, or where that is empty from 1 everywhere. `data` must outlive this.
  // Throws Error (invalid_argument) when sizes disagree, a window leaves the object, or the object is not
  // finite.
  Epie(const PtychoData& data, data::ComplexField probe, const EpieSettings& settings,
       std::vector<std::complex<float>> object = {});
  ~Epie();

  // Visits every point once. Returns sum (|F| - modulus)^2 / sum modulus^2 over all patterns, each taken as
  // it was met.
  double pass(ThreadPool& pool);

  const std::vector<std::complex<float>>& object() const { return object_; }  // height x width
  const data::ComplexField& probe() const { return probe_; }                  // n x n

 private:
  struct Worker;
  double run_group(const std::vector<int>& group, ThreadPool& pool, bool refine);
  double project(int point, Worker& worker) const;
  void put_back(data::Position at, Worker& worker, bool refine);
  float brightest_object(data::Position at) const;
  void change_probe(std::size_t group_size);
  void weigh_object_updates();

  const PtychoData& data_;
  EpieSettings settings_;
  std::vector<std::complex<float>> object_;
  data::ComplexField probe_;
  std::vector<float> object_weight_;  // object_step / ((1 - a) |P|^2 + a max |P|^2), for each probe pixel
  double total_ = 0;                  // sum of all modulus^2
  float dark_modulus_ = 0;            // of a pixel with the middle of the counts that are written as 0
  int passes_ = 0;
  std::vector<Worker> workers_;  // one for each point of a group
};

// The points in the order of a pass, as groups with disjoint windows.
std::vector<std::vector<int>> disjoint_groups(const std::vector<data::Position>& positions, int n,
                                              RandomStream& random);

}  // namespace superstep::baseline
