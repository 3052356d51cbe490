// Atoms of a frame in the rows of the model, and their neighbours.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "superstep/base/integers.h"
#include "superstep/file/atoms/clusters.h"
#include "superstep/file/atoms/element.h"
#include "superstep/physics/materials/neighbor_list.h"
#include "superstep/workload/materials/deepmd/deepmd.h"
#include "superstep/workload/packed_samples.h"

namespace superstep::workload {
namespace {

constexpr double one_place = 1e-3;  // A; chosen: no two nuclei of anything come within a hundred times that

struct Neighbour {
  double distance;  // A
  std::int32_t row;
  std::array<std::int16_t, 3> image;
  auto operator<=>(const Neighbour&) const = default;
};

class Placing {
 public:
  Placing(PlacedFrame& placed, const DeepmdSizes& sizes)
      : placed_(placed), sizes_(sizes), atoms_(placed.frame.configuration) {}

  void run() {
    try {
      if (atoms_.elements.empty()) refuse("has no atoms");
      check_positions();
      choose_rows();
      put_inside();
      find_neighbours();
    } catch (const Error& error) {
      if (error.where() == placed_.place) throw;
      throw Error(ErrorCode::bad_file, error.message(), placed_.place, error.hint());
    }
  }

 private:
  [[noreturn]] void refuse(const std::string& message, const std::string& hint = {}) const {
    throw Error(ErrorCode::bad_file, message, placed_.place, hint);
  }

  std::string atom_name(std::size_t atom) const { return data::atom_name(atoms_, atom); }

  void check_positions() const {
    for (std::size_t i = 0; i < atoms_.positions.size(); ++i)
      if (!std::isfinite(data::norm(atoms_.positions[i])))
        refuse(fmt::format("atom {} has coordinates that are not finite", i + 1));
  }

  std::size_t type_of(std::size_t atom) const {
    const auto found = std::ranges::find(sizes_.elements, atoms_.elements[atom]);
    if (found == sizes_.elements.end())
      refuse(fmt::format("atom {} is of an element that is no type of the model", atom_name(atom)),
             "build the model with --set types= that name it");
    return static_cast<std::size_t>(found - sizes_.elements.begin());
  }

  // Rows of a type stand together; within it atoms keep their order.
  void choose_rows() {
    std::vector<std::int64_t> next(sizes_.elements.size(), 0), first(sizes_.elements.size(), 0);
    for (std::size_t t = 1; t < first.size(); ++t) first[t] = first[t - 1] + sizes_.atoms[t - 1];
    for (std::size_t i = 0; i < atoms_.elements.size(); ++i) {
      types_.push_back(type_of(i));
      const std::size_t t = types_.back();
      placed_.row.push_back(first[t] + next[t]++);
    }
    for (std::size_t t = 0; t < next.size(); ++t)
      if (next[t] > sizes_.atoms[t])
        refuse(fmt::format("has {} atoms of {}, the model has room for {}", next[t],
                           data::element_symbol(sizes_.elements[t]), sizes_.atoms[t]),
               "build the model with more --set atoms=");
  }

  // Near the origin single precision has the most digits.
  void put_inside() {
    placed_.inside = atoms_.positions;
    if (!atoms_.cell) return;
    const data::Cell& cell = *atoms_.cell;
    inverse_ = data::inverse_rows(cell);
    for (data::Cartesian& p : placed_.inside)
      p -= std::floor(dot(inverse_[0], p)) * cell.a + std::floor(dot(inverse_[1], p)) * cell.b +
           std::floor(dot(inverse_[2], p)) * cell.c;
  }

  std::array<std::int16_t, 3> image_of(const data::Cartesian& shift) const {
    std::array<std::int16_t, 3> image{};
    for (std::size_t k = 0; k < 3 && atoms_.cell; ++k)
      image[k] = static_cast<std::int16_t>(std::lround(dot(inverse_[k], shift)));
    return image;
  }

  void find_neighbours() {
    const auto types = sizes_.elements.size();
    std::vector<std::vector<Neighbour>> near(types * atoms_.elements.size());
    const auto add = [&](int i, int j, double distance, const std::array<std::int16_t, 3>& image) {
      const auto from = static_cast<std::size_t>(i), to = static_cast<std::size_t>(j);
      near[from * types + types_[to]].push_back(
          {distance, static_cast<std::int32_t>(placed_.row[to]), image});
    };
    for (const auto& [i, j, shift] : data::neighbor_pairs(placed_.inside, atoms_.cell, sizes_.cutoff)) {
      const double distance = data::norm(placed_.inside[static_cast<std::size_t>(j)] + shift -
                                         placed_.inside[static_cast<std::size_t>(i)]);
      if (distance < one_place)
        refuse(fmt::format("atoms {} and {} are at one place", atom_name(static_cast<std::size_t>(i)),
                           atom_name(static_cast<std::size_t>(j))));
      const auto there = image_of(shift), back = image_of(-shift);
      add(i, j, distance, there);
      add(j, i, distance, back);
    }
    write(near);
  }

