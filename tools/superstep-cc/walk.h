// A walk over a region's body.
#pragma once

#include "region.h"

namespace superstep_cc {

class Walk {
 public:
  Walk(Source& s, Region& r) : source(s), region(r) {}
  Source& source;
  Region& region;

  // Which variables are written, and which are named other than as a plain read of an element.
  void collect(const clang::Stmt* body);
  bool is_modified(const clang::VarDecl* var) const { return modified_.contains(var); }
  bool only_read(const clang::VarDecl* var) const { return !disturbed_.contains(var); }
  std::set<const clang::VarDecl*> reached;   // elements are, or may be, reached through these
  std::set<const clang::VarDecl*> followed;  // more than their value, as a pointer's, is asked for
  std::set<int> gathered;                    // items whose elements the body asks for by number

  // for (i = first; i < end; i += step), with a counter that nothing else writes.
  bool read_loop(const clang::ForStmt* loop, Loop& result);
  void visit(const clang::Stmt* statement);
  // From the beginning, with items whose elements the body asks for by number.
  void start_again(std::set<int> gathered);

 private:
  Linear linear(const clang::Expr* expression);
  bool invariant(const clang::Expr* expression);
  int loop_of(const clang::VarDecl* var) const;
  bool is_local(const clang::VarDecl* var) const;

  struct Reference {
    const clang::VarDecl* var = nullptr;
    std::vector<std::vector<const clang::Expr*>> subscripts;  // each a sum
  };
  bool read_reference(const clang::Expr* expression, Reference& reference) const;
  bool access(const clang::Expr* expression, bool reads, bool writes);
  std::string element_text(int number, const Access& access, const Reference& reference);
  std::vector<std::string> extents_of(const clang::VarDecl* var, std::size_t dimensions) const;

  void visit_expression(const clang::Expr* expression);
  void visit_store(const clang::Expr* target, bool reads);
  bool is_race(const clang::OMPAtomicDirective* directive) const;
  void guess_turns(const clang::Stmt* loop);
  void visit_loop(const clang::ForStmt* loop);
  void visit_counted(const clang::ForStmt* loop);
  void visit_call(const clang::CallExpr* call);
  void visit_name(const clang::DeclRefExpr* name);
  void visit_local(const clang::VarDecl* var);
  void count_operation(clang::BinaryOperatorKind kind, clang::QualType type);
  Work& work();
  std::string at(const clang::Stmt* statement) const;

  std::set<const clang::VarDecl*> modified_, disturbed_;
  std::set<const clang::Stmt*> increments_;
  std::set<std::pair<std::size_t, unsigned>> loaded_;  // accesses, by the loops that they were read in
  unsigned around_ = 0;                                // inner loops around here, as bits
  unsigned inside_ = 0;                                // those of them in the counted loop around here
  int counted_ = 0;                                    // that loop, from 1; 0: there is none
};

}  // namespace superstep_cc
