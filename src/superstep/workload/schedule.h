// How the learning rate moves over a training, as a recipe states it; run/train/schedule.h evaluates it.
#pragma once

#include <cstdint>
#include <string>

namespace superstep::workload {

// Peak: the recipe's learning rate. Epochs count from the first step of the run.
struct Schedule {
  enum class Kind : std::uint8_t {
    constant,
    linear,       // a straight line down to the lowest rate
    cosine,       // half a cosine down to the lowest rate (Loshchilov and Hutter, SGDR, ICLR 2017)
    triangular,   // up and down between the lowest rate and the peak (L. Smith, WACV 2017)
    triangular2,  // the same, every triangle half as high as the one before
    exponential,  // times `factor` over each `period`, step by step
    stairs,       // times `factor` after each `period`
    plateau,      // times `factor` after `patience` epochs in which `monitor` did not become better
  } kind = Kind::constant;

  double final_share = 0;  // of the peak: the lowest rate, of a line and a cosine the last

  // The rate first moves in a straight line to the peak, over a share of all steps or over so many epochs. It
  // begins at `warm_up_from`, which may be above the peak; `by_epoch` keeps it for whole epochs.
  double warm_up_share = 0, warm_up_epochs = 0;
  double warm_up_from = 0;
  bool warm_up_by_epoch = false;

  double period = 0;  // epochs: half a triangle; from one decay to the next
  double factor = 1;

  int patience = 0;          // epochs
  std::string monitor = {};  // of the workload's metrics; empty: its first
  int give_up = 0;           // epochs without a gain after which the training ends; 0: it does not
};

const char* name_of(Schedule::Kind kind);

}  // namespace superstep::workload
