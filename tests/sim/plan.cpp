#include "sim/plan.hpp"

#include <array>
#include <stdexcept>
#include <utility>

namespace holdfast::sim {
namespace {

constexpr std::array<std::pair<Do, const char*>, 22> kWords = {{
    {Do::enqueue, "enqueue"},
    {Do::run, "run"},
    {Do::run_inline, "run_inline"},
    {Do::cancel, "cancel"},
    {Do::approve, "approve"},
    {Do::deny, "deny"},
    {Do::input, "input"},
    {Do::redrive, "redrive"},
    {Do::resolve, "resolve"},
    {Do::wake, "wake"},
    {Do::hand_over, "hand_over"},
    {Do::purge, "purge"},
    {Do::reap, "reap"},
    {Do::kill, "kill"},
    {Do::freeze, "freeze"},
    {Do::stop, "stop"},
    {Do::start, "start"},
    {Do::drop_presence, "drop_presence"},
    {Do::store_error, "store_error"},
    {Do::store_slow, "store_slow"},
    {Do::jump_wall, "jump_wall"},
    {Do::suspend, "suspend"},
}};

Do parse_do(const std::string& word) {
  for (const auto& [what, name] : kWords) {
    if (word == name) return what;
  }
  throw std::invalid_argument("a plan knows no \"" + word + "\"");
}

Json to_json(const Settings& s) {
  return {{"workers", s.workers},
          {"clients", s.clients},
          {"concurrency", s.concurrency},
          {"lease", s.lease},
          {"heartbeat", s.heartbeat},
          {"reaper", s.reaper},
          {"presence", s.presence},
          {"max_requeues", s.max_requeues},
          {"strict_expiry", s.strict_expiry},
          {"by_queue", s.by_queue},
          {"one_reaper", s.one_reaper},
          {"skew", s.skew},
          {"latency", s.latency},
          {"tool_trouble", s.tool_trouble},
          {"model_trouble", s.model_trouble},
          {"suspicion", s.suspicion},
          {"preempt", s.preempt},
          {"strategy", s.strategy},
          {"faults_until", s.faults_until},
          {"ends_gracefully", s.ends_gracefully}};
}

Settings parse_settings(const Json& json) {
  Settings s;
  s.workers = json.at("workers");
  s.clients = json.at("clients");
  s.concurrency = json.at("concurrency");
  s.lease = json.at("lease");
  s.heartbeat = json.at("heartbeat");
  s.reaper = json.at("reaper");
  s.presence = json.at("presence");
  s.max_requeues = json.at("max_requeues");
  s.strict_expiry = json.at("strict_expiry");
  s.by_queue = json.at("by_queue");
  s.one_reaper = json.at("one_reaper");
  s.skew = json.at("skew");
  s.latency = json.at("latency");
  s.tool_trouble = json.at("tool_trouble");
  s.model_trouble = json.at("model_trouble");
  s.suspicion = json.at("suspicion");
  s.preempt = json.at("preempt");
  s.strategy = json.at("strategy");
  s.faults_until = json.at("faults_until");
  s.ends_gracefully = json.at("ends_gracefully");
  return s;
}

Json to_json(const Element& e) {
  Json json = {{"do", to_word(e.what)}, {"at", e.at}, {"subject", e.subject}};
  if (!e.place.empty()) {
    json["place"] = e.place;
    json["nth"] = e.nth;
    json["after"] = e.after;
  }
  if (e.length != 0) json["length"] = e.length;
  if (!e.detail.is_null()) json["detail"] = e.detail;
  return json;
}

Element parse_element(const Json& json) {
  Element e;
  e.what = parse_do(json.at("do"));
  e.at = json.at("at");
  e.subject = json.at("subject");
  e.place = json.value("place", "");
  e.nth = json.value("nth", 1);
  e.after = json.value("after", false);
  e.length = json.value("length", 0);
  e.detail = json.value("detail", Json());
  return e;
}

}  // namespace

std::uint64_t Chance::next() {
  std::uint64_t z = (state_ += 0x9E3779B97F4A7C15u);  // splitmix64
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

bool is_fault(Do what) { return what >= Do::kill; }

std::string to_word(Do what) {
  for (const auto& [known, name] : kWords) {
    if (what == known) return name;
  }
  return "?";
}

std::string to_text(const Plan& plan) {
  Json elements = Json::array();
  for (const Element& element : plan.elements) elements.push_back(to_json(element));
  return Json{{"seed", plan.seed}, {"settings", to_json(plan.settings)}, {"elements", elements}}
      .dump();
}

Plan parse_plan(const std::string& text) {
  const Json json = Json::parse(text);
  Plan plan;
  plan.seed = json.at("seed");
  plan.settings = parse_settings(json.at("settings"));
  for (const Json& element : json.at("elements")) plan.elements.push_back(parse_element(element));
  return plan;
}

}  // namespace holdfast::sim
