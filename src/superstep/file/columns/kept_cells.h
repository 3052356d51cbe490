// Pieces of columns that were unpacked last.
#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "superstep/file/columns/column_table.h"

namespace superstep::data::columns {

// Thread-safe. The piece that was asked for last is kept whatever its size.
class KeptCells {
 public:
  KeptCells(std::size_t columns, std::size_t most_bytes) : by_row_(columns), most_bytes_(most_bytes) {}

  // The piece that holds a row; null: it is not kept.
  std::shared_ptr<const Cells> find(std::size_t column, std::int64_t row);
  void keep(std::size_t column, std::shared_ptr<const Cells> cells);

 private:
  using Order = std::list<std::pair<std::size_t, std::shared_ptr<const Cells>>>;

  std::mutex mutex_;
  Order order_;                                                  // the last used first
  std::vector<std::map<std::int64_t, Order::iterator>> by_row_;  // by column, by the first row
  std::size_t bytes_ = 0, most_bytes_;
};

}  // namespace superstep::data::columns
