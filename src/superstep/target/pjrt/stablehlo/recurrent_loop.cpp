#include "superstep/target/pjrt/stablehlo/recurrent_loop.h"

#include "superstep/op/sequence/recurrent_loop.h"
#include "superstep/target/pjrt/stablehlo/directions.h"
#include "superstep/target/pjrt/stablehlo/inlined.h"

namespace superstep::target::stablehlo {
namespace {

using Values = std::vector<Value>;

// Inputs of the gradient behind those of the cell.
constexpr std::size_t cell_inputs = 8;
enum GradientInput : std::size_t { y_in = cell_inputs, dy_in, dh_in, dc_in };

void append(Values& values, const Values& more) { values.insert(values.end(), more.begin(), more.end()); }

Values part(const Values& values, std::size_t begin, std::size_t count) {
  const auto first = values.begin() + static_cast<std::ptrdiff_t>(begin);
  return {first, first + static_cast<std::ptrdiff_t>(count)};
}

// One direction: the graphs of its loop, and what they are given.
class LoopOfDirection {
 public:
  LoopOfDirection(const Site& s, std::string_view cell, const Directions& directions, std::int64_t number)
      : s_(s),
        emit_(s.emit),
        directions_(directions),
        number_(number),
        loop_(op::recurrent_loop(cell, s.attributes(), input_types(s), static_cast<int>(number))),
        states_(loop_.has_cell ? 2 : 1) {
    for (std::size_t i = 0; i < cell_inputs; ++i)
      if (s.has(i)) inputs_.push_back(s.in(i));
    const Values made = InlinedGraph(loop_.before)(emit_, inputs_);
    rows_ = made[0];
    start_ = part(made, 1, states_);
    kept_ = part(made, 1 + states_, loop_.kept);
  }

  // Y of all steps, then the last states.
  Values forward() const {
    const InlinedGraph step(loop_.step);
    Values carried = start_;
    append(carried, {room(directions_.sizes().hidden), rows_});
    append(carried, kept_);
    Values end = over_steps(carried, loop_.backwards, [&](const Values& now, const Value& t) {
      const Value y = now[states_], rows = now[states_ + 1];
      const Values made = step(emit_, of_step(t, step_at(emit_, rows, t), part(now, 0, states_),
                                              part(now, states_ + 2, loop_.kept)));
      Values next = part(made, 1, states_);
      next.push_back(with_step(emit_, y, made[0], t));
      return next;
    });
    Values result = {in_order(end[states_])};
    append(result, part(end, 0, states_));
    return result;
  }

  // The cotangents of the node's floating inputs that are given, in their order.
  Values backward() const {
    const InlinedGraph step(loop_.step_back);
    const Values before = states_before_steps();
    const Values end =
        over_steps(carried_back(before), !loop_.backwards, [&](const Values& now, const Value& t) {
          // Cotangents of the states, of all rows and of what is kept; then what is only read.
          const std::size_t read = states_ + 1 + loop_.kept_floats;
          Values states;
          for (std::size_t i = 0; i < states_; ++i) states.push_back(step_at(emit_, now[read + 2 + i], t));
          Values given =
              of_step(t, step_at(emit_, now[read], t), states, part(now, read + 2 + states_, loop_.kept));
          given.push_back(step_at(emit_, now[read + 1], t));
          append(given, part(now, 0, states_));
          const Values made = step(emit_, given);
          Values next = part(made, 1, states_);
          next.push_back(with_step(emit_, now[states_], made[0], t));
          for (std::size_t i = 0; i < loop_.kept_floats; ++i)
            next.push_back(emit_.add(now[states_ + 1 + i], made[1 + states_ + i]));
          return next;
        });
    Values given = inputs_;
    given.push_back(end[states_]);
    append(given, part(end, 0, states_));
    append(given, part(end, states_ + 1, loop_.kept_floats));
    return InlinedGraph(loop_.before_back)(emit_, given);
  }

 private:
  static std::vector<std::optional<op::ValueType>> input_types(const Site& s) {
    std::vector<std::optional<op::ValueType>> types(cell_inputs);
    for (std::size_t i = 0; i < cell_inputs; ++i)
      if (s.has(i)) types[i] = op::ValueType{s.in(i).element(), s.in(i).shape()};
    return types;
  }

