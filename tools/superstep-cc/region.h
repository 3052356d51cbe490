// What the translator knows of one target construct: its list items, loops, accesses and what it costs, as
// text that the program evaluates when it launches the region.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "clang/AST/ASTContext.h"
#include "clang/AST/StmtOpenMP.h"
#include "source.h"

namespace superstep_cc {

enum class Role { mapped, looked_up, first_private, private_copy, reduced };

constexpr int last_value = 9;  // openmp::Operator::last_value

// A variable of the program that a construct names, with what its clauses say.
struct Item {
  const clang::VarDecl* var = nullptr;
  Role role = Role::mapped;
  int kind = 0;                             // sst_to, ...
  std::string address, bytes;               // text
  std::string times = "-1L", pitch = "0L";  // of an update, text
  int operation = -1;                       // of a reduction: openmp::Operator
  bool used = false, written = false, reached = false;
  bool steers = false;            // its values decide which elements of others are gathered
  bool keeps_host_value = false;  // a pointer that leads nowhere on the device: compared, or written only
  bool in_function = false;       // a global that functions of the region name
  unsigned line = 0;
  bool takes_memory() const { return role != Role::first_private && role != Role::private_copy; }
};

// constant + sum of coefficient x counter, as text; valid when every part is known before the loops begin.
struct Linear {
  bool valid = false;
  std::string constant;                     // empty: 0
  std::map<int, std::string> coefficients;  // by loop
};

struct Loop {
  const clang::VarDecl* counter = nullptr;
  const clang::ForStmt* statement = nullptr;
  Linear first, end;  // end: exclusive in the loop's direction
  std::string step;   // text
  bool down = false;
  unsigned parents = 0;  // inner loops around it, itself included, as bits
};

struct Access {
  int item = 0;
  std::vector<std::string> inner_extents;
  std::vector<Linear> subscripts;  // not valid: any element of the dimension
  std::vector<int> extra;          // by dimension: the number of its extra loop, or -1
  bool reads = false, writes = false, gathered = false;
  unsigned line = 0;
};

struct Work {
  unsigned loops = 0, inside = 0;
  int counted = 0;
  double starts = 0, loads = 0, stores = 0, integers = 0, floats = 0, divisions = 0, roots = 0,
         exponentials = 0, logarithms = 0, sines = 0, powers = 0;
};

struct Region {
  const clang::OMPExecutableDirective* directive = nullptr;
  const clang::FunctionDecl* function = nullptr;  // that it stands in
  const clang::Stmt* body = nullptr;              // of the construct
  const clang::Stmt* iteration = nullptr;         // of the distributed loops
  std::vector<Item> items;
  std::vector<Loop> distributed, inner;
  std::vector<std::string> extra;                  // extents
  int counted = 0;                                 // loops whose turns an inspector counts
  std::vector<const clang::FunctionDecl*> clones;  // functions that have a version for tiles
  std::vector<Access> accesses;
  std::vector<Work> work;
  std::vector<Edit> edits;                             // of the iteration's text, as it is dealt
  std::string not_dealt, not_whole;                    // reasons; empty: it is
  std::vector<std::string> guesses;                    // what cycles and operations are counted by guess
  std::string device = "sst_default_device", host_if;  // text
  bool vectorised = false, asks_who = false;
  bool hidden_type = false;
  bool of_tasks = false;  // what is dealt is a loop that makes tasks
  bool limited = false;  // clauses say how many teams or threads there may be
  bool chunked = false;  // which iterations follow one another on a thread

  int item_of(const clang::VarDecl* var) const {
    for (std::size_t i = 0; i < items.size(); ++i)
      if (items[i].var == var) return static_cast<int>(i);
    return -1;
  }
  void refuse_dealing(const std::string& why) {
    if (not_dealt.empty()) not_dealt = why;
  }
};

// ElementType of elements; negative: the size of anything else in bytes.
int type_code(const clang::ASTContext& context, clang::QualType type);
clang::QualType element_of(clang::QualType type);  // below arrays and, once, a pointer

// Fills in what clauses say; false: a clause is not known and has been refused.
bool read_clauses(Source& source, Region& region);
// Items for variables that no clause names, as the specification has them.
void add_implicit_items(Source& source, Region& region);
// Scalars and arrays that only atomic updates with one operator touch: results of a reduction.
void reduce_atomics(Source& source, Region& region);
// Loops, accesses, costs; why it is not dealt, or not on a tile.
void analyse(Source& source, Region& region);
// What makes a body unfit for a tile's memory: pointers read from memory, calls of functions that are not
// here.
std::string unfit(Source& source, const clang::Stmt* body);

}  // namespace superstep_cc
