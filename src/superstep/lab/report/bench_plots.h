// The pictures of a report of results. Each adds its heading, its plots and its table to the page, or nothing
// where no result has what it shows. A result that repeats the first of a series is left out.
#pragma once

#include <vector>

#include "superstep/page/page.h"
#include "superstep/record/result.h"

namespace superstep::lab {

// Primitives under the measured peaks and the bandwidth of copies, and a row each: what bounds it and how
// near the bound it is.
void add_roofline(page::Page& page, const std::vector<record::Result>& results);
void add_primitive_sweeps(page::Page& page, const std::vector<record::Result>& results);  // FLOP/s over size
void add_batch_sweeps(page::Page& page,
                      const std::vector<record::Result>& results);               // samples/s over the batch
void add_serving(page::Page& page, const std::vector<record::Result>& results);  // latency under load
void add_scaling(page::Page& page, const std::vector<record::Result>& results);  // over ranks
void add_collectives(page::Page& page, const std::vector<record::Result>& results);  // bandwidth over size
void add_histograms(page::Page& page, const std::vector<record::Result>& results);   // of samples

// A setting of the run as text; empty where there is none. A metric with its unit; empty likewise.
std::string setting_of(const record::Result& result, const char* name);
std::string cell_of(const record::Result& result, const char* name);

}  // namespace superstep::lab
