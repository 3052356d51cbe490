#include "superstep/file/columns/kept_cells.h"

namespace superstep::data::columns {

std::shared_ptr<const Cells> KeptCells::find(std::size_t column, std::int64_t row) {
  const std::lock_guard lock(mutex_);
  const auto after = by_row_[column].upper_bound(row);
  if (after == by_row_[column].begin()) return nullptr;
  const Order::iterator found = std::prev(after)->second;
  if (!found->second->holds(row)) return nullptr;
  order_.splice(order_.begin(), order_, found);
  return found->second;
}

void KeptCells::keep(std::size_t column, std::shared_ptr<const Cells> cells) {
  const std::lock_guard lock(mutex_);
  if (by_row_[column].contains(cells->first)) return;
  bytes_ += cells->size();
  const std::int64_t first = cells->first;
  order_.emplace_front(column, std::move(cells));
  by_row_[column][first] = order_.begin();
  while (bytes_ > most_bytes_ && order_.size() > 1) {
    const auto& [old_column, old] = order_.back();
    bytes_ -= old->size();
    by_row_[old_column].erase(old->first);
    order_.pop_back();
  }
}

}  // namespace superstep::data::columns
