// The search for a partition of a product: which share of groups, rows, outputs and inputs every tile gets.
//
// A product is groups x (rows x outputs), each the sum over `inputs` terms and over the kernel's positions.
// Rows are one or several axes, split one by one. Inputs (and kernel rows) may be split too: then the tiles
// make partial sums, which are exchanged and reduced. Outputs and inputs may also be taken one part after the
// other (serial splits), which saves memory and costs turns.
#pragma once

#include <limits>
#include <string>
#include <vector>

#include "superstep/machine/ipu/convolution.h"

namespace superstep::machine::ipu {

// An operand that lies in another order than the plan needs.
struct Reorder {
  bool needed = false;
  std::int64_t atom = 2;  // bytes that stay together
  bool expands = false;   // the copy makes more elements than it reads (a window folded into inputs or rows):
                          // it is made on the tile that uses it
};

struct Product {
  std::int64_t groups = 1, outputs = 1, inputs = 1;
  std::vector<std::int64_t> rows;  // one axis, or batch and spatial axes when the window is kept
  std::vector<Axis> window;        // one for each of the last axes of `rows`; empty: kernels of one position
  ElementType element = ElementType::f16, partials = ElementType::f32;
  double gather_share = 1;  // of rows x inputs, the distinct elements a tile must receive (folded windows)
  Reorder left, right;      // rows x inputs, inputs x outputs
  bool can_swap = true;     // rows and outputs may change places
  // What a program that runs the plan part by part asks for.
  std::vector<std::int64_t> most_row_splits;  // of each axis of `rows`; empty: any
  bool whole_channels = false;                // neither outputs nor inputs are split
  bool whole_kernel = false;                  // neither is the window's
  bool parts_only = false;                    // no inputs in turn
};

// How operands are grouped for a vertex.
enum class Vertex : std::uint8_t { amp_1x1, amp_nx1, horizontal_mac, vertical_mac, outer_product, slic };
inline constexpr Vertex last_vertex = Vertex::slic;  // a plan on disk with one beyond it is none of ours
const char* name_of(Vertex vertex);
struct Grain {
  Vertex vertex = Vertex::amp_1x1;
  std::int64_t inputs = 16, outputs = 8;  // channels of a group; parts are whole groups
  std::int64_t kernel_height = 1;         // rows of the kernel that a pass takes together
  std::int64_t units = 8;
};

// Into how many parts every dimension is split.
struct Partition {
  std::int64_t groups = 1, outputs = 1, inputs = 1, kernel = 1;
  std::int64_t serial_outputs = 1, serial_inputs = 1;
  std::vector<std::int64_t> rows;

  std::int64_t tiles() const;
  std::string to_string() const;
};

struct SearchResult {
  Plan plan;  // tiles == 0: there is none
  Grain grain;
  Partition partition;
  bool swapped = false;  // rows and outputs changed places: `partition` is of the product so turned
};

// The fastest plan whose temporaries take at most `limit` bytes of a tile and that takes less than `most`
// cycles.
SearchResult search(const Hardware& hardware, const Product& product, double limit,
                    double most = std::numeric_limits<double>::infinity());

// `product` with rows and outputs exchanged.
Product swapped(const Product& product);

// The smallest split for every size of the largest part: 1, 2, ... up to min(extent, most).
std::vector<std::int64_t> distinct_splits(std::int64_t extent, std::int64_t most);

}  // namespace superstep::machine::ipu