  void write(std::vector<std::vector<Neighbour>>& near) {
    const auto room = static_cast<std::size_t>(sizes_.all_near());
    const auto rows = static_cast<std::size_t>(sizes_.all_atoms());
    Surroundings& out = placed_.near;
    out.index.assign(rows * room, -1);
    out.image.assign(rows * room * 3, 0);
    const auto types = sizes_.elements.size();
    for (std::size_t i = 0; i < placed_.row.size(); ++i) {
      std::size_t at = static_cast<std::size_t>(placed_.row[i]) * room;
      for (std::size_t t = 0; t < types; ++t) {
        auto& all = near[i * types + t];
        const auto most = static_cast<std::size_t>(sizes_.near[t]);
        if (all.size() > most)
          refuse(fmt::format("atom {} has {} neighbors of {} within {} A, the model has room for {}",
                             atom_name(i), all.size(), data::element_symbol(sizes_.elements[t]),
                             sizes_.cutoff, most),
                 "build the model with more --set sel= or a smaller --set cutoff=");
        std::ranges::sort(all);
        for (std::size_t k = 0; k < all.size(); ++k) {
          out.index[at + k] = all[k].row;
          std::ranges::copy(all[k].image, out.image.begin() + static_cast<std::ptrdiff_t>(3 * (at + k)));
        }
        at += most;
      }
    }
  }

  PlacedFrame& placed_;
  const DeepmdSizes& sizes_;
  const data::Configuration& atoms_;
  std::vector<std::size_t> types_;
  std::array<data::Cartesian, 3> inverse_;
};

// One row of a tensor, of any element type, filled from numbers of any.
class Row {
 public:
  Row(Tensor& tensor, std::size_t row) : tensor_(tensor), row_(row) {}

  template <class Numbers>
  void copy(const Numbers& from) {
    with_elements([&](auto to) {
      using T = typename decltype(to)::value_type;
      std::ranges::transform(from, to.begin(), [](auto value) { return static_cast<T>(value); });
    });
  }
  void clear(double value = 0) {
    with_elements(
        [&](auto to) { std::ranges::fill(to, static_cast<typename decltype(to)::value_type>(value)); });
  }
  void set(std::int64_t at, double value) {
    const std::int64_t length = tensor_.element_count() / std::max<std::int64_t>(1, tensor_.shape()[0]);
    tensor_.set(static_cast<std::int64_t>(row_) * length + at, value);
  }
  void put(std::int64_t row, const data::Cartesian& v) {
    set(3 * row, v.x), set(3 * row + 1, v.y), set(3 * row + 2, v.z);
  }

 private:
  template <class Work>
  void with_elements(Work work) {
    switch (tensor_.type()) {
      case ElementType::f32: return work(row_of<float>(tensor_, row_));
      case ElementType::f64: return work(row_of<double>(tensor_, row_));
      default: return work(row_of<std::int64_t>(tensor_, row_));
    }
  }

  Tensor& tensor_;
  std::size_t row_;
};

}  // namespace

PlacedFrame place_frame(data::DeepmdFrame frame, const std::string& place, const DeepmdSizes& sizes) {
  PlacedFrame placed{
      .frame = std::move(frame), .row = {}, .inside = {}, .near = {}, .place = place, .trajectory = 0};
  Placing(placed, sizes).run();
  return placed;
}

void fill_frame(const PlacedFrame& frame, const DeepmdSizes& sizes, std::size_t row,
                std::span<Tensor> tensors) {
  Row coord(tensors[0], row), type(tensors[1], row), box(tensors[2], row), near(tensors[3], row),
      images(tensors[4], row);
  for (Row* each : {&coord, &box}) each->clear();
  type.clear(-1);
  for (std::size_t i = 0; i < frame.row.size(); ++i) {
    const auto& elements = sizes.elements;
    const auto found = std::ranges::find(elements, frame.frame.configuration.elements[i]);
    type.set(frame.row[i], static_cast<double>(found - elements.begin()));
    coord.put(frame.row[i], frame.inside[i]);
  }
  if (const auto& cell = frame.frame.configuration.cell) {
    box.put(0, cell->a), box.put(1, cell->b), box.put(2, cell->c);
  }
  near.copy(frame.near.index);
  images.copy(frame.near.image);
}

FrameAnswer answer_of(const PlacedFrame& frame, const DeepmdSizes& sizes, std::int64_t row,
                      std::span<const Tensor> outputs) {
  FrameAnswer answer{.energy = outputs[0].at(row), .forces = {}, .virial = {}};
  for (const std::int64_t atom : frame.row) {
    const std::int64_t place = 3 * (row * sizes.all_atoms() + atom);
    answer.forces.push_back({outputs[1].at(place), outputs[1].at(place + 1), outputs[1].at(place + 2)});
  }
  for (std::int64_t k = 0; k < 9; ++k)
    answer.virial[static_cast<std::size_t>(k)] = outputs[2].at(9 * row + k);
  return answer;
}

}  // namespace superstep::workload
