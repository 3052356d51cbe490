// Histograms, curves and first rows of data sets that are no pictures.
#pragma once

#include <string>
#include <vector>

#include "superstep/show/array_file.h"
#include "superstep/show/show.h"

namespace superstep::show {

// Is it a column of numbers, or a table of at most 16 columns?
bool is_table(const data::DataSetInfo& info);

// Counts of all values that were looked at; nothing for constants and fewer than three values.
void add_histogram(page::Page& page, const ShownDataSet& data_set);

// The values of a sequence against their place. Nothing unless it is a column of 3 to 100,000 numbers.
void add_curve(page::Page& page, const ShownDataSet& data_set);

// One table of the first rows of all tables with the same number of rows. Throws Error that names the data
// set when one cannot be read.
void add_first_rows(page::Page& page, const ArrayFile& file, const std::vector<const ShownDataSet*>& tables);

// The first entries of a data set of strings.
void add_strings(page::Page& page, const ArrayFile& file, const data::DataSetInfo& info);

// Texts of one length, filled up with zeros, as rows of bytes: every row that is looked at has printable
// characters of ASCII, at least one of them a letter, and then zeros alone.
bool is_padded_text(const ArrayFile& file, const data::DataSetInfo& info);
void add_padded_text(page::Page& page, const ArrayFile& file, const data::DataSetInfo& info);

}  // namespace superstep::show
