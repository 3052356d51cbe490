#include <nlohmann/json.hpp>

#include "superstep/base/text.h"
#include "superstep/study/quality/report.h"

namespace superstep::study {
namespace {

nlohmann::json figure_json(const Figure& figure) {
  if (!figure.value) return {{"value", nullptr}, {"words", figure.words}};
  return {{"value", *figure.value}, {"low", figure.low}, {"high", figure.high}, {"words", figure.words}};
}

const char* name_of(Ending ending) {
  switch (ending) {
    case Ending::reached: return "reached";
    case Ending::not_reached: return "not reached";
    case Ending::diverged: return "diverged";
    case Ending::failed: break;
  }
  return "failed";
}

// What is not resolved is null.
nlohmann::json noise_json(const MeasuredNoise& noise) {
  nlohmann::json json{{"precision", noise.precision}, {"batch", noise.batch}, {"seed", noise.seed},
                      {"step", noise.step},           {"words", noise.words}, {"noise_scale", nullptr}};
  if (!noise.scale) return json;
  json["noise_scale"] = noise.scale->batch;
  json["low"] = noise.scale->low;
  json["high"] = noise.scale->high;
  json["gradient_squared"] = noise.scale->gradient;
  json["noise_trace"] = noise.scale->noise;
  json["samples"] = noise.scale->samples;
  return json;
}

}  // namespace

nlohmann::json json_of(const QualityReport& report) {
  nlohmann::json trainings = nlohmann::json::array(), costs = nlohmann::json::array(),
                 laws = nlohmann::json::array(), noises = nlohmann::json::array();
  for (const MeasuredNoise& noise : report.noises) noises.push_back(noise_json(noise));
  for (const Training& t : report.trainings) {
    nlohmann::json curve = nlohmann::json::array();
    for (const Training::Epoch& epoch : t.curve)
      curve.push_back({{"step", epoch.step}, {"seconds", epoch.seconds}, {"quality", epoch.quality}});
    trainings.push_back({{"precision", t.precision},
                         {"batch", t.batch},
                         {"seed", t.seed},
                         {"learning_rate", t.learning_rate},
                         {"ending", name_of(t.ending)},
                         {"steps", t.steps},
                         {"steps_low", t.steps_low},
                         {"steps_high", t.steps_high},
                         {"quality", t.best},
                         {"seconds", t.seconds},
                         {"words", t.words},
                         {"curve", std::move(curve)},
                         {"command", "superstep " + join(t.command, " ")}});
  }
  for (const BatchLaw& law : report.laws)
    laws.push_back({{"precision", law.precision},
                    {"least_steps", law.least_steps},
                    {"critical_batch", law.critical_batch},
                    {"largest_deviation", law.largest_deviation},
                    {"batches", law.batches}});
  for (const QualityCost& cost : report.costs)
    costs.push_back({{"machine", cost.machine},
                     {"units", cost.units},
                     {"precision", cost.precision},
                     {"batch", cost.batch},
                     {"seconds", figure_json(cost.seconds)},
                     {"joules", figure_json(cost.joules)},
                     {"price", figure_json(cost.money)},
                     {"best", cost.best}});
  return {{"schema", "superstep-quality-study/1"},
          {"workload", report.settings.workload},
          {"until", report.goal},
          {"rate_rule", study::name_of(report.settings.rule)},
          {"findings", findings_of(report)},
          {"trainings", std::move(trainings)},
          {"laws", std::move(laws)},
          {"noises", std::move(noises)},
          {"costs", std::move(costs)}};
}

}  // namespace superstep::study
