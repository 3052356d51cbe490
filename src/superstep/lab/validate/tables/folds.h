// Predictions of whole tables, with what was left out of the fit: models, machines, sources in turn.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "superstep/lab/validate/tables/call.h"
#include "superstep/machine/rates/intervals.h"

namespace superstep::lab {

// Every table of a folder that has rows of applications and primitives, in the order of their names. Throws
// Error (bad_file) where there is none.
void for_each_table(const std::filesystem::path& folder,
                    const std::function<void(const PublishedTable&)>& what);
// All rows of a folder's tables: every *.csv with the columns of applications and primitives.
std::vector<TableCall> read_calls(const std::filesystem::path& folder);

// none: fitted over all rows of the folder; kept: by the constants that the program has, whatever the folder.
enum class Fold : std::uint8_t { none, model, machine, source, kept };
constexpr std::size_t fold_count = 5;
const char* name_of(Fold fold);  // "seen", "model left out", ..., "as the program has it"

// Seconds of each call under each fold; 0: nothing is known of it there.
struct FoldedCall {
  const TableCall* of = nullptr;
  double seconds[fold_count] = {};
  double one_share = 0;           // baseline: the roofline times one constant of law and type
  double error(Fold fold) const;  // of the logarithm; infinite where nothing is known
};

struct Folded {
  std::vector<FoldedCall> calls;                    // in the order of the rows; refused ones too
  std::map<std::string, machine::FittedLaws> laws;  // by law, fitted over all
};

// Fits every law over all its calls, and with each group of the folds left out. The threads share out laws
// and groups; the same numbers on any number of them.
Folded fold_calls(const std::vector<TableCall>& calls, const std::vector<Fold>& folds, int threads);

// What a family's errors are. Every cell (machine, model or kind of kernel, software, type) has the same
// weight; what is refused or not understood counts as infinitely wrong.
struct FamilyErrors {
  std::string family;
  std::size_t rows = 0, understood = 0, cells = 0, constants = 0;
  struct Of {
    bool known = false;
    double median = 0, p90 = 0;         // of |predicted / published - 1|
    double bias = 1;                    // median of predicted over published seconds
    double within10 = 0, within30 = 0;  // shares
    double low = 0, high = 0;           // logarithms of published over predicted that hold 80 %
    double inside = 0;                  // share of the rows inside them, of the other half of the cells
  } fold[fold_count];
  double one_share_median = 0, one_share_p90 = 0;
};
std::vector<FamilyErrors> errors_by_family(const Folded& folded, const std::vector<Fold>& folds);

// Between which factors 80 % of the published values lie, by family and by stack, of cells whose model or
// machine was left out; and which machines were measured. Folds that are not there say nothing.
machine::Spreads spreads_of(const Folded& folded, const std::vector<Fold>& folds);

// "no facts of the machine x" -> rows, most first.
std::vector<std::pair<std::string, std::size_t>> reasons_of(const std::vector<TableCall>& calls);

}  // namespace superstep::lab
