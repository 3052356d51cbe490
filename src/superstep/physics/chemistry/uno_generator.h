// Response of tumour cell lines to drugs (workload uno).
//
// A row is a function of (seed, cell, drug): the area under a Hill curve, measured with noise and with the
// offset of one of five studies. The features of a row are those of its cell and its drug; the default layout
// stores the two tables once and an index into each for every row, so that twenty million rows need no more
// than their labels. layout=dense stores the features in every row, as a stress test of input; layout=pandas
// does so in the frames of the public benchmark (x_train_0, x_train_1, y_train, and the same for val and
// test).
#pragma once

#include "superstep/physics/generator.h"

namespace superstep::data {

// .tsv and .csv hold Sample, Drug1, Study and AUC; anything else is HDF5.
GeneratorEntry uno_generator();

}  // namespace superstep::data
