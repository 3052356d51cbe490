#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "superstep/workload/pictures/pictures.h"

namespace superstep::workload {
namespace {

constexpr std::int64_t most_written_classes = 16;  // a larger table is a picture
constexpr std::size_t shown_errors = 12, shown_pairs = 10;
constexpr int thumbnail_pixels = 128;

struct Answer {
  std::int64_t found;
  double probability;
};

// The class of the highest score, and its share in the softmax.
Answer answer_of(std::span<const float> scores) {
  const auto best = std::ranges::max_element(scores);
  double sum = 0;
  for (const float score : scores) sum += std::exp(static_cast<double>(score - *best));
  return {best - scores.begin(), 1 / sum};
}

using Counts = std::vector<std::vector<std::int64_t>>;

struct Answers {
  std::vector<Answer> of;
  std::int64_t classes = 0;  // that occur, in labels or answers
  Counts counts;             // by true class, then by the one found
};

Answers answers_of(const Classification& c) {
  Answers answers;
  const std::size_t width = c.scores.size() / std::max<std::size_t>(1, c.labels.size());
  for (std::size_t i = 0; i < c.labels.size(); ++i) {
    answers.of.push_back(answer_of(c.scores.subspan(i * width, width)));
    answers.classes = std::max({answers.classes, c.labels[i] + 1, answers.of.back().found + 1});
  }
  answers.counts.assign(static_cast<std::size_t>(answers.classes),
                        std::vector<std::int64_t>(static_cast<std::size_t>(answers.classes)));
  for (std::size_t i = 0; i < c.labels.size(); ++i)
    ++answers.counts[static_cast<std::size_t>(c.labels[i])][static_cast<std::size_t>(answers.of[i].found)];
  return answers;
}

page::Picture confusion_picture(const Answers& answers) {
  const int size = static_cast<int>(answers.classes);
  std::vector<float> shares;
  for (const auto& row : answers.counts) {
    const double all = static_cast<double>(std::accumulate(row.begin(), row.end(), std::int64_t{0}));
    for (const std::int64_t count : row)
      shares.push_back(static_cast<float>(static_cast<double>(count) / std::max(1.0, all)));
  }
  return {
      .image = page::colored(shares, size, size, page::Colormap::viridis, 0.0f, 1.0f),
      .caption = fmt::format("True class 0 to {0} downwards, class found 0 to {0} to the right", size - 1),
      .marks = {},
      .scale = std::max(1, 400 / size),
      .bar = page::ColorBar{page::Colormap::viridis, "0", "1", "share of the true class"}};
}

void add_confusion(page::Page& page, const Answers& answers) {
  if (answers.classes > most_written_classes) {
    page.pictures({confusion_picture(answers)});
    return;
  }
  std::vector<std::string> names;
  for (std::int64_t k = 0; k < answers.classes; ++k) names.push_back(std::to_string(k));
  page.confusion(names, answers.counts);
}

// The pairs of classes that are confused most often.
void add_pairs(page::Page& page, const Answers& answers) {
  std::vector<std::pair<std::int64_t, std::vector<std::string>>> pairs;
  for (std::size_t row = 0; row < answers.counts.size(); ++row) {
    const auto& counts = answers.counts[row];
    const auto all = std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
    for (std::size_t column = 0; column < counts.size(); ++column)
      if (row != column && counts[column] > 0)
        pairs.push_back({counts[column],
                         {std::to_string(row), std::to_string(column), std::to_string(counts[column]),
                          fmt::format("{:.0f} %", 100.0 * static_cast<double>(counts[column]) /
                                                      static_cast<double>(all))}});
  }
  std::ranges::stable_sort(pairs, std::greater(), [](const auto& pair) { return pair.first; });
  std::vector<std::vector<std::string>> rows;
  for (std::size_t i = 0; i < std::min(shown_pairs, pairs.size()); ++i) rows.push_back(pairs[i].second);
  page.begin_column().heading("Confused most often", 3);
  if (rows.empty()) page.paragraph("No sample was taken for another class.");
  if (!rows.empty()) page.table({"true class", "taken for", "samples", "of the class"}, rows);
  page.end_column();
}

void add_surest_errors(page::Page& page, const Classification& c, const Answers& answers) {
  if (!c.picture) return;
  std::vector<std::size_t> wrong;
  for (std::size_t i = 0; i < c.labels.size(); ++i)
    if (answers.of[i].found != c.labels[i]) wrong.push_back(i);
  if (wrong.empty()) return;
  std::ranges::stable_sort(wrong, std::greater(), [&](std::size_t i) { return answers.of[i].probability; });
  std::vector<page::Picture> pictures;
  for (std::size_t k = 0; k < std::min(shown_errors, wrong.size()); ++k) {
    const std::size_t i = wrong[k];
    page::Image image = c.picture(i);
    const int scale = std::max(1, thumbnail_pixels / std::max(image.width, image.height));
    pictures.push_back({.image = std::move(image),
                        .caption = fmt::format("#{}: is {}, found {} ({:.0f} %)", c.samples[i], c.labels[i],
                                               answers.of[i].found, 100 * answers.of[i].probability),
                        .marks = {},
                        .scale = scale});
  }
  page.heading("The worst errors: wrong, and surest of it", 3).pictures(pictures);
}

}  // namespace

page::Image color_image(std::span<const std::uint8_t> planes, int width, int height) {
  page::Image image{width, height, {}};
  const std::size_t pixels = static_cast<std::size_t>(width) * static_cast<std::size_t>(height);
  for (std::size_t i = 0; i < pixels; ++i)
    for (std::size_t plane = 0; plane < 3; ++plane) image.rgb.push_back(planes[plane * pixels + i]);
  return image;
}

void present_classification(page::Page& page, const Classification& classification) {
  const Answers answers = answers_of(classification);
  page.heading("What was taken for what", 3).begin_row();
  add_confusion(page, answers);
  add_pairs(page, answers);
  page.end_row();
  add_surest_errors(page, classification, answers);
}

std::string present_classes(const Fields& fields, const Predictions& found, page::Page& page) {
  const Tensor &images = fields.at("image"), &labels = fields.at("label");
  const auto height = images.shape()[2], width = images.shape()[3];
  const std::size_t bytes = static_cast<std::size_t>(3 * height * width);
  Classification classification{.labels = {},
                                .scores = found.outputs[0].as<float>(),
                                .samples = {found.indices.begin(), found.indices.end()},
                                .picture = {}};
  for (const std::int64_t index : found.indices)
    classification.labels.push_back(static_cast<std::int64_t>(labels.at(index)));
  classification.picture = [&](std::size_t at) {
    const auto first = static_cast<std::size_t>(found.indices[at]) * bytes;
    return color_image(images.as<std::uint8_t>().subspan(first, bytes), static_cast<int>(width),
                       static_cast<int>(height));
  };
  present_classification(page, classification);
  return {};
}

}  // namespace superstep::workload
