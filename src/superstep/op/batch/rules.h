// Where the samples of a batch are in the results of an operator: a rule each, which its definition names
// (Traits::batch). At least one input of the node that a rule is asked about depends on samples, and none
// mixes them. An operator that none of these describes writes its own in its family's file.
#pragma once

#include "superstep/op/core/traits.h"

namespace superstep::op::batch {

// Element by element, with broadcasting; of sums over the batch, the second line says what stays one.
BatchAxis elementwise(const BatchSite& site);
BatchAxis additive(const BatchSite& site);    // Add, Neg: linear in all inputs together
BatchAxis identity(const BatchSite& site);    // additive, unless it is marked as a loss of the whole batch
BatchAxis multiplied(const BatchSite& site);  // Mul: linear in each of them
BatchAxis divided(const BatchSite& site);     // Div: linear in the first

// Products, convolutions, pooling.
BatchAxis gemm(const BatchSite& site);
BatchAxis matmul(const BatchSite& site);
BatchAxis windowed(const BatchSite& site);  // one kernel over every sample: x [N, C, ...], the rest constant
BatchAxis resized(const BatchSite& site);   // the same, of other axes
BatchAxis quantization(const BatchSite& site);     // with constant scales along `axis`
BatchAxis weight_gradient(const BatchSite& site);  // sums over axis 0 of both inputs
BatchAxis sample_by_sample(
    const BatchSite& site);  // axis 0 of all that depends on samples, and of the result

// Views and movement.
BatchAxis view(const BatchSite& site);  // other extents, the same order
BatchAxis transpose(const BatchSite& site);
BatchAxis expand(const BatchSite& site);
BatchAxis same_extent(const BatchSite& site);  // moves nothing along an axis whose extent stays
BatchAxis slice(const BatchSite& site);
BatchAxis pad(const BatchSite& site);
BatchAxis split(const BatchSite& site);
BatchAxis concat(const BatchSite& site);
BatchAxis gather(const BatchSite& site);
BatchAxis along_one_axis(const BatchSite& site);  // element by element along every axis but `axis`
BatchAxis scatter_rows(const BatchSite& site);
BatchAxis rows_of_packs(const BatchSite& site);  // by indices [packs..., entries], pack by pack
BatchAxis cumulative(const BatchSite& site);     // along the axis of input 1
BatchAxis triangle(const BatchSite& site);       // within the last two axes
BatchAxis shape_only(const BatchSite& site);     // reads no element

// Rows: reductions over input 1 or attribute `axes`, normalisations, losses.
BatchAxis sum(const BatchSite& site);
BatchAxis mean(const BatchSite& site);
BatchAxis other_reduction(const BatchSite& site);  // not linear
BatchAxis arg_reduction(const BatchSite& site);
BatchAxis along_axis(const BatchSite& site);    // within the lines along `axis`: Softmax
BatchAxis from_axis_on(const BatchSite& site);  // within all axes from `axis` on: LayerNormalization
BatchAxis layer_normalization_gradient(const BatchSite& site);
BatchAxis per_picture(const BatchSite& site);  // x [N, C, ...], each sample by itself, the rest constant
BatchAxis batch_normalization(const BatchSite& site);
BatchAxis channel_moments(const BatchSite& site);
BatchAxis channel_sums(const BatchSite& site);
BatchAxis classification_loss(const BatchSite& site);

// Sequences.
BatchAxis recurrent(const BatchSite& site);
BatchAxis lstm_gradient(const BatchSite& site);
BatchAxis recurrent_gradient(const BatchSite& site);
BatchAxis attention(const BatchSite& site);

}  // namespace superstep::op::batch
