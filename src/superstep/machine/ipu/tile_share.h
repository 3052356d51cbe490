// What one tile gets under a partition, and what it costs there.
#pragma once

#include <optional>
#include <string>

#include "superstep/machine/ipu/product_search.h"

namespace superstep::machine::ipu {

enum class Vertex : std::uint8_t { amp_1x1, amp_nx1, horizontal_mac, vertical_mac, outer_product };
const char* name_of(Vertex vertex);

// How operands are grouped for a vertex.
struct Grain {
  Vertex vertex = Vertex::amp_1x1;
  std::int64_t inputs = 16, outputs = 8;  // channels of a group; parts are whole groups
  std::int64_t kernel_height = 1;         // rows of the kernel that a pass takes together
  std::int64_t units = 8;
};

struct Partition {
  std::int64_t groups = 1, outputs = 1, inputs = 1, kernel = 1;
  std::int64_t serial_outputs = 1, serial_inputs = 1;
  std::vector<std::int64_t> rows;

  std::int64_t tiles() const;
  std::string to_string() const;
};

// The largest part.
struct TileShare {
  std::int64_t groups = 1, outputs = 1, inputs = 1, kernel_rows = 1, kernel_columns = 1;
  std::vector<std::int64_t> rows;
  std::int64_t positions = 1;                // of the rows
  double left = 0, right = 0, partials = 0;  // elements

  double macs() const;
};

TileShare share_of(const Product& product, const Grain& grain, const Partition& partition);

// A lower bound of the compute cycles: multiply-accumulates at the peak rate.
double compute_bound(const Hardware& hardware, const Product& product, const Grain& grain,
                     const Partition& partition, const TileShare& share);

double temporary_bytes(const Product& product, const TileShare& share);

Plan cost_of(const Hardware& hardware, const Product& product, const Grain& grain, const Partition& partition,
             const TileShare& share);

}  // namespace superstep::machine::ipu
