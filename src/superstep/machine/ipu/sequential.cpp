// Operators that are chains of supersteps: gathers, recurrent layers, blocked linear algebra.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "superstep/machine/ipu/operators.h"
#include "superstep/machine/ipu/superstep_cost.h"
#include "superstep/machine/ipu/vertex_cycles.h"

namespace superstep::machine::ipu {
namespace {

std::int64_t whole(double value) { return static_cast<std::int64_t>(std::ceil(value)); }

struct GatherShare {
  double columns = 1, rows = 1;  // of the table, on one tile
  double row_splits = 1;
  double indices = 1;  // that a tile looks at
  double index_splits = 1;
};

// Rows are cut into column slices of at least 8 bytes; the tiles that hold a slice share its rows, its
// indices, or both: then each has a copy of the slice's rows.
std::vector<GatherShare> gather_shares(const Hardware& hardware, const Gather& work) {
  const double tiles = static_cast<double>(hardware.tiles);
  const double grain = 8.0 / static_cast<double>(bytes_of(work.element));
  const double slices = std::min(tiles, std::ceil(static_cast<double>(work.row_elements) / grain));
  const auto holders = static_cast<std::int64_t>(std::max(1.0, std::floor(tiles / slices)));
  std::vector<GatherShare> shares;
  for (std::int64_t splits = 1; splits <= std::min(holders, work.indices); ++splits) {
    GatherShare share;
    share.index_splits = static_cast<double>(splits);
    share.row_splits = std::min(static_cast<double>(work.table_rows), static_cast<double>(holders / splits));
    share.columns = std::ceil(static_cast<double>(work.row_elements) / slices);
    share.rows = std::ceil(static_cast<double>(work.table_rows) / share.row_splits);
    share.indices = std::ceil(static_cast<double>(work.indices) / share.index_splits);
    shares.push_back(share);
  }
  return shares;
}

bool fits(const Hardware& hardware, const Plan& plan) {
  return plan.bytes.total() <= static_cast<double>(hardware.tile_bytes);
}

template <class PlanOf>
Plan fastest(const Hardware& hardware, const Gather& work, PlanOf plan_of) {
  Plan best;
  for (const GatherShare& share : gather_shares(hardware, work)) {
    Plan plan = plan_of(share);
    plan.tiles = hardware.tiles;
    plan.partition = fmt::format("columns {:.0f}, rows {:.0f}, indices {:.0f}",
                                 std::ceil(static_cast<double>(work.row_elements) / share.columns),
                                 share.row_splits, share.index_splits);
    const bool better = best.tiles == 0 || plan.cycles.total() < best.cycles.total();
    if (best.tiles == 0 || (fits(hardware, plan) && better)) best = plan;
  }
  return best;
}

// Code of a slicing vertex with its control, and of one that picks elements, in bytes. No source: chosen, a
// small part of a tile whatever they are.
constexpr double slice_code_bytes = 400, pick_code_bytes = 200;

Plan gather_with(const Hardware& hardware, const Gather& work, const GatherShare& share) {
  const double bytes = static_cast<double>(bytes_of(work.element));
  Plan plan{.vertex = "multi-slice", .cycles = program_cycles(hardware)};
  const double worker =
      static_cast<double>(gather_worker_cycles(whole(share.indices / static_cast<double>(hardware.workers)),
                                               whole(share.columns), hardware.vector_width(work.element)));
  const double table = share.rows * share.columns * bytes;
  const double copied = share.index_splits > 1 ? table : 0;
  plan.cycles +=
      superstep_cycles(hardware, static_cast<double>(hardware.workers) * worker, 4 * share.indices + copied);
  const double results = share.indices * share.columns;
  if (share.row_splits > 1)
    plan.cycles +=
        superstep_cycles(hardware,
                         static_cast<double>(reduce_cycles(hardware, whole(results / share.row_splits),
                                                           whole(share.row_splits), work.element)),
                         results * bytes);
  plan.bytes = {.operands = table + 4 * share.indices,
                .temporary = copied + 2 * results * bytes,
                .code = slice_code_bytes};
  // Rows lie apart, and a tile that is to find any of them has its columns of all.
  plan.bytes.pieces = plan.bytes.partners =
      std::min(static_cast<double>(work.table_rows), static_cast<double>(hardware.tiles));
  return plan;
}

// Each worker walks over all of a tile's indices and adds the rows that are its own; copies of a slice are
// summed in the end.
Plan scatter_with(const Hardware& hardware, const Gather& work, const GatherShare& share) {
  const double bytes = static_cast<double>(bytes_of(work.element));
  Plan plan{.vertex = "multi-update-add", .cycles = program_cycles(hardware)};
  const double worker = static_cast<double>(
      gather_worker_cycles(whole(share.indices), whole(share.columns), hardware.vector_width(work.element)));
  const double received = (4 + share.columns * bytes) * share.indices, table = share.rows * share.columns;
  plan.cycles += superstep_cycles(hardware, static_cast<double>(hardware.workers) * worker, received);
  if (share.index_splits > 1)
    plan.cycles +=
        superstep_cycles(hardware,
                         static_cast<double>(reduce_cycles(hardware, whole(table / share.index_splits),
                                                           whole(share.index_splits), work.element)),
                         table * bytes);
  plan.bytes = {.operands = table * bytes, .temporary = received + table * bytes, .code = slice_code_bytes};
  return plan;
}

}  // namespace

Plan plan_gather(const Hardware& hardware, const Gather& work) {
  return fastest(hardware, work,
                 [&](const GatherShare& share) { return gather_with(hardware, work, share); });
}

Plan plan_scatter_add(const Hardware& hardware, const Gather& work) {
  return fastest(hardware, work,
                 [&](const GatherShare& share) { return scatter_with(hardware, work, share); });
}

// Lines are dealt out; where there are more tiles than lines, several tiles may have a line's data each and
// share its picks.
Plan plan_pick(const Hardware& hardware, const Pick& work) {
  const double tiles = static_cast<double>(hardware.tiles),
               bytes = static_cast<double>(bytes_of(work.element));
  const double lines = std::ceil(work.lines / tiles);
  const double most = work.copies ? 1 : std::max(1.0, std::min(work.picks, std::floor(tiles / work.lines)));
  Plan best;
  for (double sharers = 1;; sharers = std::min(most, sharers * 2)) {
    const double picks = lines * std::ceil(work.picks / sharers);
    const double received = sharers > 1 ? work.extent * bytes * (1 - 1 / sharers) : 0;
    const double copied =
        work.copies ? lines * work.extent * bytes / static_cast<double>(hardware.memcpy_rate) : 0;
    Plan plan{.vertex = work.copies ? "scatter elements" : "gather elements",
              .cycles = program_cycles(hardware)};
    plan.tiles = std::min(hardware.tiles, whole(work.lines * sharers));
    plan.partition = fmt::format("lines {:.0f}, picks {:.0f}", std::min(work.lines, tiles), sharers);
    plan.cycles += superstep_cycles(hardware,
                                    copied + static_cast<double>(elementwise_cycles(
                                                 hardware, whole(picks), hardware.vector_f32, 8, 41, 2)),
                                    received);
    plan.bytes = {.operands = lines * work.extent * bytes + (4 + bytes) * picks,
                  .temporary = received,
                  .code = pick_code_bytes};
    if (best.tiles == 0 || plan.cycles.total() < best.cycles.total()) best = plan;
    if (sharers >= most) return best;
  }
}

// A worker walks over its part of a line and keeps the best in a heap; then parts of a line meet two by two,
// each meeting a superstep in which a tile receives what another one kept.
Plan plan_sorting(const Hardware& hardware, const Sorting& work) {
  // Cycles to load, compare and branch, those of a place that an element moves by, and bytes of code. No
  // source: chosen, as instructions of such a loop.
  constexpr double compare_cycles = 4, move_cycles = 6, sorting_code_bytes = 300;
  const double tiles = static_cast<double>(hardware.tiles), workers = static_cast<double>(hardware.workers);
  const double lines = std::ceil(work.lines / tiles);  // of a tile
  const double sharers = std::clamp(std::floor(tiles / work.lines), 1.0, std::ceil(work.length / work.kept));
  const double part = std::ceil(work.length / sharers), kept = std::min(work.kept, part);
  // Of a line in no order k (1 + ln(length / k)) elements are among the best k when they are met.
  const double moves = kept * (1 + std::log(part / kept)) * (1 + std::log2(kept));
  const double worker = std::ceil(lines / workers) * (part * compare_cycles + moves * move_cycles);
  const double bytes = static_cast<double>(bytes_of(work.element)), pair = bytes + 4;  // with its place
  Plan plan{.vertex = "sorting", .cycles = program_cycles(hardware)};
  plan.tiles = std::min(hardware.tiles, whole(work.lines * sharers));
  plan.partition = fmt::format("lines {:.0f}, parts {:.0f}", std::min(work.lines, tiles), sharers);
  plan.cycles += superstep_cycles(hardware, workers * worker, 0);
  for (double parts = sharers; parts > 1; parts = std::ceil(parts / 2))
    plan.cycles +=
        superstep_cycles(hardware, workers * work.kept * (compare_cycles + move_cycles), work.kept * pair);
  plan.bytes = {.operands = lines * (part * bytes + work.kept * pair),
                .temporary = lines * work.kept * pair,
                .code = sorting_code_bytes};
  return plan;
}

namespace {

Plan repeated(const Hardware& hardware, Plan plan, double times) {
  plan.cycles.control += hardware.step_cycles;
  plan.cycles = times * plan.cycles;
  plan.macs *= times;
  return plan;
}

// Gates of one step: activations and their products, a few compute sets in a row.
Plan gates_of(const Hardware& hardware, const Recurrent& work, int sets) {
  const double state = static_cast<double>(work.batch * work.hidden);
  Plan plan = plan_elementwise(hardware, {static_cast<double>(work.gates) * state, 2, work.element, 8});
  for (int i = 1; i < sets; ++i)
    plan.cycles += plan_elementwise(hardware, {state, 2, work.element, 4}).cycles;
  plan.cycles.control = hardware.program_cycles;
  return plan;
}

Plan products_of_step(const Hardware& hardware, const Recurrent& work, Pass pass) {
  const std::int64_t width = work.inputs + work.hidden;
  const auto product = [&](std::int64_t gates) {
    return plan_convolution(hardware, matrix_product(1, work.batch, width, gates * work.hidden, work.element),
                            pass);
  };
  if (work.gates != 3) return product(work.gates);
  return in_sequence(product(2), product(1));  // the candidate of a GRU needs its reset gate first
}

}  // namespace

Plan plan_recurrent(const Hardware& hardware, const Recurrent& work) {
  const double steps = static_cast<double>(work.steps);
  const double state = static_cast<double>(work.batch * work.hidden);
  const double bytes = static_cast<double>(bytes_of(work.element));
  Plan step = in_sequence(products_of_step(hardware, work, Pass::forward),
                          gates_of(hardware, work, work.gates == 3 ? 5 : 4));
  step.cycles += plan_rearrangement(hardware, state * bytes * 2, 4).cycles;
  Plan plan = repeated(hardware, step, steps);
  if (work.training) {
    Plan back = in_sequence(products_of_step(hardware, work, Pass::data_gradient),
                            gates_of(hardware, work, work.gates == 3 ? 8 : 6));
    back = in_sequence(back, products_of_step(hardware, work, Pass::weight_gradient));
    const double weights = static_cast<double>((work.inputs + work.hidden) * work.gates * work.hidden);
    back.cycles += plan_elementwise(hardware, {weights, 2, work.element, 2}).cycles;
    plan = in_sequence(plan, repeated(hardware, back, steps));
  }
  return plan;
}

namespace {

Plan linear_algebra(const Hardware& hardware, const char* vertex, const Blocked& work) {
  Plan plan;
  plan.vertex = vertex;
  plan.tiles = std::min(hardware.tiles, work.batch);
  plan.partition = "a matrix a tile; blocks in turn";
  plan.cycles = program_cycles(hardware);
  plan.bytes.operands = static_cast<double>(work.size * work.size * bytes_of(work.element));
  plan.bytes.elements = work.size > work.block ? 3 : 2;
  return plan;
}

Plan block_product(const Hardware& hardware, const Blocked& work, std::int64_t rows, std::int64_t columns) {
  return plan_convolution(hardware, matrix_product(work.batch, rows, work.block, columns, work.element),
                          Pass::forward);
}

}  // namespace

// Right-looking: a diagonal block is factorised and inverted on one worker, the rest is products.
Plan plan_cholesky(const Hardware& hardware, const Blocked& work) {
  Plan plan = linear_algebra(hardware, "Cholesky", work);
  const double workers = static_cast<double>(hardware.workers);
  const std::int64_t block = std::min(work.block, work.size);
  for (std::int64_t done = block;; done += block) {
    plan.cycles +=
        superstep_cycles(hardware, workers * static_cast<double>(cholesky_worker_cycles(block)), 1);
    const std::int64_t left = work.size - done;
    if (left <= 0) break;
    plan.cycles +=
        superstep_cycles(hardware, workers * static_cast<double>(triangular_inverse_worker_cycles(block)), 1);
    plan.cycles +=
        block_product(hardware, work, left, block).cycles + block_product(hardware, work, left, left).cycles;
  }
  if (work.upper && work.element == ElementType::f16)
    for (int i = 0; i < 2; ++i)
      plan.cycles += rearrange_cycles(hardware, static_cast<double>(2 * work.size * work.size), 2);
  return plan;
}

// A row at a time: divide, send to all that need it, subtract.
Plan plan_triangular_solve(const Hardware& hardware, const Blocked& work) {
  Plan plan = linear_algebra(hardware, "triangular solve", work);
  const double columns = static_cast<double>(work.columns), batch = static_cast<double>(work.batch);
  const double bytes = static_cast<double>(bytes_of(work.element));
  // What a row adds to all others is an outer product when there are several columns.
  const Plan outer = plan_convolution(
      hardware, matrix_product(work.batch, work.size, 1, work.columns, work.element), Pass::forward);
  if (work.columns > 1) plan.bytes.interleaved = outer.bytes.interleaved;
  for (std::int64_t row = 0; row < work.size; ++row) {
    const double rest = static_cast<double>(work.size - row);
    Plan divide = plan_elementwise(hardware, {batch * columns, 2, work.element, 3, bytes});
    Plan subtract =
        plan_elementwise(hardware, {batch * columns * rest, 3, work.element, 3, (columns + 1) * bytes});
    plan.cycles += divide.cycles + subtract.cycles;
    plan.cycles.control -= 2 * hardware.program_cycles;
    if (work.columns > 1) plan.cycles += outer.cycles;
    plan.cycles.control += hardware.step_cycles;
  }
  return plan;
}

}  // namespace superstep::machine::ipu
