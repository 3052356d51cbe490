// A row of a table of measurements as a call that a law can be asked about (machine/rates/law.h).
#pragma once

#include <optional>
#include <string>

#include "superstep/lab/validate/table.h"
#include "superstep/lab/validate/tables/facts.h"
#include "superstep/machine/rates/call.h"

namespace superstep::lab {

struct TableCall {
  std::string id, family;  // "products", "convolutions", "language generation", ...
  std::string model, machine, source, software, precision;
  machine::MeasuredCall call;  // its seconds are the published ones
  machine::LawCall law;        // the question, without its seconds
  double published = 0;        // in the row's unit
  // value = amount / seconds of a rate, or amount x seconds of a time.
  double amount = 1;
  bool is_rate = false;
  double peak_seconds = 0, roofline_seconds = 0;  // of the facts alone
  std::string reason;                             // why it is not understood; empty: it is

  void take(machine::LawCall law);  // family, terms and keys of a question

  bool understood() const { return reason.empty(); }
  double value_of(double seconds) const { return is_rate ? amount / seconds : amount * seconds; }
};

// The row's call; where it is not understood, with the reason.
TableCall call_of(const PublishedTable& table, std::size_t row, const TableFacts& facts);

// Parts of it, one a kind of rows. Each fills in family, law, terms, place and amount; false: with `reason`.
struct RowAt {
  const PublishedTable& table;
  std::size_t row;
  const machine::MachineFacts& machine;
  const std::string& text(const char* column) const { return table.text(row, column); }
  double count(const char* column, double otherwise) const {
    const double value = static_cast<double>(table.integer(row, column, 0));
    return value > 0 ? value : otherwise;
  }
};
bool product_row(const RowAt& row, TableCall& call);
bool convolution_row(const RowAt& row, TableCall& call);
bool recurrent_row(const RowAt& row, TableCall& call);
bool vector_row(const RowAt& row, TableCall& call);
bool collective_row(const RowAt& row, TableCall& call);
bool language_row(const RowAt& row, const ModelFacts& model, TableCall& call);
bool network_row(const RowAt& row, const ModelFacts& model, TableCall& call);

// "in 1024 out 128": the number after a word of a note; 0: it is not there.
double number_behind(const std::string& note, std::string_view word);

}  // namespace superstep::lab
