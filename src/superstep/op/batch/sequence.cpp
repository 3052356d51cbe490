#include <algorithm>

#include "superstep/op/batch/rules.h"
#include "superstep/op/core/batch_axis.h"

namespace superstep::op::batch {
namespace {

// Is input `i` left out, per sample along `axis`, or a constant that is the same for all samples?
bool carries_samples_along(const BatchSite& site, std::size_t i, int axis) {
  if (!site.has(i) || site.inputs[i] == along(axis)) return true;
  return site.is(i, BatchKind::constant) && (site.inputs[i].varies >> axis & 1) == 0;
}

}  // namespace

// X, W, R, B, sequence_lens, initial_h[, initial_c, P]. Layout 0 has X [time, N, ...], states
// [directions, N, ...] and Y [time, directions, N, ...]; layout 1 has N first everywhere.
BatchAxis recurrent(const BatchSite& site) {
  const bool samples_first = site.node.attributes.integer("layout", 0) != 0;
  const int axis = samples_first ? 0 : 1;
  if (site.inputs[0] != along(axis)) return mixes("takes samples for steps of time");
  for (std::size_t i : {1u, 2u, 3u, 7u})
    if (site.has(i) && !site.is(i, BatchKind::constant))
      return mixes("uses samples as the weights of others");
  const bool states = carries_samples_along(site, 4, 0) && carries_samples_along(site, 5, axis) &&
                      carries_samples_along(site, 6, axis);
  if (!states) return mixes("treats samples by their place in the batch");
  return along(samples_first ? 0 : site.output == 0 ? 2 : 1);
}

namespace {

// Of the gradient of a recurrent operator: where X, states and what is shaped like Y lie among its inputs,
// laid out as that operator's; and weights, whose gradients are sums over samples.
struct RecurrentPlaces {
  std::vector<std::size_t> weights, of_sequence, of_y, of_samples;
  std::vector<std::size_t> weight_outputs;
};
BatchAxis gradient_of_recurrent(const BatchSite& site, const RecurrentPlaces& places) {
  const bool samples_first = site.node.attributes.integer("layout", 0) != 0;
  const int axis = samples_first ? 0 : 1, y_axis = samples_first ? 0 : 2;
  for (std::size_t i : places.weights)
    if (site.has(i) && !site.is(i, BatchKind::constant))
      return mixes("uses samples as the weights of others");
  const auto carry = [&](const std::vector<std::size_t>& inputs, int along_axis) {
    return std::ranges::all_of(inputs,
                               [&](std::size_t i) { return carries_samples_along(site, i, along_axis); });
  };
  if (!carry(places.of_sequence, axis) || !carry(places.of_y, y_axis) || !carry(places.of_samples, 0))
    return mixes("takes samples for steps of time");
  const bool of_weight = std::ranges::find(places.weight_outputs, site.output) != places.weight_outputs.end();
  return of_weight ? reduced_over_batch() : along(axis);
}

}  // namespace

// X W R B initial_h initial_c Y dY dY_h dY_c, laid out as those of the LSTM.
BatchAxis lstm_gradient(const BatchSite& site) {
  static const RecurrentPlaces places{.weights = {1, 2, 3},
                                      .of_sequence = {0, 4, 5, 8, 9},
                                      .of_y = {6, 7},
                                      .of_samples = {},
                                      .weight_outputs = {1, 2, 3}};
  return gradient_of_recurrent(site, places);
}

// X W R B sequence_lens initial_h initial_c P Y dY dY_h dY_c.
BatchAxis recurrent_gradient(const BatchSite& site) {
  static const RecurrentPlaces places{.weights = {1, 2, 3, 7},
                                      .of_sequence = {0, 5, 6, 10, 11},
                                      .of_y = {8, 9},
                                      .of_samples = {4},
                                      .weight_outputs = {1, 2, 3, 6}};
  return gradient_of_recurrent(site, places);
}

// Q, K, V, mask, past: whatever depends on samples has them first.
BatchAxis attention(const BatchSite& site) {
  for (const BatchAxis& input : site.inputs)
    if (input.kind != BatchKind::constant && input != along(0))
      return mixes("looks from one sample at others");
  const bool all = site.inputs[0] == along(0) && site.inputs[1] == along(0) && site.inputs[2] == along(0);
  return all ? along(0) : mixes("looks from one sample at others");
}

}  // namespace superstep::op::batch
