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
  std::set<const clang::VarDecl*> reached;  // elements are, or may be, reached through these

  // for (i = first; i < end; i += step), with a counter that nothing else writes.
  bool read_loop(const clang::ForStmt* loop, Loop& result);
  void visit(const clang::Stmt* statement);

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
  void guess_turns(const clang::Stmt* loop);
  void visit_loop(const clang::ForStmt* loop);
  void visit_call(const clang::CallExpr* call);
  void visit_name(const clang::DeclRefExpr* name);
  void visit_local(const clang::VarDecl* var);
  void count_operation(clang::BinaryOperatorKind kind, clang::QualType type);
  Work& work();
  std::string at(const clang::Stmt* statement) const;

  std::set<const clang::VarDecl*> modified_, disturbed_;
  std::set<const clang::Stmt*> increments_;
  unsigned around_ = 0;  // inner loops around here, as bits
};

}  // namespace superstep_cc
