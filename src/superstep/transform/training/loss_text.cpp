#include "superstep/transform/training/loss_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <initializer_list>

#include "superstep/base/error.h"
#include "superstep/base/option_range.h"
#include "superstep/base/text.h"

namespace superstep::transform {
namespace {

using enum LossKind;

[[noreturn]] void refuse(std::string_view text, const std::string& why, const std::string& hint = "") {
  throw Error(ErrorCode::invalid_argument, why, fmt::format("--loss {}", text), hint);
}

double number_in(std::string_view text, std::string_view name, const std::string& value,
                 const NumberRange& range) {
  if (const std::string fault = why_not(value, range); !fault.empty())
    refuse(text, fmt::format("{} {}", name, fault));
  return *finite_number(value);
}

// A constant as users write it, the kinds that take it, and what it sets.
struct Constant {
  const char* name;
  std::initializer_list<LossKind> kinds;
  void (*set)(LossTerm& term, std::string_view text, const std::string& value);
};

constexpr NumberRange above_zero{.low = 0, .open_low = true};
constexpr double below_one = 0x1.fffffffffffffp-1;

// At gamma between 0 and 1 the slope is infinite where an answer is right without a doubt.
void set_gamma(LossTerm& term, std::string_view text, const std::string& value) {
  term.gamma = number_in(text, "gamma", value, {.low = 0});
  if (term.gamma > 0 && term.gamma < 1)
    refuse(text, fmt::format("gamma is {}, and its slope infinite where an answer is certain", value),
           "give 0, or 1 or more");
}

void set_ignored(LossTerm& term, std::string_view text, const std::string& value) {
  const std::optional<std::int64_t> label = whole_number(value);
  if (!label) refuse(text, fmt::format("ignore is a label, a whole number, not '{}'", value));
  term.ignored = label;
}

void set_class_weights(LossTerm& term, std::string_view text, const std::string& value) {
  for (const std::string& each : split(value, ':'))
    term.class_weights.push_back(number_in(text, "class_weights", each, {.low = 0}));
}

void set_name(std::string& place, const char* what, std::string_view text, const std::string& value) {
  if (value.empty()) refuse(text, fmt::format("{} is a name, and none is given", what));
  place = value;
}

bool yes_or_no(const char* what, std::string_view text, const std::string& value) {
  if (value != "true" && value != "false")
    refuse(text, fmt::format("{} is true or false, not '{}'", what, value));
  return value == "true";
}

std::int64_t whole_in(const char* what, std::string_view text, const std::string& value, std::int64_t least) {
  const std::optional<std::int64_t> number = whole_number(value);
  if (!number || *number < least)
    refuse(text, fmt::format("{} is a whole number, {} at least, not '{}'", what, least, value));
  return *number;
}

using Text = std::string_view;
using Value = const std::string&;
const std::array constants = {
    Constant{"delta",
             {huber},
             [](LossTerm& t, Text text, Value v) { t.delta = number_in(text, "delta", v, above_zero); }},
    Constant{"beta",
             {smooth_l1},
             [](LossTerm& t, Text text, Value v) { t.delta = number_in(text, "beta", v, above_zero); }},
    Constant{"smoothing",
             {cross_entropy},
             [](LossTerm& t, Text text, Value v) {
               t.smoothing = number_in(text, "smoothing", v, {0, below_one});
             }},
    Constant{"class_weights", {cross_entropy, nll}, set_class_weights},
    Constant{"ignore", {cross_entropy, nll}, set_ignored},
    Constant{"positive_weight",
             {bce_with_logits},
             [](LossTerm& t, Text text, Value v) {
               t.positive_weight = number_in(text, "positive_weight", v, above_zero);
             }},
    Constant{"gamma", {focal}, set_gamma},
    Constant{"alpha",
             {focal},
             [](LossTerm& t, Text text, Value v) {
               t.alpha = number_in(text, "alpha", v, {-1, 1});
             }},
    Constant{"alpha",
             {tversky},
             [](LossTerm& t, Text text, Value v) { t.alpha = number_in(text, "alpha", v, {.low = 0}); }},
    Constant{"beta",
             {tversky},
             [](LossTerm& t, Text text, Value v) { t.beta = number_in(text, "beta", v, {.low = 0}); }},
    Constant{"variance",
             {gaussian_nll},
             [](LossTerm& t, Text text, Value v) { set_name(t.variance, "variance", text, v); }},
    Constant{"positive",
             {triplet_margin},
             [](LossTerm& t, Text text, Value v) { set_name(t.positive, "positive", text, v); }},
    Constant{"negative",
             {triplet_margin},
             [](LossTerm& t, Text text, Value v) { set_name(t.negative, "negative", text, v); }},
    Constant{"margin",
             {triplet_margin},
             [](LossTerm& t, Text text, Value v) { t.margin = number_in(text, "margin", v, above_zero); }},
    Constant{"p",
             {triplet_margin},
             [](LossTerm& t, Text text, Value v) { t.power = number_in(text, "p", v, {.low = 1}); }},
    Constant{"swap",
             {triplet_margin},
             [](LossTerm& t, Text text, Value v) { t.swap = yes_or_no("swap", text, v); }},
    Constant{
        "blank", {ctc}, [](LossTerm& t, Text text, Value v) { t.blank = whole_in("blank", text, v, 0); }},
    Constant{"longest",
             {ctc},
             [](LossTerm& t, Text text, Value v) { t.longest = whole_in("longest", text, v, 1); }},
    Constant{"zero_infinity",
             {ctc},
             [](LossTerm& t, Text text, Value v) { t.zero_infinity = yes_or_no("zero_infinity", text, v); }},
    Constant{"input_lengths",
             {ctc},
             [](LossTerm& t, Text text, Value v) { set_name(t.input_lengths, "input_lengths", text, v); }},
    Constant{"target_lengths",
             {ctc},
             [](LossTerm& t, Text text, Value v) { set_name(t.target_lengths, "target_lengths", text, v); }},
    Constant{"sample_weights",
             {mse, l1, huber, smooth_l1, log_cosh, bce, bce_with_logits, focal, cross_entropy, nll, kl_div,
              poisson_nll, gaussian_nll, cosine, triplet_margin, ctc},
             [](LossTerm& t, Text text, Value v) { set_name(t.sample_weights, "sample_weights", text, v); }},
    Constant{"mask",
             {mse, l1, huber, smooth_l1, log_cosh, bce, bce_with_logits, focal, cross_entropy, nll, kl_div,
              poisson_nll, gaussian_nll, cosine, triplet_margin, ctc},
             [](LossTerm& t, Text text, Value v) { set_name(t.mask, "mask", text, v); }},
};

bool takes(LossKind kind, const Constant& constant) {
  return std::ranges::find(constant.kinds, kind) != constant.kinds.end();
}

std::vector<std::string> constants_of(LossKind kind) {
  std::vector<std::string> known;
  for (const Constant& constant : constants)
    if (takes(kind, constant)) known.emplace_back(constant.name);
  return known;
}

void set_constant(LossTerm& term, std::string_view text, const std::string& part) {
  const std::size_t equals = part.find('=');
  if (equals == std::string::npos)
    refuse(text, fmt::format("'{}' is no NAME=VALUE", part), "write, for example, huber(delta=0.5)");
  const std::string name = part.substr(0, equals);
  for (const Constant& constant : constants)
    if (constant.name == name && takes(term.kind, constant))
      return constant.set(term, text, part.substr(equals + 1));
  const std::vector<std::string> known = constants_of(term.kind);
  refuse(text, fmt::format("{} has no constant '{}'", name_of(term.kind), name),
         known.empty() ? "it takes none" : unknown_name_hint(name, known));
}

void set_constants(LossTerm& term, std::string_view text, std::string_view list) {
  std::vector<std::string> given;
  for (const std::string& constant : split(list, ',')) {
    const std::string name = constant.substr(0, constant.find('='));
    if (std::ranges::find(given, name) != given.end()) refuse(text, fmt::format("'{}' is given twice", name));
    given.push_back(name);
    set_constant(term, text, constant);
  }
}

// "2*", which the term is multiplied by: what is left of it, and the factor.
double take_weight(std::string_view& term, std::string_view text) {
  const std::size_t star = term.find('*');
  if (star == std::string_view::npos || star > term.find_first_of("(:")) return 1;
  const double weight = number_in(text, "a term's weight", std::string(term.substr(0, star)), above_zero);
  term.remove_prefix(star + 1);
  return weight;
}

LossTerm term_from(std::string_view part, std::string_view text) {
  LossTerm term;
  term.weight = take_weight(part, text);
  const std::size_t end = std::min(part.find_first_of("(:"), part.size());
  if (end == 0) refuse(text, "a term has no loss", "write KIND:OUTPUT,KIND:OUTPUT, as in mse:y");
  try {
    term.kind = loss_kind_from_name(part.substr(0, end));
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("there is no loss '{}'", part.substr(0, end)),
                fmt::format("--loss {}", text), error.hint());
  }
  part.remove_prefix(end);
  if (part.starts_with('(')) {
    const std::size_t close = part.find(')');
    if (close == std::string_view::npos) refuse(text, "a parenthesis is not closed");
    set_constants(term, text, part.substr(1, close - 1));
    part.remove_prefix(close + 1);
  }
  if (!part.empty() && (part.front() != ':' || part.size() == 1))
    refuse(text, fmt::format("'{}' is not understood", part), "behind a loss stands :OUTPUT, as in mse:y");
  if (!part.empty()) term.output = part.substr(1);
  if (term.kind == gaussian_nll && term.variance.empty())
    refuse(text, "gaussian_nll compares with a variance, and none is named",
           "gaussian_nll(variance=OUTPUT):MEAN");
  if (term.kind == triplet_margin && (term.positive.empty() || term.negative.empty()))
    refuse(text, "triplet_margin compares three outputs, and not all are named",
           "triplet_margin(positive=OUTPUT,negative=OUTPUT):ANCHOR");
  return term;
}

// At commas that stand in no parenthesis.
std::vector<std::string_view> terms_of(std::string_view text) {
  std::vector<std::string_view> terms;
  std::size_t begin = 0;
  int depth = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    depth += text[i] == '(' ? 1 : text[i] == ')' ? -1 : 0;
    if (text[i] != ',' || depth > 0) continue;
    terms.push_back(text.substr(begin, i - begin));
    begin = i + 1;
  }
  terms.push_back(text.substr(begin));
  return terms;
}

}  // namespace

std::vector<LossTerm> loss_from_text(std::string_view text) {
  if (text.empty()) return std::vector<LossTerm>(1);
  std::vector<LossTerm> terms;
  for (const std::string_view part : terms_of(text)) terms.push_back(term_from(part, text));
  return terms;
}

}  // namespace superstep::transform
