#include "source.h"

namespace superstep_cc {
namespace {

using namespace clang;

// Whether the statement's own range stops before its semicolon.
bool needs_semicolon(const Stmt* statement) {
  if (const auto* loop = dyn_cast<ForStmt>(statement)) return needs_semicolon(loop->getBody());
  if (const auto* loop = dyn_cast<WhileStmt>(statement)) return needs_semicolon(loop->getBody());
  if (const auto* branch = dyn_cast<IfStmt>(statement))
    return needs_semicolon(branch->getElse() ? branch->getElse() : branch->getThen());
  if (const auto* label = dyn_cast<LabelStmt>(statement)) return needs_semicolon(label->getSubStmt());
  if (const auto* captured = dyn_cast<CapturedStmt>(statement))
    return needs_semicolon(captured->getCapturedStmt());
  if (const auto* directive = dyn_cast<OMPExecutableDirective>(statement))
    return directive->hasAssociatedStmt() && needs_semicolon(directive->getRawStmt());
  return isa<Expr>(statement) || isa<ReturnStmt>(statement) || isa<BreakStmt>(statement) ||
         isa<ContinueStmt>(statement) || isa<GotoStmt>(statement) || isa<DoStmt>(statement);
}

const Stmt* without_capture(const Stmt* statement) {
  while (const auto* captured = dyn_cast<CapturedStmt>(statement)) statement = captured->getCapturedStmt();
  return statement;
}

}  // namespace

// A directive begins with its line: Clang counts from the word behind "#pragma".
unsigned Source::begin(const Stmt* statement) const {
  statement = without_capture(statement);
  if (const auto* directive = dyn_cast<OMPExecutableDirective>(statement)) return pragma_begin(directive);
  return begin(statement->getBeginLoc());
}

unsigned Source::end(const Stmt* statement) const {
  statement = without_capture(statement);
  if (const auto* directive = dyn_cast<OMPExecutableDirective>(statement))
    return directive->hasAssociatedStmt() ? end(directive->getRawStmt()) : pragma_end(directive);
  if (const auto* loop = dyn_cast<ForStmt>(statement)) return end(loop->getBody());
  if (const auto* loop = dyn_cast<WhileStmt>(statement)) return end(loop->getBody());
  if (const auto* branch = dyn_cast<IfStmt>(statement))
    return end(branch->getElse() ? branch->getElse() : branch->getThen());
  unsigned at = begin(Lexer::getLocForEndOfToken(statement->getEndLoc(), 0, manager, context.getLangOpts()));
  if (!needs_semicolon(statement)) return at;
  while (at < text.size() && text[at] != ';') ++at;
  return at + 1;
}

unsigned Source::pragma_begin(const OMPExecutableDirective* directive) const {
  unsigned at = begin(directive->getBeginLoc());
  while (at > 0 && text[at - 1] != '\n') --at;
  return at;
}

unsigned Source::pragma_end(const OMPExecutableDirective* directive) const {
  const std::size_t at = text.find('\n', begin(directive->getBeginLoc()));
  return static_cast<unsigned>(std::min(at, text.size()));
}

// Clang keeps some expressions of clauses in variables of its own: their text is that of the expression.
std::string Source::words(const Expr* expression) const {
  while (const auto* name = dyn_cast<DeclRefExpr>(expression->IgnoreParenImpCasts())) {
    const auto* kept = dyn_cast<OMPCapturedExprDecl>(name->getDecl());
    if (!kept || !kept->getInit()) break;
    expression = kept->getInit();
  }
  return text.slice(begin(expression), end_of(expression)).str();
}

std::string Source::where(SourceLocation place) const {
  return file(place) + ":" + std::to_string(line(place)) + ":" + std::to_string(column(place));
}

void Source::refuse(SourceLocation place, const std::string& message) {
  ++refusals;
  const std::string words = where(place) + ": refused: " + message + "\n";
  if (told_.insert(words).second) llvm::errs() << words;
}

std::string Source::with(unsigned from, unsigned to, std::vector<Edit> edits) const {
  std::stable_sort(edits.begin(), edits.end(), [](const Edit& a, const Edit& b) {
    return a.begin != b.begin ? a.begin < b.begin : a.end > b.end;
  });
  std::string result;
  unsigned at = from;
  for (const Edit& edit : edits) {
    if (edit.begin < at || edit.begin < from || edit.end > to) continue;
    result += text.slice(at, edit.begin).str() + edit.text;
    at = edit.end;
  }
  return result + text.slice(at, to).str();
}

std::string quoted(const std::string& words) {
  std::string result = "\"";
  for (const char c : words) {
    if (c == '"' || c == '\\') result += '\\';
    result += c == '\n' ? ' ' : c;
  }
  return result + "\"";
}

}  // namespace superstep_cc