  Value room(std::int64_t width) const {
    const RecurrentSizes& sizes = directions_.sizes();
    return emit_.splat(rows_.element(), {sizes.steps, sizes.batch, width}, 0);
  }

  // Inputs of the graphs of a step.
  Values of_step(const Value& t, const Value& row, const Values& states, const Values& kept) const {
    Values given = {emit_.convert(t, ElementType::i64), row};
    append(given, states);
    append(given, kept);
    return given;
  }

  // `body` gives the next values of the first of `carried`; those behind stay as they are.
  Values over_steps(const Values& carried, bool backwards,
                    const std::function<Values(const Values& now, const Value& t)>& body) const {
    const std::int64_t steps = directions_.sizes().steps;
    return count_steps(emit_, steps, carried, [&](const Values& all) {
      const Values now(all.begin() + 1, all.end());
      Values next = body(now, place_of_step(emit_, all[0], steps, backwards));
      append(next, part(now, next.size(), now.size() - next.size()));
      return next;
    });
  }

  Value in_order(const Value& y) const {
    Values given = {y};
    if (loop_.has_lengths) given.push_back(kept_.back());
    return InlinedGraph(loop_.in_order)(emit_, given)[0];
  }

  // The states that each step began with. Y says them of a cell without a second state, where all sequences
  // are as long.
  Values states_before_steps() const {
    if (!loop_.has_cell && !loop_.has_lengths && s_.has(y_in))
      return {states_before(emit_, directions_.outputs(y_in, number_), start_[0], loop_.backwards)};
    const InlinedGraph step(loop_.step);
    Values carried = start_;
    for (std::size_t i = 0; i < states_; ++i) carried.push_back(room(directions_.sizes().hidden));
    carried.push_back(rows_);
    append(carried, kept_);
    const Values end = over_steps(carried, loop_.backwards, [&](const Values& now, const Value& t) {
      const Values states = part(now, 0, states_);
      const Values made = step(emit_, of_step(t, step_at(emit_, now[2 * states_], t), states,
                                              part(now, 2 * states_ + 1, loop_.kept)));
      Values next = part(made, 1, states_);
      for (std::size_t i = 0; i < states_; ++i)
        next.push_back(with_step(emit_, now[states_ + i], states[i], t));
      return next;
    });
    return part(end, states_, states_);
  }

  Values carried_back(const Values& before) const {
    Values carried = {directions_.state(dh_in, number_)};
    if (loop_.has_cell) carried.push_back(directions_.state(dc_in, number_));
    carried.push_back(room(rows_.shape()[2]));
    for (std::size_t i = 0; i < loop_.kept_floats; ++i) carried.push_back(emit_.like(kept_[i], 0));
    append(carried, {rows_, in_order(directions_.outputs(dy_in, number_))});
    append(carried, before);
    append(carried, kept_);
    return carried;
  }

  const Site& s_;
  Emitter& emit_;
  const Directions& directions_;
  std::int64_t number_;
  op::RecurrentLoop loop_;
  std::size_t states_;  // how many
  Values inputs_, start_, kept_;
  Value rows_;
};

}  // namespace

Values recurrent_in_a_loop(const Site& site, std::string_view cell) {
  const Directions directions(site, 0, 2);
  std::vector<Values> found;  // by result, of each direction
  for (std::int64_t d = 0; d < directions.sizes().directions; ++d) {
    const Values made = LoopOfDirection(site, cell, directions, d).forward();
    found.resize(made.size());
    for (std::size_t i = 0; i < made.size(); ++i) found[i].push_back(made[i]);
  }
  Values results = {directions.stacked_outputs(found[0])};
  for (std::size_t i = 1; i < found.size(); ++i) results.push_back(directions.stacked_states(found[i]));
  return results;
}

Values recurrent_gradient_in_a_loop(const Site& site) {
  const Directions directions(site, 0, 2);
  const std::string cell = site.attributes().text("cell", "");
  Values sum;
  for (std::int64_t d = 0; d < directions.sizes().directions; ++d) {
    const Values made = LoopOfDirection(site, cell, directions, d).backward();
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] = site.emit.add(sum[i], made[i]);
    if (sum.empty()) sum = made;
  }
  return sum;
}

}  // namespace superstep::target::stablehlo
