// The text of a preprocessed file: where statements are in it, and pieces of it with parts replaced.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "clang/AST/ASTContext.h"
#include "clang/AST/DeclOpenMP.h"
#include "clang/AST/StmtOpenMP.h"
#include "clang/Basic/SourceManager.h"
#include "clang/Lex/Lexer.h"

namespace superstep_cc {

// The bytes [begin, end) of the file become `text`.
struct Edit {
  unsigned begin, end;
  std::string text;
};

class Source {
 public:
  explicit Source(clang::ASTContext& context)
      : context(context),
        manager(context.getSourceManager()),
        text(manager.getBufferData(manager.getMainFileID())) {}

  clang::ASTContext& context;
  clang::SourceManager& manager;
  llvm::StringRef text;
  int refusals = 0;

  unsigned begin(clang::SourceLocation place) const {
    return manager.getFileOffset(manager.getExpansionLoc(place));
  }
  unsigned begin(const clang::Stmt* statement) const;
  unsigned end(const clang::Stmt* statement) const;  // with the semicolon that ends it
  unsigned end_of(const clang::Expr* expression) const {
    return begin(
        clang::Lexer::getLocForEndOfToken(expression->getEndLoc(), 0, manager, context.getLangOpts()));
  }
  std::string words(const clang::Expr* expression) const;
  // The line of a directive: from its # to the end of the line.
  unsigned pragma_begin(const clang::OMPExecutableDirective* directive) const;
  unsigned pragma_end(const clang::OMPExecutableDirective* directive) const;

  unsigned line(clang::SourceLocation place) const {
    return manager.getPresumedLoc(manager.getExpansionLoc(place)).getLine();
  }
  unsigned column(clang::SourceLocation place) const {
    return manager.getPresumedLoc(manager.getExpansionLoc(place)).getColumn();
  }
  std::string file(clang::SourceLocation place) const {
    return manager.getPresumedLoc(manager.getExpansionLoc(place)).getFilename();
  }
  std::string where(clang::SourceLocation place) const;

  // "heat.c:3:9: refused: clause: what; hint", and counts it.
  void refuse(clang::SourceLocation place, const std::string& message);

  // [begin, end) with the edits that lie in it, the outermost of those within each other.
  std::string with(unsigned begin, unsigned end, std::vector<Edit> edits) const;
};

std::string quoted(const std::string& text);  // as a literal of C

}  // namespace superstep_cc
